//! Calls the candidates of one call by the chosen strategy and combines their outputs or errors.

use std::sync::Arc;

use toolyard_core::{Capability, Synthesizer, ToolKind, ToolOutput};

use crate::{
    execution::{
        attempt::Call,
        failure::{CallFailure, CandidateFailure, describe_failures},
        gather::gather,
        race::race,
    },
    output::synthesizer::{CandidateOutput, UntruncatedText, synthesize},
    registry::candidate::ToolCandidate,
    routing::strategy::Strategy,
};

/// Output of a call before truncation.
pub(crate) struct DispatchOutcome {
    pub(crate) output: ToolOutput,
    pub(crate) kind: ToolKind,
    /// The untruncated text, if the output holds only part of it.
    pub(crate) whole: Option<UntruncatedText>,
}

impl DispatchOutcome {
    /// The output of one candidate, after others failed.
    fn one(mut output: ToolOutput, kind: ToolKind, failures: &[CandidateFailure]) -> Self {
        output.meta.failed = describe_failures(failures);
        Self { output, kind, whole: None }
    }
}

/// Calls equivalent candidates, in this order.
pub(crate) async fn dispatch(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
    capability: Option<&Capability>,
    model: Option<&Arc<dyn Synthesizer>>,
) -> Result<DispatchOutcome, CallFailure> {
    let failed = |failures| CallFailure::of(failures, call.attempts());
    let Some(first) = candidates.first() else { return Err(failed(Vec::new())) };
    let kind = match ToolKind::of(capability) {
        ToolKind::Other => first.kind,
        kind => kind,
    };
    let all_repeatable = candidates.iter().all(|candidate| candidate.hints.repeatable());
    let strategy = Strategy::choose(kind, candidates.len(), all_repeatable, capability.is_some());
    let batch = strategy.first_batch(candidates.len());
    call.note("strategy", None, || {
        let order: Vec<String> = candidates.iter().map(|candidate| format!("{candidate:?}")).collect();
        let detail = match order.as_slice() {
            [_only] => "one candidate".to_owned(),
            several => format!("{batch} first, in this order: {}", several.join(", ")),
        };
        (strategy.word().to_owned(), detail)
    });
    let (at_first, later) = candidates.split_at_checked(batch).unwrap_or((candidates, &[]));
    match strategy {
        Strategy::Direct => match call.with_retries(first).await {
            Ok(output) => Ok(DispatchOutcome::one(output, kind, &[])),
            Err(failure) => Err(failed(vec![failure])),
        },
        Strategy::InOrder => try_in_order(call, candidates, Vec::new(), kind).await.map_err(failed),
        Strategy::PickBest => match race(call, at_first).await {
            (Some(output), failures) => Ok(DispatchOutcome::one(output, kind, &failures)),
            (None, failures) => try_in_order(call, later, failures, kind).await.map_err(failed),
        },
        Strategy::Synthesize => match gather(call, at_first).await {
            (answers, failures) if answers.is_empty() => {
                try_in_order(call, later, failures, kind).await.map_err(failed)
            }
            (answers, failures) => Ok(combine(call, answers, &failures, kind, model).await),
        },
    }
}

async fn combine(
    call: &Call<'_>,
    answers: Vec<CandidateOutput>,
    failures: &[CandidateFailure],
    kind: ToolKind,
    model: Option<&Arc<dyn Synthesizer>>,
) -> DispatchOutcome {
    let count = answers.len();
    let started = tokio::time::Instant::now();
    let mut done = synthesize(answers, &call.request.tool_name, kind, model, call.last_moment()).await;
    call.note("merge", Some(started.elapsed()), || (format!("{count} answers"), done.how.words().to_owned()));
    done.output.meta.failed = describe_failures(failures);
    DispatchOutcome { output: done.output, kind, whole: done.whole }
}

/// Calls one candidate after another until one succeeds. Stops after a failure that may have had an effect, unless the
/// failed tool is safe to repeat.
async fn try_in_order(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
    mut failures: Vec<CandidateFailure>,
    kind: ToolKind,
) -> Result<DispatchOutcome, Vec<CandidateFailure>> {
    for candidate in candidates {
        match call.attempt(candidate, 1).await {
            Ok(output) => return Ok(DispatchOutcome::one(output, kind, &failures)),
            Err(failure) => {
                let is_harmless = failure.is_harmless();
                failures.push(failure);
                if !is_harmless {
                    break;
                }
            }
        }
    }
    Err(failures)
}
