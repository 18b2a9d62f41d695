//! An independent model of routing: which sources may receive the arguments of a call, and what is known about the effects of their tools.

use std::collections::BTreeMap;

use toolyard_core::{SourceKind, ToolHints};
use toolyard_hub::RoutingRules;

use super::plan::{DeclaredHint, Definition, OperatorHint, Parameters, Plan, RulesPlan, ToolPlan};

/// What is known about the effects of a tool: declared by a trusted source, or said by the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownEffect {
    ReadOnly,
    Idempotent,
    Unknown,
}

/// A source that may receive the arguments of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpectedCandidate {
    pub(crate) source: usize,
    /// The registration that the call uses until it ends.
    pub(crate) version: u64,
    pub(crate) effect: KnownEffect,
}

/// The candidates of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExpectedRoute {
    pub(crate) candidates: Vec<ExpectedCandidate>,
    /// Whether sources were found, and all of them reject the arguments.
    pub(crate) all_reject: bool,
}

#[derive(Debug)]
struct RegisteredDefinition {
    definition: Definition,
    version: u64,
    sequence: u64,
}

/// What is registered, by the operator's rules of the moment.
#[derive(Debug)]
pub(crate) struct RoutingModel {
    rules: RulesPlan,
    kinds: Vec<SourceKind>,
    registered: BTreeMap<usize, RegisteredDefinition>,
    next_version: u64,
    next_sequence: u64,
}

impl RoutingModel {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            rules: plan.rules.clone(),
            kinds: plan.sources.iter().map(|source| source.kind).collect(),
            registered: BTreeMap::new(),
            next_version: 0,
            next_sequence: 0,
        }
    }

    /// Returns the version of the new registration. A source keeps its place in the order until it is removed.
    pub(crate) fn register(&mut self, source: usize, definition: Definition) -> u64 {
        let (version, next_sequence) = (self.next_version, self.next_sequence);
        self.next_version += 1;
        self.next_sequence += 1;
        let sequence = self.registered.get(&source).map_or(next_sequence, |known| known.sequence);
        self.registered.insert(source, RegisteredDefinition { definition, version, sequence });
        version
    }

    /// Returns whether the source was registered.
    pub(crate) fn remove(&mut self, source: usize) -> bool {
        self.registered.remove(&source).is_some()
    }

    pub(crate) fn set_rules(&mut self, rules: &RulesPlan) {
        self.rules = rules.clone();
    }

    pub(crate) fn route(&self, tool: &str, named: Option<usize>) -> ExpectedRoute {
        // `native` names no source.
        let named = named.filter(|source| self.kinds[*source] != SourceKind::Native);
        let mut found: Vec<usize> = self.registered.keys().copied().collect();
        found.retain(|source| self.tool(*source, tool).is_some());
        found.retain(|source| named.is_none_or(|named| named == *source));
        let Some(preferred) = found.iter().copied().min_by_key(|source| self.preference(tool, *source))
        else {
            return ExpectedRoute::default();
        };
        found.retain(|source| *source == preferred || self.are_equivalent(tool, preferred, *source));
        found.retain(|source| {
            self.tool(*source, tool).is_some_and(|tool| tool.parameters != Parameters::RejectsAll)
        });
        let candidates: Vec<ExpectedCandidate> = found
            .iter()
            .map(|source| ExpectedCandidate {
                source: *source,
                version: self.registered[source].version,
                effect: self.known_effect(tool, *source),
            })
            .collect();
        ExpectedRoute { all_reject: candidates.is_empty(), candidates }
    }

    fn tool(&self, source: usize, name: &str) -> Option<&ToolPlan> {
        self.registered.get(&source)?.definition.tools.iter().find(|tool| tool.name == name)
    }

    /// Smaller is preferred: pinned, then native, then registered first.
    fn preference(&self, tool: &str, source: usize) -> (bool, bool, u64) {
        let is_pinned = self.rules.pins.get(tool) == Some(&source);
        let is_native = self.kinds[source] == SourceKind::Native;
        (!is_pinned, !is_native, self.registered[&source].sequence)
    }

    fn are_equivalent(&self, tool: &str, one: usize, other: usize) -> bool {
        let declared = self.rules.equivalent.get(tool);
        let are_declared = declared.is_some_and(|sources| sources.contains(&one) && sources.contains(&other));
        let parameters = |source| self.tool(source, tool).map(|tool| tool.parameters);
        let is_trusted = |source| self.registered[source].definition.trusted;
        are_declared || ([one, other].iter().all(is_trusted) && parameters(one) == parameters(other))
    }

    fn known_effect(&self, name: &str, source: usize) -> KnownEffect {
        let is_trusted = self.registered[&source].definition.trusted;
        let declared = self.tool(source, name).map(|tool| tool.hint).filter(|_| is_trusted);
        let operator = self.rules.hints.iter().find(|((of, tool), _)| *of == source && *tool == name);
        match (operator.map(|(_, hint)| hint), declared) {
            (Some(OperatorHint::Writes), _) => KnownEffect::Unknown,
            (_, Some(DeclaredHint::ReadOnly)) => KnownEffect::ReadOnly,
            (Some(OperatorHint::Idempotent), _) | (_, Some(DeclaredHint::Idempotent)) => {
                KnownEffect::Idempotent
            }
            (None, None | Some(DeclaredHint::Nothing | DeclaredHint::Destructive)) => KnownEffect::Unknown,
        }
    }
}

/// The rules as the hub takes them.
pub(crate) fn hub_rules(plan: &Plan, rules: &RulesPlan) -> RoutingRules {
    let id = |source: &usize| plan.sources[*source].id.as_str().into();
    let mut hub_rules = RoutingRules::default();
    for (tool, sources) in &rules.equivalent {
        hub_rules.equivalent.insert((*tool).to_owned(), sources.iter().map(id).collect());
    }
    hub_rules.pins = rules.pins.iter().map(|(tool, source)| ((*tool).to_owned(), id(source))).collect();
    for ((source, tool), hint) in &rules.hints {
        let hints = match hint {
            OperatorHint::Idempotent => ToolHints::IDEMPOTENT,
            OperatorHint::Writes => {
                ToolHints { read_only: Some(false), idempotent: Some(false), ..ToolHints::default() }
            }
        };
        hub_rules.hints.entry(id(source)).or_default().insert((*tool).to_owned(), hints);
    }
    hub_rules
}
