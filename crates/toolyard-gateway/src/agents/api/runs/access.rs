//! [`OwnedRun`]: which runs a caller may see. A run of somebody else is as if it did not exist.

use axum::extract::FromRequestParts;
use http::request::Parts;
use tokio::time::Instant;
use toolyard_agent::owner_of_run;
use toolyard_core::{CallerIdentity, JournalError, RunId, RunRecord};

use super::state::READ_TIMEOUT;
use crate::{
    agents::{
        active_runs::ActiveRuns,
        api::error::{ApiError, before},
    },
    api::{
        ApiState,
        extract::{Agents, ApiPath, AuthenticatedCaller},
    },
};

/// A run in the path of a request, if the caller may see it.
pub(in crate::agents::api) struct OwnedRun(pub(in crate::agents::api) RunId);

impl FromRequestParts<ApiState> for OwnedRun {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let ApiPath(run) = ApiPath::<String>::from_request_parts(parts, state).await?;
        let run = RunId::from(run);
        let AuthenticatedCaller(identity) = parts.extensions.get().cloned().unwrap_or_default();
        if identity.is_distinguished() {
            let Agents(api) = Agents::from_request_parts(parts, state).await?;
            check_access(&api.runs, &identity, &run).await?;
        }
        Ok(Self(run))
    }
}

/// Whether the run is the caller's. Runs that nobody owns are the operator's.
pub(in crate::agents::api) fn may_see(identity: &CallerIdentity, run: &RunRecord) -> bool {
    !identity.is_distinguished() || owner_of_run(run).is_some_and(|owner| identity.may_access(&owner))
}

/// An error as for a run that does not exist, if the caller may not see it.
pub(in crate::agents::api) async fn check_access(
    runs: &ActiveRuns,
    identity: &CallerIdentity,
    run: &RunId,
) -> Result<(), ApiError> {
    if !identity.is_distinguished() {
        return Ok(());
    }
    let record = before(Instant::now() + READ_TIMEOUT, runs.config.log.run(run)).await?;
    if may_see(identity, &record) { Ok(()) } else { Err(JournalError::UnknownRun(run.clone()).into()) }
}
