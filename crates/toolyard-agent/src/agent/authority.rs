//! What an agent may do, as a hash: a run is continued only by a process whose agent may do the same.

use std::{fmt::Write as _, sync::Arc};

use toolyard_core::{CallerIdentity, ContentHash, RawJson, ToolCallRequest};
use toolyard_hub::{Profile, route_within};

use super::Agent;
use crate::{
    Run, StepRun,
    driver::{ResolvedTool, agent_profile, stricter},
};

/// Why an agent may not continue a run of another process. Completes the sentence "run … was".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TakeOverError {
    /// The run has no authority: a command of the operator started it.
    ///
    /// Remedy: resume the run yourself, under your own settings: `toolyard runs resume RUN`. Gateways resume only runs
    /// that were started over HTTP.
    #[error("started by a command of the operator")]
    NoAuthority,
    /// The approval rules, the tools of the agent or the profile are others than when the run was started.
    ///
    /// Remedy: resume the run yourself: `toolyard runs resume RUN`, or restore `[approvals]`, the agent and its profile
    /// to what they were, and send the request again.
    #[error("started under other approval rules, or with other tools")]
    OtherRules,
    /// A tool of an open step is missing, of another source, or needs less approval than it did.
    ///
    /// Remedy: see the tool with `toolyard tools show NAME`, approve it if it is held (`toolyard servers approve
    /// SERVER`), or resume the run yourself: `toolyard runs resume RUN`.
    #[error("planned with tool `{0}`, which is missing or has changed")]
    OtherTool(String),
}

impl Agent {
    /// Hash of what the agent may do: its approval rules, its tools, and the profile that limits them. Instructions, model
    /// and limits are not part of it.
    pub fn authority(&self) -> ContentHash {
        let config = &self.parts.config;
        // The debug form contains all rules, also those that are added later.
        let mut text =
            format!("{:?} {:?} {}", self.parts.rules, config.tools, config.capabilities.enable_tool_calling);
        let mut profile = config.profile.as_deref();
        while let Some(Profile { servers, tools, deny, within, name: _, surface: _, budget: _, timeout: _ }) =
            profile
        {
            // Writing to a string cannot fail.
            let _ = write!(text, " {servers:?} {tools:?} {deny:?}");
            profile = within.as_deref();
        }
        ContentHash::of(text)
    }

    /// Whether the agent may continue a run of another process: it was created under the same [authority](Self::authority),
    /// and the tools of its open steps exist here and need no less approval than they did there.
    pub fn may_take_over(&self, run: &Run) -> bool {
        self.check_take_over(run).is_ok()
    }

    /// Like [`Self::may_take_over`], with the reason if it may not.
    ///
    /// # Errors
    /// If the agent may not continue the run.
    pub fn check_take_over(&self, run: &Run) -> Result<(), TakeOverError> {
        let authority = run.request().and_then(|request| request.authority.as_deref());
        let authority = authority.ok_or(TakeOverError::NoAuthority)?;
        if *authority != self.authority() {
            return Err(TakeOverError::OtherRules);
        }
        let identity = run.request().and_then(|request| request.identity.as_ref());
        let is_open = |step: &&StepRun| !step.phase.is_ended() && !step.is_reasoning();
        match run.steps().iter().filter(is_open).find(|step| !self.has_tool_of(step, identity)) {
            Some(step) => Err(TakeOverError::OtherTool(step.step.tool_type.clone())),
            None => Ok(()),
        }
    }

    fn has_tool_of(&self, step: &StepRun, identity: Option<&Arc<CallerIdentity>>) -> bool {
        // A tool that the planning process did not know either is replaced by one with its capability.
        let Some(source) = &step.tool.source else { return true };
        let (parts, name) = (&*self.parts, step.step.tool_type.as_str());
        let request = ToolCallRequest::new(name, RawJson::empty_object());
        let route = route_within(&parts.hub.snapshot(), &request, Some(&agent_profile(parts)));
        let has_source =
            route.is_ok_and(|route| route.candidates.iter().any(|candidate| candidate.source_id() == source));
        let tool = ResolvedTool::resolve(parts, name).decided_before_arguments(parts, name, identity);
        let permission = tool.permission;
        has_source && stricter(permission, step.tool.permission) == permission
    }
}
