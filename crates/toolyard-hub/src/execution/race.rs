//! Calls several candidates concurrently and takes the first success; the other calls are dropped.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use toolyard_core::ToolOutput;

use crate::{
    execution::{attempt::Call, failure::CandidateFailure},
    registry::candidate::ToolCandidate,
};

/// The first success with its candidate, if any, and the failures before it, in the order of the candidates.
pub(crate) async fn race<'c>(
    call: &Call<'_>,
    candidates: &'c [Arc<ToolCandidate>],
) -> (Option<(&'c ToolCandidate, ToolOutput)>, Vec<CandidateFailure>) {
    let attempt = async |index, candidate: &Arc<ToolCandidate>| (index, call.attempt(candidate, 1).await);
    let mut running: FuturesUnordered<_> =
        candidates.iter().enumerate().map(|(index, candidate)| attempt(index, candidate)).collect();
    let (mut winner, mut input_request, mut failures) = (None, None, Vec::new());
    while let Some((index, outcome)) = running.next().await {
        match outcome {
            // An input request does not win while another candidate may still succeed.
            Ok(output) if output.input_required => input_request = input_request.or(Some((index, output))),
            Ok(output) => {
                winner = Some((index, output));
                break;
            }
            Err(failure) => failures.push((index, failure)),
        }
    }
    failures.sort_by_key(|(index, _)| *index);
    let success =
        winner.or(input_request).and_then(|(index, output)| Some((&**candidates.get(index)?, output)));
    (success, failures.into_iter().map(|(_, failure)| failure).collect())
}
