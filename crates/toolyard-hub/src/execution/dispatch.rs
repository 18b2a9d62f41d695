//! Calls the candidates of one call by the chosen strategy and combines their outputs or errors.

use std::sync::Arc;

use toolyard_core::{Capability, RawJson, Synthesizer, ToolKind, ToolOutput};

use crate::{
    execution::{
        attempt::Call,
        failure::{CallFailure, CandidateFailure, describe_failures},
        gather::gather,
        race::race,
    },
    output::synthesizer::{CandidateOutput, SynthesisModel, UntruncatedText, synthesize},
    registry::candidate::ToolCandidate,
    routing::strategy::Strategy,
};

/// Output of a call before truncation.
pub(crate) struct DispatchOutcome {
    pub(crate) output: ToolOutput,
    pub(crate) kind: ToolKind,
    /// The output schema of the tool that returned the output; `None` if it declares none or several outputs were merged.
    pub(crate) output_schema: Option<RawJson>,
    /// The untruncated text, if the output holds only part of it.
    pub(crate) whole: Option<UntruncatedText>,
}

impl DispatchOutcome {
    /// The output of one candidate, after others failed.
    fn of_one(
        candidate: &ToolCandidate,
        mut output: ToolOutput,
        kind: ToolKind,
        failures: &[CandidateFailure],
    ) -> Self {
        output.meta.failed = describe_failures(failures);
        Self { output, kind, output_schema: candidate.spec().output_schema.clone(), whole: None }
    }
}

/// Calls the candidates of one call, which are in order of preference, by the strategy for their kind and number.
pub(crate) async fn dispatch(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
    capability: Option<&Capability>,
    model: Option<&Arc<dyn Synthesizer>>,
) -> Result<DispatchOutcome, CallFailure> {
    let to_failure = |failures| CallFailure::of(failures, call.attempts());
    let Some(first) = candidates.first() else { return Err(to_failure(Vec::new())) };
    let kind = match ToolKind::of(capability) {
        ToolKind::Other => first.kind,
        kind => kind,
    };
    let all_repeatable = candidates.iter().all(|candidate| candidate.hints.repeatable());
    let strategy = Strategy::choose(kind, candidates.len(), all_repeatable, capability.is_some());
    let first_count = strategy.first_batch(candidates.len());
    call.log_decision("strategy", None, || {
        let order: Vec<String> = candidates.iter().map(|candidate| format!("{candidate:?}")).collect();
        let detail = match order.as_slice() {
            [_only] => "one candidate".to_owned(),
            several => format!("{first_count} first, in this order: {}", several.join(", ")),
        };
        (strategy.label().to_owned(), detail)
    });
    let (first_candidates, other_candidates) =
        candidates.split_at_checked(first_count).unwrap_or((candidates, &[]));
    match strategy {
        Strategy::Direct => match call.call_with_retries(first).await {
            Ok(output) => Ok(DispatchOutcome::of_one(first, output, kind, &[])),
            Err(failure) => Err(to_failure(vec![failure])),
        },
        Strategy::InOrder => try_in_order(call, candidates, Vec::new(), kind).await.map_err(to_failure),
        Strategy::PickBest => match race(call, first_candidates).await {
            (Some((candidate, output)), failures) => {
                Ok(DispatchOutcome::of_one(candidate, output, kind, &failures))
            }
            (None, failures) => {
                try_in_order(call, other_candidates, failures, kind).await.map_err(to_failure)
            }
        },
        Strategy::Synthesize => match gather(call, first_candidates).await {
            (outputs, failures) if outputs.is_empty() => {
                try_in_order(call, other_candidates, failures, kind).await.map_err(to_failure)
            }
            (outputs, failures) => Ok(combine(call, outputs, &failures, kind, model).await),
        },
    }
}

async fn combine(
    call: &Call<'_>,
    outputs: Vec<CandidateOutput>,
    failures: &[CandidateFailure],
    kind: ToolKind,
    model: Option<&Arc<dyn Synthesizer>>,
) -> DispatchOutcome {
    let count = outputs.len();
    let output_schema = match outputs.as_slice() {
        [only] => only.output_schema.clone(),
        _ => None,
    };
    let started = tokio::time::Instant::now();
    let model =
        model.map(|synthesizer| SynthesisModel { synthesizer, span: call.span(), telemetry: call.telemetry });
    let mut synthesis =
        synthesize(outputs, &call.request.tool_name, kind, model, call.processing_deadline()).await;
    call.log_decision("merge", Some(started.elapsed()), || {
        (format!("{count} answers"), synthesis.method.description().to_owned())
    });
    synthesis.output.meta.failed = describe_failures(failures);
    DispatchOutcome { output: synthesis.output, kind, output_schema, whole: synthesis.whole }
}

/// Calls one candidate after another until one succeeds. Stops after a failure that may have had an effect, unless both the
/// failed tool and the next one are safe to repeat.
async fn try_in_order(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
    mut failures: Vec<CandidateFailure>,
    kind: ToolKind,
) -> Result<DispatchOutcome, Vec<CandidateFailure>> {
    for candidate in candidates {
        if !failures.iter().all(|failure| failure.allows_next_candidate(candidate)) {
            break;
        }
        match call.attempt(candidate, 1).await {
            Ok(output) => return Ok(DispatchOutcome::of_one(candidate, output, kind, &failures)),
            Err(failure) => failures.push(failure),
        }
    }
    Err(failures)
}
