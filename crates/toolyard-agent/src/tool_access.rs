//! [`ToolAccess`]: which tools the planner of a run is offered, and whose past requests help to find them.

use std::sync::Arc;

use toolyard_core::{CallPolicy, CallerIdentity, DataOwner, PolicySubject};
use toolyard_hub::{Snapshot, ToolCandidate, ToolHub};

use crate::AgentConfig;

/// For whom a run is, and the policy that decides what that caller may call. The hub decides about every call again, with its
/// arguments; this is about what a model is shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolAccess {
    identity: Option<Arc<CallerIdentity>>,
    policy: Option<Arc<dyn CallPolicy>>,
}

impl ToolAccess {
    /// The access of a caller; `None` is the person at this machine.
    pub(crate) fn new(hub: &ToolHub, identity: Option<Arc<CallerIdentity>>) -> Self {
        Self { identity, policy: hub.policy() }
    }

    /// Whose past requests count.
    pub(crate) fn data_owner(&self) -> DataOwner {
        DataOwner::of(self.identity.as_deref())
    }

    /// Whether there are arguments with which the agent may call the tool, or an equivalent in its place, for this caller.
    pub(crate) fn permits(&self, agent: &AgentConfig, snapshot: &Snapshot, tool: &ToolCandidate) -> bool {
        let Some(policy) = &self.policy else { return true };
        let profile = agent.tool_profile();
        let subject = PolicySubject {
            identity: self.identity.as_ref(),
            agent: Some(&agent.name),
            profile: &profile.name,
        };
        let may_call = |tool: &ToolCandidate| policy.may_be_called(&subject, tool.policy_tool());
        let has_equivalent = || {
            let found = snapshot.find(&tool.name).filter(|found| !found.is_contested);
            found.is_some_and(|found| {
                let is_member = found.equivalents.iter().any(|other| std::ptr::eq(Arc::as_ptr(other), tool));
                let mut others =
                    found.equivalents.iter().filter(|other| !other.denied && profile.offers(other));
                is_member && others.any(|other| may_call(other))
            })
        };
        may_call(tool) || has_equivalent()
    }
}
