//! Calls several candidates concurrently and collects every success.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::{
    execution::{attempt::Call, failure::CandidateFailure},
    output::synthesizer::CandidateOutput,
    registry::candidate::ToolCandidate,
};

/// All successes and failures, in the order of the candidates. If every success is an input request, only the first.
pub(crate) async fn gather(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
) -> (Vec<CandidateOutput>, Vec<CandidateFailure>) {
    let outcomes = join_all(candidates.iter().map(|candidate| call.attempt(candidate, 1))).await;
    let (mut answers, mut asking, mut failures) = (Vec::new(), None, Vec::new());
    for (candidate, outcome) in candidates.iter().zip(outcomes) {
        let answer = |output| CandidateOutput { source: candidate.source_id().clone(), output };
        match outcome {
            // Input requests cannot be merged with outputs; they are passed on only if there is no output.
            Ok(output) if output.input_required => asking = asking.or_else(|| Some(answer(output))),
            Ok(output) => answers.push(answer(output)),
            Err(failure) => failures.push(failure),
        }
    }
    if answers.is_empty() {
        answers.extend(asking);
    }
    (answers, failures)
}
