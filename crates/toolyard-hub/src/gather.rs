//! Asks several candidates at the same time and keeps every success.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::{attempt::Call, candidate::ToolCandidate, failure::Failure, synthesizer::Answer};

/// All successes and all failures, both in the order of the candidates.
pub(crate) async fn gather(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
) -> (Vec<Answer>, Vec<Failure>) {
    let outcomes = join_all(candidates.iter().map(|candidate| call.attempt(candidate, 1))).await;
    let (mut answers, mut failures) = (Vec::new(), Vec::new());
    for (candidate, outcome) in candidates.iter().zip(outcomes) {
        match outcome {
            Ok(output) => answers.push(Answer { source: candidate.source_id().clone(), output }),
            Err(failure) => failures.push(failure),
        }
    }
    (answers, failures)
}
