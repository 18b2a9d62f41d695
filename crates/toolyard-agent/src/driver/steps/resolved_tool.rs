//! [`ResolvedTool`]: what the hub and the approval rules say about a tool now.

use std::{collections::BTreeSet, sync::Arc};

use toolyard_core::{
    CallPolicy, CallerIdentity, ContentHash, EffectiveHints, PolicyDecision, PolicyRequest, PolicySubject,
    RawJson, SourceId, ToolCallRequest,
};
use toolyard_hub::{Profile, RouteCase, ToolCandidate, definition_hash, route_within};

use crate::{
    AgentParts, Permission, PlannedTool,
    agent::{Destination, may_send_outside},
};

#[derive(Debug, Clone)]
pub(crate) struct ResolvedTool {
    /// The tool's own name, if name or arguments select its source: then no equivalent is called.
    pub(super) selected: Option<Arc<str>>,
    /// The preferred source; `None` if the tool is unknown.
    pub(in crate::driver) source: Option<SourceId>,
    pub(in crate::driver) read_only: bool,
    pub(crate) permission: Permission,
    /// The effects in a word, for approvers.
    pub(in crate::driver) effects: String,
    /// Sources that may pass the arguments outside, unless a rule allows that.
    pub(super) destinations: Vec<Destination>,
    /// Whether results may contain non-public data.
    reads_private: bool,
    /// Whether any source may pass the arguments outside, whatever the rules say.
    open_world: bool,
    /// Hash of name, source and definition, and of the policies that require an approval: what an approval for the whole run is
    /// about. A changed tool has another identity.
    pub(in crate::driver) identity: String,
    /// Hashes of the definitions of all candidates.
    pub(super) definition_hashes: Vec<ContentHash>,
    pub(super) input_schema: Option<RawJson>,
    pub(super) output_schema: Option<RawJson>,
}

/// The tools that the agent can use.
pub(crate) fn agent_profile(parts: &AgentParts) -> Profile {
    parts.config.tool_profile()
}

impl ResolvedTool {
    pub(crate) fn resolve(parts: &AgentParts, tool: &str) -> Self {
        Self::resolve_call(parts, tool, &RawJson::empty_object())
    }

    /// Like [`Self::resolve`], for a name that only the arguments may decide.
    pub(in crate::driver) fn resolve_call(parts: &AgentParts, tool: &str, arguments: &RawJson) -> Self {
        let request = ToolCallRequest::new(tool, arguments.clone());
        let route = route_within(&parts.hub.snapshot(), &request, Some(&agent_profile(parts)));
        let is_selected =
            route.as_ref().is_ok_and(|route| matches!(route.case, RouteCase::Named | RouteCase::ByArguments));
        let candidates = route.map(|route| route.candidates).unwrap_or_default();
        let Some(first) = candidates.first() else { return Self::unknown(parts, tool) };
        // Rules are about the tool's own name.
        let name = Arc::clone(&first.name);
        let tool = &*name;
        let permissions = candidates
            .iter()
            .map(|candidate| parts.rules.permission(tool, candidate.source_id().as_str(), candidate.hints));
        let destinations = candidates.iter().filter_map(|candidate| {
            parts.rules.destination(tool, candidate.source_id(), candidate.source.info.kind, candidate.hints)
        });
        let reads_private = |candidate: &Arc<ToolCandidate>| {
            let (source, kind) = (candidate.source_id().as_str(), candidate.source.info.kind);
            parts.rules.reads_private(tool, source, kind, candidate.hints)
        };
        let definition = serde_json::to_vec(first.spec()).unwrap_or_default();
        let identity = [tool.as_bytes(), first.source_id().as_str().as_bytes(), definition.as_slice()];
        Self {
            selected: is_selected.then(|| Arc::clone(&name)),
            source: Some(first.source_id().clone()),
            read_only: candidates.iter().all(|candidate| candidate.hints.read_only),
            permission: permissions.reduce(stricter).unwrap_or(Permission::Ask),
            effects: first.hints.description(),
            destinations: destinations.collect(),
            reads_private: candidates.iter().any(reads_private),
            open_world: candidates
                .iter()
                .any(|candidate| may_send_outside(candidate.source.info.kind, candidate.hints)),
            identity: ContentHash::of_parts(identity).to_string(),
            definition_hashes: candidates.iter().map(|candidate| definition_hash(candidate.spec())).collect(),
            input_schema: Some(first.spec().input_schema.clone()),
            output_schema: first.spec().output_schema.clone(),
        }
    }

