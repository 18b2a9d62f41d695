//! Asks several candidates at the same time and takes the first success; the losers are dropped at once.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use toolyard_core::ToolOutput;

use crate::{attempt::Call, candidate::ToolCandidate, failure::Failure};

/// The first success, if there is one, and all failures before it, in the order of the candidates.
pub(crate) async fn race(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
) -> (Option<ToolOutput>, Vec<Failure>) {
    let attempt = async |at, candidate: &Arc<ToolCandidate>| (at, call.attempt(candidate, 1).await);
    let mut running: FuturesUnordered<_> =
        candidates.iter().enumerate().map(|(at, candidate)| attempt(at, candidate)).collect();
    let (mut winner, mut asking, mut failures) = (None, None, Vec::new());
    while let Some((at, outcome)) = running.next().await {
        match outcome {
            // Questions are no answer while somebody else may still give one.
            Ok(output) if output.asks => asking = asking.or(Some(output)),
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
