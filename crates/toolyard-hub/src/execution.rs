//! Asks the candidates of one call by the strategy that suits them, and makes one answer or one error of it.

use std::sync::Arc;

use toolyard_core::{Capability, Synthesizer, ToolKind, ToolOutput};

use crate::{
    attempt::Call,
    candidate::ToolCandidate,
    failure::{Failed, Failure, lines},
    gather::gather,
    race::race,
    strategy::Strategy,
    synthesizer::{Answer, Whole, synthesize},
};

/// The answer to a call before it is cut to size.
pub(crate) struct Asked {
    pub(crate) output: ToolOutput,
    pub(crate) kind: ToolKind,
    /// All that was said, where the output holds only a part of it.
    pub(crate) whole: Option<Whole>,
}

impl Asked {
    /// One candidate's answer, after others failed.
    fn one(mut output: ToolOutput, kind: ToolKind, failures: &[Failure]) -> Self {
        output.meta.failed = lines(failures);
        Self { output, kind, whole: None }
    }
}

/// Asks candidates that may stand in for one another, in this order.
pub(crate) async fn ask(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
    capability: Option<&Capability>,
    model: Option<&Arc<dyn Synthesizer>>,
) -> Result<Asked, Failed> {
    let failed = |failures| Failed::of(failures, call.attempts());
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
            several => format!("{batch} at first, in this order: {}", several.join(", ")),
        };
        (strategy.word().to_owned(), detail)
    });
    let (at_first, later) = candidates.split_at_checked(batch).unwrap_or((candidates, &[]));
    match strategy {
        Strategy::Direct => match call.with_retries(first).await {
            Ok(output) => Ok(Asked::one(output, kind, &[])),
            Err(failure) => Err(failed(vec![failure])),
        },
        Strategy::InOrder => one_after_another(call, candidates, Vec::new(), kind).await.map_err(failed),
        Strategy::PickBest => match race(call, at_first).await {
            (Some(output), failures) => Ok(Asked::one(output, kind, &failures)),
            (None, failures) => one_after_another(call, later, failures, kind).await.map_err(failed),
        },
        Strategy::Synthesize => match gather(call, at_first).await {
            (answers, failures) if answers.is_empty() => {
                one_after_another(call, later, failures, kind).await.map_err(failed)
            }
            (answers, failures) => Ok(put_together(call, answers, &failures, kind, model).await),
        },
    }
}

async fn put_together(
    call: &Call<'_>,
    answers: Vec<Answer>,
    failures: &[Failure],
    kind: ToolKind,
    model: Option<&Arc<dyn Synthesizer>>,
) -> Asked {
    let count = answers.len();
    let started = tokio::time::Instant::now();
    let mut done = synthesize(answers, &call.request.tool_name, kind, model, call.last_moment()).await;
    call.note("merge", Some(started.elapsed()), || (format!("{count} answers"), done.how.words().to_owned()));
    done.output.meta.failed = lines(failures);
    Asked { output: done.output, kind, whole: done.whole }
}

/// One candidate after another until one succeeds. After a failure that may have had an effect, nobody else is asked,
/// unless the one that failed may be repeated without harm.
async fn one_after_another(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
    mut failures: Vec<Failure>,
    kind: ToolKind,
) -> Result<Asked, Vec<Failure>> {
    for candidate in candidates {
        match call.attempt(candidate, 1).await {
            Ok(output) => return Ok(Asked::one(output, kind, &failures)),
            Err(failure) => {
                let harmless = failure.harmless();
                failures.push(failure);
                if !harmless {
                    break;
                }
            }
        }
    }
    Err(failures)
}
