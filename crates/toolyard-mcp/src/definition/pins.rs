//! Decides which tools of a server may be called, given the definitions that were approved before.
//!
//! A definition is pinned when it is approved, by a user or by [`NewToolPolicy::Approve`]. From then on only approved
//! definitions of that name may be called; returning to an earlier approved definition needs no new approval. A new tool
//! that equals a tool which disappeared is quarantined as renamed: a new name must not evade a pin. With
//! [`NewToolPolicy::ApproveFirst`] a server cannot add to what the user saw at its first approval: later tools are held.

use std::collections::{BTreeMap, HashMap, HashSet};

use toolyard_core::{ContentHash, EffectiveHints, NameClaim, SourceId, StoredDefinition, ToolHints};

use super::{
    canonical::canonical_without,
    diff::diff_definitions,
    json_tree::{JsonTree, MAX_DEPTH},
    validate::{RejectedTool, ValidTool, ValidatedTools},
    validated_spec::parse_validated_spec,
};

/// What happens to a tool without earlier definitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NewToolPolicy {
    /// It is approved and reported.
    #[default]
    Approve,
    /// The tools of the first list are approved. A later tool is quarantined if the server is not trusted, if another
    /// source has a tool of the same name, or if it is riskier than all tools that were approved before.
    ApproveFirst {
        /// Whether the server is trusted.
        trusted: bool,
    },
    /// It is quarantined until a user approves it.
    Quarantine,
}

/// The decision on a list of tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PinDecision {
    /// Tools that may be called.
    pub approved: Vec<ValidTool>,
    /// Tools that await approval.
    pub quarantined: Vec<QuarantinedTool>,
    /// Invalid definitions.
    pub rejected: Vec<RejectedTool>,
    /// Names of approved tools that [`NewToolPolicy::Approve`] approved just now.
    pub newly_approved: Vec<String>,
    /// Names that were approved earlier and are no longer in the list.
    pub removed: Vec<String>,
    /// Definitions to store before any tool is called.
    pub records: Vec<StoredDefinition>,
    /// Claims on bare names: of the approved tools, and of tools that were approved earlier. Whoever stores the decision
    /// adds them.
    pub names: BTreeMap<String, NameClaim>,
}

/// A tool that awaits approval.
#[derive(Debug, Clone, PartialEq)]
pub struct QuarantinedTool {
    /// The tool as it is now.
    pub tool: ValidTool,
    /// Why it was quarantined.
    pub reason: QuarantineReason,
    /// How it differs from the approved definition, as lines.
    pub difference: Vec<String>,
}

/// Why a tool is quarantined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuarantineReason {
    /// The server now describes the tool in another way than when it was approved.
    ///
    /// Remedy: review the change with `toolyard servers show NAME`, then approve it: `toolyard servers approve NAME
    /// TOOL`.
    #[error("the definition changed since it was approved")]
    Changed,
    /// The tool equals one that disappeared, so it may be the same under a new name.
    ///
    /// Remedy: review it with `toolyard servers show NAME`, then approve it: `toolyard servers approve NAME TOOL`.
    #[error("looks like {from} under a new name")]
    Renamed {
        /// The name that disappeared.
        from: String,
    },
    /// The server has `hold_new_tools = "all"`, and the tool was never approved.
    ///
    /// Remedy: review it with `toolyard servers show NAME`, then approve it: `toolyard servers approve NAME TOOL`.
    #[error("not approved yet")]
    Unapproved,
    /// A server that is known added a tool with the name of a tool of another source.
    ///
    /// Remedy: review it with `toolyard servers show NAME`, then approve it: `toolyard servers approve NAME TOOL` (with
    /// `--take-names` to give it the bare name).
    #[error("new since the first approval, and `{owner}` has a tool of the same name")]
    NameInUse {
        /// The other source.
        owner: SourceId,
    },
    /// A server that is known added a tool with more effects than all its tools had before.
    ///
    /// Remedy: review it with `toolyard servers show NAME`, then approve it: `toolyard servers approve NAME TOOL`.
    #[error("new since the first approval, and riskier than all approved tools of the server: {effect}")]
    RaisesRisk {
        /// What it is, in a word.
        effect: &'static str,
    },
    /// A server that is not trusted added a tool after its first approval.
    ///
    /// Remedy: review it with `toolyard servers show NAME`, then approve it: `toolyard servers approve NAME TOOL`, or
    /// trust the server: `toolyard servers trust NAME`.
    #[error("new since the first approval")]
    Later,
}

