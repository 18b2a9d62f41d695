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
    let (mut outputs, mut input_request, mut failures) = (Vec::new(), None, Vec::new());
    for (candidate, outcome) in candidates.iter().zip(outcomes) {
        let of_candidate = |output| CandidateOutput {
            source: candidate.source_id().clone(),
            output_schema: candidate.spec().output_schema.clone(),
            output,
        };
        match outcome {
            // Input requests cannot be merged with outputs; they are passed on only if there is no output.
            Ok(output) if output.input_required => {
                input_request = input_request.or_else(|| Some(of_candidate(output)));
            }
            Ok(output) => outputs.push(of_candidate(output)),
            Err(failure) => failures.push(failure),
        }
    }
    if outputs.is_empty() {
        outputs.extend(input_request);
    }
    (outputs, failures)
}
