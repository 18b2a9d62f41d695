//! One tool of one source, with everything that decides whether and how it is called.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serde_json::Value;
use toolyard_core::{
    Capability, CapabilityTable, EffectiveHints, Param, PolicyTool, SourceId, SourceInfo, SourceKind, Tool,
    ToolError, ToolKind, ToolSpec, are_compatible,
};

use crate::{
    execution::validate::Validator,
    resilience::{
        concurrency_limit::ConcurrencyLimit,
        health::{Health, SourceState},
    },
    routing::rules::RoutingRules,
};

/// A registered tool of one source (`ToolCandidate` in the specification).
pub struct ToolCandidate {
    /// Tool name without the source.
    pub name: Arc<str>,
    /// The source that provides it.
    pub source: Arc<RegisteredSource>,
    /// The implementation.
    pub tool: Arc<dyn Tool>,
    /// 0, 1 or 2, by the operator's preferred kind of source; smaller is preferred.
    pub priority: u8,
    /// Capabilities: declared, then found in the name, then in the description.
    pub capabilities: Box<[Capability]>,
    /// The first capability that is declared or found in the name. Those found in a description are less reliable.
    pub main_capability: Option<Capability>,
    /// Tool kind; decides strategy and output limit.
    pub kind: ToolKind,
    /// Effective hints about its effects.
    pub hints: EffectiveHints,
    /// Whether the operator pinned it for its name.
    pub pinned: bool,
    /// Whether the operator denies its calls.
    pub denied: bool,
    /// Whether a call by its bare name may reach it, if no other candidate is preferred. Otherwise the name belongs to
    /// [`Self::yields_to`].
    pub owns_name: bool,
    /// The source that had the name before this one.
    pub yields_to: Option<SourceId>,
    /// Whether its source claims the bare name, although another one may own it.
    contends: bool,
    claimed_at: i64,
    is_declared_equivalent: bool,
    pub(crate) health: Arc<Health>,
    // In boxes, because most tools are never called or described.
    params: OnceLock<Box<[Param]>>,
    validator: OnceLock<Box<Validator>>,
    policy_tool: OnceLock<Box<PolicyTool>>,
}

/// A registered source; its health is kept when its tools are replaced.
#[derive(Debug)]
pub struct RegisteredSource {
    /// As given at registration.
    pub info: SourceInfo,
    pub(crate) state: Arc<SourceState>,
}

/// Sort key of a candidate among all of its name: does not own the name, not pinned, priority, time of its claim,
/// registration order. Smaller is preferred.
pub(crate) type PreferenceKey = (bool, bool, u8, i64, u64);

impl ToolCandidate {
    pub(crate) fn new(
        source: &Arc<RegisteredSource>,
        tool: Arc<dyn Tool>,
        rules: &RoutingRules,
        capability_table: &CapabilityTable,
    ) -> Self {
        let spec = tool.spec();
        let info = &source.info;
        let ToolCapabilities { capabilities, main_capability, kind } =
            ToolCapabilities::of(spec, capability_table);
        let health = match info.kind {
            SourceKind::Native => source.state.tool_health(&spec.name),
            SourceKind::Skill | SourceKind::Mcp => Arc::clone(&source.state.shared),
        };
        let pinned = rules.is_pinned(&spec.name, &info.id);
        let claim = tool.name_claim();
        let yields_to = claim.and_then(|claim| claim.yields_to.clone());
        let may_replace = |owner: &SourceId| {
            rules.prefer.priority(owner.kind()) > rules.prefer.priority(info.kind)
                || [owner, &info.id].iter().all(|id| rules.is_declared_equivalent(&spec.name, id))
        };
        Self {
            name: Arc::clone(&spec.name),
            owns_name: pinned || yields_to.as_ref().is_none_or(may_replace),
            contends: claim.is_some_and(|claim| claim.contests || claim.yields_to.is_none()),
            claimed_at: claim.map_or(0, |claim| claim.claimed_at),
            priority: rules.prefer.priority(info.kind),
            capabilities: capabilities.into(),
            main_capability,
            kind,
            hints: EffectiveHints::of(spec.hints, info.trusted, rules.hints_for(&spec.name, &info.id)),
            pinned,
            denied: rules.is_denied(&spec.name, &info.id),
            is_declared_equivalent: rules.is_declared_equivalent(&spec.name, &info.id),
            health,
            params: OnceLock::new(),
            validator: OnceLock::new(),
            policy_tool: OnceLock::new(),
            source: Arc::clone(source),
            yields_to,
            tool,
        }
    }