impl PinDecision {
    /// The definitions to store when a user approves quarantined tools: all of them, or those with these names. Only the
    /// definitions of this decision are approved, not what the server sends later.
    pub fn approval_records(
        &self,
        tools: Option<&[String]>,
        now: i64,
    ) -> Result<Vec<StoredDefinition>, NotQuarantined> {
        let is_quarantined =
            |name: &String| self.quarantined.iter().any(|quarantined| *quarantined.tool.spec.name == **name);
        if let Some(name) = tools.unwrap_or_default().iter().find(|name| !is_quarantined(name)) {
            return Err(NotQuarantined(name.clone()));
        }
        let is_chosen =
            |tool: &ValidTool| tools.is_none_or(|names| names.iter().any(|name| *name == *tool.spec.name));
        let quarantined =
            self.quarantined.iter().map(|quarantined| &quarantined.tool).filter(|tool| is_chosen(tool));
        Ok(quarantined.map(|tool| stored_definition(tool, Approval::Approved, now)).collect())
    }
}

/// The tool is approved already, or does not exist.
///
/// Remedy: list what awaits approval with `toolyard servers show NAME`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} does not await approval")]
pub struct NotQuarantined(pub String);

/// Decides which tools of a list may be called. `history` holds every definition the server ever sent, `name_user` is
/// another source that has a tool of the given name, `now` is in milliseconds since 1970.
pub fn decide_pins(
    history: &[StoredDefinition],
    list: ValidatedTools,
    new_tool_policy: NewToolPolicy,
    name_user: &dyn Fn(&str) -> Option<SourceId>,
    now: i64,
) -> PinDecision {
    let pins = Pins::new(history);
    let mut decision = PinDecision { removed: pins.removed(&list), ..PinDecision::default() };
    let missing_features = pins.missing_features(&list);
    let new_tools = NewToolRules::new(&pins, new_tool_policy, name_user);
    for tool in list.valid {
        let (name, known) = (tool.spec.name.to_string(), pins.is_known(&tool));
        let reason = pins.quarantine_reason(&tool, &missing_features, &new_tools);
        if !known {
            let approval = if reason.is_none() { Approval::Approved } else { Approval::Pending };
            decision.records.push(stored_definition(&tool, approval, now));
        }
        match reason {
            None => {
                if !known {
                    decision.newly_approved.push(name);
                }
                decision.approved.push(tool);
            }
            Some(reason) => {
                let difference = pins.diff(&tool, &reason);
                decision.quarantined.push(QuarantinedTool { tool, reason, difference });
            }
        }
    }
    decision.rejected = list.rejected;
    decision
}

#[derive(Clone, Copy, PartialEq)]
enum Approval {
    Approved,
    Pending,
}

fn stored_definition(tool: &ValidTool, approval: Approval, now: i64) -> StoredDefinition {
    StoredDefinition {
        tool: tool.spec.name.to_string(),
        hash: tool.hash,
        definition: tool.definition.clone(),
        approved: approval == Approval::Approved,
        first_seen_at: now,
    }
}

/// Decides on tools without an approved definition.
struct NewToolRules<'a> {
    policy: NewToolPolicy,
    /// Whether a tool of the server was approved before.
    is_known_server: bool,
    /// The highest risk of the tools that were approved before.
    max_risk: u8,
    name_user: &'a dyn Fn(&str) -> Option<SourceId>,
}

impl<'a> NewToolRules<'a> {
    fn new(pins: &Pins<'_>, policy: NewToolPolicy, name_user: &'a dyn Fn(&str) -> Option<SourceId>) -> Self {
        let approved = || pins.by_tool.values().flatten().filter(|known| known.approved);
        let max_risk = match policy {
            NewToolPolicy::ApproveFirst { trusted: true } => approved()
                .filter_map(|known| parse_validated_spec(&known.definition))
                .map(|spec| risk(spec.hints))
                .max()
                .unwrap_or(0),
            _ => 0,
        };
        Self { policy, is_known_server: approved().next().is_some(), max_risk, name_user }
    }

    fn reason(&self, tool: &ValidTool) -> Option<QuarantineReason> {
        let trusted = match self.policy {
            NewToolPolicy::Approve => return None,
            NewToolPolicy::Quarantine => return Some(QuarantineReason::Unapproved),
            NewToolPolicy::ApproveFirst { .. } if !self.is_known_server => return None,
            NewToolPolicy::ApproveFirst { trusted } => trusted,
        };
        if let Some(owner) = (self.name_user)(&tool.spec.name) {
            return Some(QuarantineReason::NameInUse { owner });
        }
        if !trusted {
            return Some(QuarantineReason::Later);
        }
        let effect = EffectiveHints::of(tool.spec.hints, true, ToolHints::default()).effect();
        (risk(tool.spec.hints) > self.max_risk).then_some(QuarantineReason::RaisesRisk { effect })
    }
}

/// How much a tool with these hints may change: 0 nothing, 1 something, 2 it may destroy something.
fn risk(hints: ToolHints) -> u8 {
    match EffectiveHints::of(hints, true, ToolHints::default()) {
        EffectiveHints { read_only: true, .. } => 0,
        EffectiveHints { destructive: true, .. } => 2,
        EffectiveHints { .. } => 1,
    }
}

