//! Calls several candidates concurrently and takes the first success; the other calls are dropped.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use toolyard_core::ToolOutput;

use crate::{
    execution::{attempt::Call, failure::CandidateFailure},
    registry::candidate::ToolCandidate,
};

/// The first success, if any, and the failures before it, in the order of the candidates.
pub(crate) async fn race(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
) -> (Option<ToolOutput>, Vec<CandidateFailure>) {
    let attempt = async |at, candidate: &Arc<ToolCandidate>| (at, call.attempt(candidate, 1).await);
    let mut running: FuturesUnordered<_> =
        candidates.iter().enumerate().map(|(at, candidate)| attempt(at, candidate)).collect();
    let (mut winner, mut asking, mut failures) = (None, None, Vec::new());
    while let Some((at, outcome)) = running.next().await {
        match outcome {
            // An input request does not win while another candidate may still succeed.
            Ok(output) if output.input_required => asking = asking.or(Some(output)),
            Ok(output) => {
                winner = Some(output);
                break;
            }
            Err(failure) => failures.push((at, failure)),
        }
    }
    failures.sort_by_key(|(at, _)| *at);
    (winner.or(asking), failures.into_iter().map(|(_, failure)| failure).collect())
}