    /// The tool definition.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// The source's id.
    pub fn source_id(&self) -> &SourceId {
        &self.source.info.id
    }

    /// Parameters, parsed from the schema once.
    pub fn params(&self) -> &[Param] {
        self.params.get_or_init(|| self.spec().params().into())
    }

    /// The tool as policies see it.
    pub fn policy_tool(&self) -> &PolicyTool {
        self.policy_tool.get_or_init(|| {
            let (name, source) = (Arc::clone(&self.name), self.source_id().clone());
            let (trusted, capabilities) = (self.source.info.trusted, self.capabilities.to_vec());
            Box::new(PolicyTool::new(name, source, trusted, self.hints, capabilities))
        })
    }

    /// Whether the two are equivalent: declared by the operator, or both trusted with compatible schemas, unless their
    /// sources are instances of one program with different settings, which act on different things.
    pub fn equivalent_to(&self, other: &Self) -> bool {
        let (info, other_info) = (&self.source.info, &other.source.info);
        (self.is_declared_equivalent && other.is_declared_equivalent)
            || (info.trusted
                && other_info.trusted
                && self.name == other.name
                && !self.is_other_instance(other)
                && are_compatible(self.params(), other.params()))
    }

    /// Whether the sources of the two are instances of one program that act on different things, and the operator did not
    /// declare them equivalent.
    pub(crate) fn is_other_instance(&self, other: &Self) -> bool {
        !(self.is_declared_equivalent && other.is_declared_equivalent)
            && self.source.info.scope.is_other_instance(&other.source.info.scope)
    }

    /// Whether the bare name is ambiguous between this tool and the one that has it: no setting assigns it to either.
    pub(crate) fn contends_with(&self, bare: &Self) -> bool {
        self.contends
            && !bare.pinned
            && !bare.is_declared_equivalent
            && !self.denied
            && self.priority == bare.priority
            && self.source_id() != bare.source_id()
            && !self.equivalent_to(bare)
    }

    pub(crate) fn check(&self, arguments: &Value) -> Result<(), ToolError> {
        self.validator
            .get_or_init(|| Box::new(Validator::compile(&self.spec().input_schema)))
            .check(arguments)
            .map_err(|error| self.locate(error))
    }

    /// Adds this tool and source to an error that does not name them yet.
    pub(crate) fn locate(&self, error: ToolError) -> ToolError {
        error.on_tool(&self.name).on_source(self.source_id())
    }

    /// The limit on concurrent calls; that of the whole source if the source is exclusive.
    pub(crate) fn concurrency_limit(&self) -> &ConcurrencyLimit {
        if self.source.info.exclusive {
            &self.source.state.shared.concurrency_limit
        } else {
            &self.health.concurrency_limit
        }
    }

    /// Those that may own the name first, then pinned, then by priority, by the time of their claim on the name, and by
    /// registration order.
    pub(crate) fn preference_key(&self) -> PreferenceKey {
        (!self.owns_name, !self.pinned, self.priority, self.claimed_at, self.sequence())
    }

    pub(crate) fn sequence(&self) -> u64 {
        self.source.state.sequence
    }
}

struct ToolCapabilities {
    capabilities: Vec<Capability>,
    main_capability: Option<Capability>,
    kind: ToolKind,
}

impl ToolCapabilities {
    /// Declared capabilities, then those found in the name, then in the description; the first two groups decide the kind.
    fn of(spec: &ToolSpec, capability_table: &CapabilityTable) -> Self {
        let mut named = spec.capabilities.clone();
        let mut described = Vec::new();
        if !spec.declared_capabilities_only {
            named.extend(capability_table.extract(&spec.name, ""));
            described = capability_table.capabilities_in(&spec.description);
        }
        let (main_capability, kind) = (named.first().cloned(), ToolKind::of(&named));
        let mut capabilities: Vec<Capability> = Vec::with_capacity(named.len());
        for capability in named.into_iter().chain(described) {
            if !capabilities.contains(&capability) {
                capabilities.push(capability);
            }
        }
        Self { capabilities, main_capability, kind }
    }
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
