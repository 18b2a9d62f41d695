//! What the hub and the rules say of a tool at this moment: where it lives, what it does, whether it may be called.

use toolyard_core::{ContentHash, EffectiveHints, RawJson, SourceId, ToolCallRequest};
use toolyard_hub::{Budget, definition_of, route_within, surface::Profile};

use crate::{AgentParts, Permission, StepFacts};

/// What is known of a tool now.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    /// Where it lives; none if there is no such tool.
    pub(super) source: Option<SourceId>,
    /// Whether all who may answer change nothing.
    pub(super) read_only: bool,
    pub(super) permission: Permission,
    /// Its effects in a word.
    pub(super) effects: &'static str,
    /// A hash of definition and source: a tool that changed is another one.
    pub(super) identity: String,
    /// The definitions of all who may answer.
    pub(super) definitions: Vec<ContentHash>,
    pub(super) input_schema: Option<RawJson>,
    pub(super) output_schema: Option<RawJson>,
}

/// The tools that an agent may use at all.
pub(super) fn profile(parts: &AgentParts) -> Profile {
    let tools = if parts.config.capabilities.enable_tool_calling {
        parts.config.tools.clone()
    } else {
        // No tool has an empty name.
        vec![String::new()]
    };
    Profile { tools, budget: Budget::Whole, within: parts.config.within.clone(), ..Profile::default() }
}

impl Standing {
    pub(super) fn of(parts: &AgentParts, tool: &str) -> Self {
        let request = ToolCallRequest::new(tool, RawJson::empty_object());
        let route = route_within(&parts.hub.snapshot(), &request, Some(&profile(parts)));
        let candidates = route.map(|route| route.candidates).unwrap_or_default();
        let Some(first) = candidates.first() else { return Self::of_nobody(parts, tool) };
        let rules = &parts.rules;
        let permissions =
            candidates.iter().map(|one| rules.permission(tool, one.source_id().as_str(), one.hints));
        let definition = serde_json::to_vec(first.spec()).unwrap_or_default();
        let parts_of_it = [tool.as_bytes(), first.source_id().as_str().as_bytes(), definition.as_slice()];
        Self {
            source: Some(first.source_id().clone()),
            read_only: candidates.iter().all(|one| one.hints.read_only),
            permission: permissions.reduce(stricter).unwrap_or(Permission::Ask),
            effects: first.hints.word(),
            identity: ContentHash::of_parts(parts_of_it).to_string(),
            definitions: candidates.iter().map(|one| definition_of(one.spec())).collect(),
            input_schema: Some(first.spec().input_schema.clone()),
            output_schema: first.spec().output_schema.clone(),
        }
    }

    /// Nobody has this name: only trusted tools that only read may stand in for it.
    fn of_nobody(parts: &AgentParts, tool: &str) -> Self {
        let harmless = EffectiveHints { read_only: true, idempotent: true, destructive: false };
        Self {
            source: None,
            read_only: true,
            permission: parts.rules.permission(tool, "", harmless),
            effects: harmless.word(),
            identity: ContentHash::of(tool).to_string(),
            definitions: Vec::new(),
            input_schema: None,
            output_schema: None,
        }
    }

    pub(super) fn facts(&self) -> StepFacts {
        let Self { source, read_only, permission, .. } = self;
        StepFacts {
            source: source.clone(),
            read_only: *read_only,
            permission: *permission,
            notes: Vec::new(),
        }
    }
}

/// Whichever lets less happen.
pub(super) fn stricter(one: Permission, other: Permission) -> Permission {
    match (one, other) {
        (Permission::Deny, _) | (_, Permission::Deny) => Permission::Deny,
        (Permission::Ask, _) | (_, Permission::Ask) => Permission::Ask,
        (Permission::Allow, Permission::Allow) => Permission::Allow,
    }
}
