//! Asks several candidates at the same time and takes the first success; the losers are dropped at once.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use toolyard_core::{ToolError, ToolOutput};

use crate::{attempt::Call, candidate::ToolCandidate};

/// The first success, or why all of them failed.
pub(crate) async fn race(
    call: &Call<'_>,
    candidates: &[Arc<ToolCandidate>],
) -> Result<ToolOutput, Vec<ToolError>> {
    let mut running: FuturesUnordered<_> =
        candidates.iter().map(|candidate| call.attempt(candidate, 1)).collect();
    let mut failures = Vec::new();
    while let Some(outcome) = running.next().await {
        match outcome {
            Ok(output) => return Ok(output),
            Err(error) => failures.push(error),
        }
    }
    Err(failures)
}
