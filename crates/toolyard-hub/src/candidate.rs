//! One tool of one source, with everything that decides whether and how it is called.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serde_json::Value;
use toolyard_core::{
    Capability, CapabilityTable, EffectiveHints, Param, SourceId, SourceInfo, SourceKind, Tool, ToolError,
    ToolKind, ToolSpec, compatible,
};

use crate::{
    gate::Gate,
    health::{Health, SourceState},
    rules::RoutingRules,
    validate::Validator,
};

/// A tool as the hub knows it: the seeds' name, source, tool, priority and meta.
pub struct ToolCandidate {
    /// The bare name.
    pub name: Arc<str>,
    /// Where it lives.
    pub source: Arc<Source>,
    /// What answers calls.
    pub tool: Arc<dyn Tool>,
    /// 0, 1 or 2 after the operator's preference; smaller goes first.
    pub priority: u8,
    /// What it is good for: declared, then found in its name, then in its description.
    pub capabilities: Vec<Capability>,
    /// How its results are raced, merged and cut.
    pub kind: ToolKind,
    /// What is believed about its effects.
    pub hints: EffectiveHints,
    /// Whether the operator put it first for its name.
    pub pinned: bool,
    declared_equal: bool,
    pub(crate) health: Arc<Health>,
    params: OnceLock<Vec<Param>>,
    validator: OnceLock<Validator>,
}

/// A source while it is registered; its state outlives the replacement of its tools.
#[derive(Debug)]
pub struct Source {
    /// What was said at registration.
    pub info: SourceInfo,
    pub(crate) state: Arc<SourceState>,
}

/// Where a candidate stands among all of its name, whatever happened so far; smaller goes first.
pub(crate) type Standing = (bool, u8, u64);

impl ToolCandidate {
    pub(crate) fn new(
        source: &Arc<Source>,
        tool: Arc<dyn Tool>,
        rules: &RoutingRules,
        table: &CapabilityTable,
    ) -> Self {
        let spec = tool.spec();
        let info = &source.info;
        let (capabilities, kind) = capabilities_and_kind(spec, table);
        let health = match info.kind {
            SourceKind::Native => source.state.of_tool(&spec.name),
            SourceKind::Skill | SourceKind::Mcp => Arc::clone(&source.state.shared),
        };
        Self {
            name: Arc::clone(&spec.name),
            priority: rules.prefer.priority(info.kind),
            capabilities,
            kind,
            hints: EffectiveHints::of(spec.hints, info.trusted, rules.hints_for(&spec.name, &info.id)),
            pinned: rules.pinned(&spec.name, &info.id),
            declared_equal: rules.declared_equal(&spec.name, &info.id),
            health,
            params: OnceLock::new(),
            validator: OnceLock::new(),
            source: Arc::clone(source),
            tool,
        }
    }

    /// The tool's description.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// The source's id.
    pub fn source_id(&self) -> &SourceId {
        &self.source.info.id
    }

    /// The parameters, read from the schema once.
    pub fn params(&self) -> &[Param] {
        self.params.get_or_init(|| self.spec().params())
    }

    /// Whether the two may stand in for one another: by the operator's word, or trusted both with schemas that
    /// take each other's calls.
    pub fn equivalent_to(&self, other: &Self) -> bool {
        let trusted = self.source.info.trusted && other.source.info.trusted;
        (self.declared_equal && other.declared_equal)
            || (trusted && self.name == other.name && compatible(self.params(), other.params()))
    }

    /// Whether the arguments fit the schema.
    pub(crate) fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        self.validator
            .get_or_init(|| Validator::compile(&self.spec().input_schema))
            .check(arguments)
            .map_err(|error| self.locate(error))
    }

    /// Names this tool and source in an error that does not name them yet.
    pub(crate) fn locate(&self, error: ToolError) -> ToolError {
        error.on_tool(&self.name).on_source(self.source_id())
    }

    /// Where a call waits for its turn: calls that exclude others exclude those to all tools of the source.
    pub(crate) fn gate(&self) -> &Gate {
        if self.source.info.exclusive { &self.source.state.shared.gate } else { &self.health.gate }
    }

    /// Pinned, then by priority, then whoever was registered first.
    pub(crate) fn standing(&self) -> Standing {
        (!self.pinned, self.priority, self.sequence())
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.source.state.sequence
    }
}

/// Declared capabilities first, then those found in the name, then in the description; the first two tell the kind.
fn capabilities_and_kind(spec: &ToolSpec, table: &CapabilityTable) -> (Vec<Capability>, ToolKind) {
    let mut named = spec.capabilities.clone();
    let mut described = Vec::new();
    if !spec.untagged {
        named.extend(table.extract(&spec.name, ""));
        described = table.tags_in(&spec.description);
    }
    let kind = ToolKind::of(&named);
    let mut capabilities: Vec<Capability> = Vec::with_capacity(named.len());
    for capability in named.into_iter().chain(described) {
        if !capabilities.contains(&capability) {
            capabilities.push(capability);
        }
    }
    (capabilities, kind)
}

impl fmt::Debug for ToolCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.source_id())
    }
}

impl fmt::Display for ToolCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = &self.source.info;
        let trust = if info.trusted { "trusted" } else { "not trusted" };
        if info.id.as_str() == info.kind.to_string() {
            write!(f, "{} ({trust})", info.id)
        } else {
            write!(f, "{} ({}, {trust})", info.id, info.kind)
        }
    }
}