    /// With the permission that the hub's policy gives for a call with these arguments. A policy cannot permit what the rules
    /// of the agent deny; it can require an approval, or waive one that the rules do not name.
    pub(in crate::driver) fn decided_by_policy(
        self,
        parts: &AgentParts,
        tool: &str,
        arguments: &RawJson,
        identity: Option<&Arc<CallerIdentity>>,
    ) -> Self {
        self.with_decisions(parts, tool, arguments, identity, |policy, subject, candidate| {
            let tool = candidate.policy_tool();
            Some(policy.decide(&PolicyRequest { subject: *subject, tool, arguments }))
        })
    }

    /// Like [`Self::decided_by_policy`], before the arguments are known. If they can change the decision of the policy, the call
    /// counts as allowed until it is decided with them.
    pub(crate) fn decided_before_arguments(
        self,
        parts: &AgentParts,
        tool: &str,
        identity: Option<&Arc<CallerIdentity>>,
    ) -> Self {
        let arguments = RawJson::empty_object();
        self.with_decisions(parts, tool, &arguments, identity, |policy, subject, candidate| {
            policy.decide_without_arguments(subject, candidate.policy_tool())
        })
    }

    fn with_decisions(
        mut self,
        parts: &AgentParts,
        tool: &str,
        arguments: &RawJson,
        identity: Option<&Arc<CallerIdentity>>,
        decide: impl Fn(&dyn CallPolicy, &PolicySubject<'_>, &ToolCandidate) -> Option<PolicyDecision>,
    ) -> Self {
        let Some(policy) = parts.hub.policy() else { return self };
        let profile = agent_profile(parts);
        let subject = PolicySubject { identity, agent: Some(&parts.config.name), profile: &profile.name };
        let request = ToolCallRequest::new(tool, arguments.clone());
        let route = route_within(&parts.hub.snapshot(), &request, Some(&profile));
        let candidates = route.map(|route| route.candidates).unwrap_or_default();
        let (mut asking_policies, mut requires_approval, mut is_open) = (BTreeSet::new(), false, false);
        let (mut waived, mut allowed) = (0, 0);
        for candidate in &candidates {
            match decide(&*policy, &subject, candidate) {
                None => is_open = true,
                // The hub refuses a call that is denied, or calls an equivalent instead, and says why.
                Some(PolicyDecision::Deny(_)) => {}
                Some(PolicyDecision::Ask(grounds)) => {
                    requires_approval = true;
                    asking_policies.extend(grounds.policies.iter().cloned());
                }
                Some(PolicyDecision::Allow(grounds)) => {
                    let is_named = parts.rules.always_asks(&candidate.name, candidate.source_id().as_str());
                    allowed += 1;
                    waived += usize::from(grounds.waives_approval && !is_named);
                }
            }
        }
        self.permission = match self.permission {
            Permission::Deny => Permission::Deny,
            _ if requires_approval => Permission::Ask,
            _ if is_open => Permission::Allow,
            Permission::Ask if allowed > 0 && waived == allowed => Permission::Allow,
            permission => permission,
        };
        if !asking_policies.is_empty() {
            // Whoever allowed all calls of the tool in this run did not know of what these policies ask about.
            let parts = asking_policies.iter().map(|policy| policy.as_bytes());
            let parts = [self.identity.as_bytes()].into_iter().chain(parts);
            self.identity = ContentHash::of_parts(parts).to_string();
        }
        self
    }

    /// A name that no tool has: only trusted read-only tools with the same capability may replace it.
    fn unknown(parts: &AgentParts, tool: &str) -> Self {
        let hints = EffectiveHints {
            read_only: true,
            idempotent: true,
            destructive: false,
            open_world: None,
            declared: true,
        };
        Self {
            selected: None,
            source: None,
            read_only: true,
            permission: parts.rules.permission(tool, "", hints),
            effects: hints.label().to_owned(),
            // A substitute is checked when it is chosen.
            destinations: Vec::new(),
            reads_private: true,
            open_world: true,
            identity: ContentHash::of(tool).to_string(),
            definition_hashes: Vec::new(),
            input_schema: None,
            output_schema: None,
        }
    }

    /// What is logged about the tool when the plan is accepted.
    pub(in crate::driver) fn into_planned_tool(self, notes: Vec<String>) -> PlannedTool {
        let Self { source, read_only, permission, reads_private, open_world, .. } = self;
        PlannedTool { source, read_only, permission, reads_private, open_world, notes }
    }
}

pub(crate) fn stricter(one: Permission, other: Permission) -> Permission {
    match (one, other) {
        (Permission::Deny, _) | (_, Permission::Deny) => Permission::Deny,
        (Permission::Ask, _) | (_, Permission::Ask) => Permission::Ask,
        (Permission::Allow, Permission::Allow) => Permission::Allow,
    }
}
