//! What an agent may do, as a hash: a run is continued only by a process whose agent may do the same.

use std::fmt::Write as _;

use toolyard_core::{ContentHash, RawJson, ToolCallRequest};
use toolyard_hub::{Profile, route_within};

use super::Agent;
use crate::{
    Run, StepRun,
    driver::{ResolvedTool, agent_profile, stricter},
};

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
        let authority = run.request().and_then(|request| request.authority.as_deref());
        let is_open = |step: &&StepRun| !step.phase.is_ended() && !step.is_reasoning();
        authority == Some(&self.authority())
            && run.steps().iter().filter(is_open).all(|step| self.has_tool_of(step))
    }

    fn has_tool_of(&self, step: &StepRun) -> bool {
        // A tool that the planning process did not know either is replaced by one with its capability.
        let Some(source) = &step.tool.source else { return true };
        let (parts, name) = (&*self.parts, step.step.tool_type.as_str());
        let request = ToolCallRequest::new(name, RawJson::empty_object());
        let route = route_within(&parts.hub.snapshot(), &request, Some(&agent_profile(parts)));
        let has_source =
            route.is_ok_and(|route| route.candidates.iter().any(|candidate| candidate.source_id() == source));
        let permission = ResolvedTool::resolve(parts, name).permission;
        has_source && stricter(permission, step.tool.permission) == permission
    }
}