/// Earlier definitions, by tool.
struct Pins<'a> {
    by_tool: HashMap<&'a str, Vec<&'a StoredDefinition>>,
    hashes: HashSet<(&'a str, ContentHash)>,
}

impl<'a> Pins<'a> {
    fn new(history: &'a [StoredDefinition]) -> Self {
        let mut by_tool: HashMap<&str, Vec<&StoredDefinition>> = HashMap::new();
        for definition in history {
            by_tool.entry(definition.tool.as_str()).or_default().push(definition);
        }
        Self { by_tool, hashes: history.iter().map(|known| (known.tool.as_str(), known.hash)).collect() }
    }

    fn definitions(&self, tool: &str) -> &[&'a StoredDefinition] {
        self.by_tool.get(tool).map_or(&[], Vec::as_slice)
    }

    fn is_known(&self, tool: &ValidTool) -> bool {
        self.hashes.contains(&(tool.spec.name.as_ref(), tool.hash))
    }

    /// The newest approved definition.
    fn pinned(&self, tool: &str) -> Option<&'a StoredDefinition> {
        let approved = self.definitions(tool).iter().copied().filter(|known| known.approved);
        approved.max_by_key(|known| known.first_seen_at)
    }

    fn quarantine_reason(
        &self,
        tool: &ValidTool,
        missing_features: &HashMap<String, &'a str>,
        new_tools: &NewToolRules<'_>,
    ) -> Option<QuarantineReason> {
        let known = self.definitions(&tool.spec.name);
        if known.iter().any(|known| known.approved && known.hash == tool.hash) {
            return None;
        }
        if known.iter().any(|known| known.approved) {
            return Some(QuarantineReason::Changed);
        }
        let rename_features =
            if missing_features.is_empty() { Vec::new() } else { rename_features(tool.definition.get()) };
        if let Some(from) = rename_features.iter().find_map(|feature| missing_features.get(feature)) {
            return Some(QuarantineReason::Renamed { from: (*from).to_owned() });
        }
        new_tools.reason(tool).or_else(|| (!known.is_empty()).then_some(QuarantineReason::Unapproved))
    }

    fn diff(&self, tool: &ValidTool, reason: &QuarantineReason) -> Vec<String> {
        let before = match reason {
            QuarantineReason::Changed => self.pinned(&tool.spec.name),
            QuarantineReason::Renamed { from } => {
                self.pinned(from).or_else(|| self.definitions(from).last().copied())
            }
            QuarantineReason::Unapproved
            | QuarantineReason::NameInUse { .. }
            | QuarantineReason::RaisesRisk { .. }
            | QuarantineReason::Later => None,
        };
        let lines = before.map(|before| diff_definitions(&before.definition, &tool.definition));
        lines.and_then(Result::ok).unwrap_or_default()
    }

    /// Names with earlier definitions that are not in the list, sorted.
    fn missing(&self, list: &ValidatedTools) -> Vec<&'a str> {
        let valid = list.valid.iter().map(|tool| tool.spec.name.as_ref());
        let rejected = list.rejected.iter().filter_map(|tool| tool.name.as_deref());
        let present: HashSet<&str> = valid.chain(rejected).collect();
        let mut missing: Vec<&str> =
            self.by_tool.keys().copied().filter(|name| !present.contains(name)).collect();
        missing.sort_unstable();
        missing
    }

    fn removed(&self, list: &ValidatedTools) -> Vec<String> {
        let removed = self.missing(list).into_iter().filter(|name| self.pinned(name).is_some());
        removed.map(str::to_owned).collect()
    }

    /// Identifying features of all tools that are not in the list, approved or not: a quarantined tool must not return
    /// under another name, either. Empty when the list has no new tool.
    fn missing_features(&self, list: &ValidatedTools) -> HashMap<String, &'a str> {
        let missing = self.missing(list);
        if list.valid.iter().all(|tool| self.pinned(&tool.spec.name).is_some()) {
            return HashMap::new();
        }
        let definitions =
            missing.iter().flat_map(|name| self.definitions(name).iter().map(|known| (*name, *known)));
        definitions
            .flat_map(|(name, known)| {
                rename_features(known.definition.get()).into_iter().map(move |feature| (feature, name))
            })
            .collect()
    }
}

/// Features by which a renamed tool is recognized: everything but name and title, or the description.
fn rename_features(definition: &str) -> Vec<String> {
    let Ok(tree) = JsonTree::parse(definition, MAX_DEPTH) else { return Vec::new() };
    let rest = format!("all {}", canonical_without(&tree, &["name", "title"]));
    let description = tree.get("description").and_then(JsonTree::as_text).map(str::trim);
    let description = description.filter(|text| !text.is_empty());
    std::iter::once(rest).chain(description.map(|text| format!("description {text}"))).collect()
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
