//! Asks several candidates at the same time and keeps every success.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::{attempt::Call, candidate::ToolCandidate, failure::Failure, synthesizer::Answer};

/// All successes and all failures, both in the order of the candidates. Where all that succeed only ask something, the first.
pub(crate) async fn gather(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
) -> (Vec<Answer>, Vec<Failure>) {
    let outcomes = join_all(candidates.iter().map(|candidate| call.attempt(candidate, 1))).await;
    let (mut answers, mut asking, mut failures) = (Vec::new(), None, Vec::new());
    for (candidate, outcome) in candidates.iter().zip(outcomes) {
        let answer = |output| Answer { source: candidate.source_id().clone(), output };
        match outcome {
            // Questions cannot be merged with answers; they are passed on where there is no answer.
            Ok(output) if output.asks => asking = asking.or_else(|| Some(answer(output))),
            Ok(output) => answers.push(answer(output)),
            Err(failure) => failures.push(failure),
        }
    }
    if answers.is_empty() {
        answers.extend(asking);
    }
    (answers, failures)
}
