//! Asks the candidates of one call by the strategy that suits them, and makes one answer or one error of it.

use std::sync::Arc;

use toolyard_core::{Capability, ErrorKind, Synthesizer, ToolError, ToolKind, ToolOutput};

use crate::{
    attempt::Call,
    candidate::ToolCandidate,
    gather::gather,
    race::race,
    strategy::Strategy,
    synthesizer::{Answer, synthesize},
};

/// The answer to a call before it is cut to size.
pub(crate) struct Asked {
    pub(crate) output: ToolOutput,
    pub(crate) kind: ToolKind,
    /// All that was said, where the output holds only a part of it.
    pub(crate) whole: Option<String>,
}

/// Asks candidates that may stand in for one another, in this order.
pub(crate) async fn ask(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
    capability: Option<&Capability>,
    model: Option<&Arc<dyn Synthesizer>>,
) -> Result<Asked, ToolError> {
    let Some(first) = candidates.first() else {
        return Err(ToolError::new(ErrorKind::Internal, "there is nobody to ask"));
    };
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
        Strategy::Direct => {
            let output = call.with_retries(first).await.map_err(|error| one_error(vec![error], call))?;
            Ok(Asked { output, kind, whole: None })
        }
        Strategy::InOrder => one_after_another(call, candidates, Vec::new(), kind).await,
        Strategy::PickBest => match race(call, at_first).await {
            Ok(output) => Ok(Asked { output, kind, whole: None }),
            Err(failures) => one_after_another(call, later, failures, kind).await,
        },
        Strategy::Synthesize => {
            let (answers, failures) = gather(call, at_first).await;
            if answers.is_empty() {
                return one_after_another(call, later, failures, kind).await;
            }
            Ok(put_together(call, answers, kind, model).await)
        }
    }
}

async fn put_together(
    call: &Call<'_>,
    answers: Vec<Answer>,
    kind: ToolKind,
    model: Option<&Arc<dyn Synthesizer>>,
) -> Asked {
    let count = answers.len();
    let started = tokio::time::Instant::now();
    let done = synthesize(answers, &call.request.tool_name, kind, model, call.deadline).await;
    call.note("merge", Some(started.elapsed()), || (format!("{count} answers"), done.how.words().to_owned()));
    Asked { output: done.output, kind, whole: done.whole }
}

/// One candidate after another until one succeeds. After a failure that may have had an effect, nobody else is asked,
/// unless the one that failed may be repeated without harm.
async fn one_after_another(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
    mut failures: Vec<ToolError>,
    kind: ToolKind,
) -> Result<Asked, ToolError> {
    for candidate in candidates {
        match call.attempt(candidate, 1).await {
            Ok(output) => return Ok(Asked { output, kind, whole: None }),
            Err(error) => {
                let harmless = candidate.hints.repeatable() || error.had_no_effect();
                failures.push(error);
                if !harmless {
                    break;
                }
            }
        }
    }
    Err(one_error(failures, call))
}

/// The failure that says most: an unknown outcome before all others, else that of whoever was preferred.
fn one_error(mut failures: Vec<ToolError>, call: &Call<'_>) -> ToolError {
    let attempts = call.attempts.load(std::sync::atomic::Ordering::Relaxed);
    let worst = failures.iter().position(|error| error.kind() == ErrorKind::OutcomeUnknown).unwrap_or(0);
    if worst >= failures.len() {
        return ToolError::new(ErrorKind::Internal, "nobody was asked").with_attempts(attempts);
    }
    let main = failures.swap_remove(worst).with_attempts(attempts);
    let others: Vec<String> = failures.iter().map(ToString::to_string).collect();
    if others.is_empty() { main } else { main.with_hint(format!("also failed: {}", others.join("; "))) }
}
