//! Which tools of one server may be called.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use toolyard_core::{
    ContentHash, ErrorKind, NameClaim, QuarantineNotice, RawJson, SourceId, ToolError, ToolSpec,
};
use toolyard_mcp::definition::{PinDecision, ValidTool, diff_definitions, parse_validated_spec};

/// A tool that may be called.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovedTool {
    /// The tool.
    pub spec: ToolSpec,
    /// The hash of the approved definition.
    pub pin: ContentHash,
    /// What was ignored in the definition or removed from it.
    pub notes: Vec<String>,
    /// The claim of the server on the bare name.
    pub claim: NameClaim,
}

/// A tool that may not be called until a user approves its definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantinedTool {
    /// Its name.
    pub name: String,
    /// The hash of the definition that awaits approval.
    pub pin: ContentHash,
    /// Why it is quarantined.
    pub reason: String,
    /// How the definition differs from the approved one, as lines.
    pub difference: Vec<String>,
}

/// A tool whose definition is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedTool {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Why the definition is invalid.
    pub reason: String,
}

/// The tools of one server: approved, quarantined or rejected.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolApprovals {
    /// Shared with the registered tools.
    approved: Vec<Arc<ApprovedTool>>,
    /// The positions of `approved` by tool name.
    by_name: Box<[u32]>,
    /// Tools that await approval.
    pub quarantined: Vec<QuarantinedTool>,
    /// Tools with invalid definitions.
    pub rejected: Vec<RejectedTool>,
    /// Claims on the names of tools that were approved earlier and are not approved or not offered now.
    pub former_names: BTreeMap<String, NameClaim>,
    /// Names of tools that were approved because they are new.
    pub newly_approved: Vec<String>,
}

impl ToolApprovals {
    fn new(approved: Vec<ApprovedTool>) -> Self {
        let mut by_name: Vec<(&str, u32)> = approved.iter().map(|tool| &*tool.spec.name).zip(0..).collect();
        by_name.sort_unstable();
        let by_name = by_name.into_iter().map(|(_, position)| position).collect();
        Self { approved: approved.into_iter().map(Arc::new).collect(), by_name, ..Self::default() }
    }

    /// Tools that may be called, in the order of the server.
    pub fn approved(&self) -> &[Arc<ApprovedTool>] {
        &self.approved
    }

    /// Whether the same tools are approved, quarantined and rejected.
    pub(crate) fn has_same_tools(&self, other: &Self) -> bool {
        (&self.approved, &self.quarantined, &self.rejected, &self.former_names)
            == (&other.approved, &other.quarantined, &other.rejected, &other.former_names)
    }

    fn find(&self, name: &str) -> Option<&ApprovedTool> {
        let tool = |position: u32| self.approved.get(usize::try_from(position).ok()?);
        let found = self
            .by_name
            .binary_search_by(|position| tool(*position).map(|tool| &*tool.spec.name).cmp(&Some(name)));
        tool(*self.by_name.get(found.ok()?)?).map(AsRef::as_ref)
    }

    /// How many tools are quarantined or rejected, as a phrase; `None` if none are.
    pub fn problem_summary(&self) -> Option<String> {
        let describe = |count: usize, singular: &str, plural: &str| match count {
            0 => None,
            1 => Some(format!("1 {singular}")),
            count => Some(format!("{count} {plural}")),
        };
        let quarantined = describe(self.quarantined.len(), "tool awaits approval", "tools await approval");
        let rejected = describe(self.rejected.len(), "invalid definition", "invalid definitions");
        let all: Vec<String> = [quarantined, rejected].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// Fails unless the definition with the hash `pin` is approved. `source` is the server of these tools.
    pub(crate) fn check(&self, source: &SourceId, tool: &str, pin: ContentHash) -> Result<(), ToolError> {
        if self.find(tool).is_some_and(|approved| approved.pin == pin) {
            return Ok(());
        }
        let error = match self.quarantined.iter().find(|quarantined| quarantined.name == tool) {
            Some(quarantined) => ToolError::new(ErrorKind::Quarantined, quarantined.reason.clone())
                .with_operator_hint(format!("review the change: toolyard servers show {source}"))
                .with_caller_hint("only the operator can approve it"),
            None => ToolError::new(
                ErrorKind::Refused,
                "the server no longer offers this tool, or offers another definition of it",
            )
            .with_operator_hint("list the available tools: toolyard tools list"),
        };
        Err(error.on_tool(tool).on_source(source))
    }

    /// The tools that await approval, by name and reason.
    pub fn quarantine_notices(&self) -> Vec<QuarantineNotice> {
        let notice = |tool: &QuarantinedTool| QuarantineNotice {
            tool: tool.name.clone(),
            reason: tool.reason.clone(),
        };
        self.quarantined.iter().map(notice).collect()
    }

    /// The claims on all names: of approved tools and former ones.
    pub(crate) fn names(&self) -> impl Iterator<Item = (Arc<str>, &NameClaim)> {
        let approved = self.approved.iter().map(|tool| (Arc::clone(&tool.spec.name), &tool.claim));
        approved.chain(self.former_names.iter().map(|(name, claim)| (name.as_str().into(), claim)))
    }

    /// The tools of a decision.
    pub fn from_decision(decision: PinDecision) -> Self {
        let mut names = decision.names;
        let approved = decision.approved.into_iter().map(|tool| ApprovedTool {
            claim: names.remove(&*tool.spec.name).unwrap_or_default(),
            spec: tool.spec,
            pin: tool.hash,
            notes: tool.notes,
        });
        let approved: Vec<ApprovedTool> = approved.collect();
        let quarantined = decision.quarantined.into_iter().map(|quarantined| QuarantinedTool {
            name: quarantined.tool.spec.name.to_string(),
            pin: quarantined.tool.hash,
            reason: quarantined.reason.to_string(),
            difference: match quarantined.difference.as_slice() {
                // There is nothing to compare with: show the whole definition.
                [] => describe_definition(&quarantined.tool),
                _ => quarantined.difference,
            },
        });
        let rejected = decision.rejected.into_iter();
        let rejected = rejected.map(|tool| RejectedTool { name: tool.name, reason: tool.reason.to_string() });
        Self {
            quarantined: quarantined.collect(),
            rejected: rejected.collect(),
            newly_approved: decision.newly_approved,
            former_names: names,
            ..Self::new(approved)
        }
    }

    /// The stored form of a decision on this tool list.
    pub(crate) fn to_stored(decision: &PinDecision, list: &[RawJson]) -> Option<RawJson> {
        let approved = decision.approved.iter().filter_map(|tool| {
            let index = list.iter().position(|listed| *listed == tool.definition)?;
            let sanitized = tool.spec.raw.clone().filter(|raw| *raw != tool.definition);
            let claim = decision.names.get(&*tool.spec.name).cloned().unwrap_or_default();
            Some(StoredTool { index, pin: tool.hash, claim, notes: tool.notes.clone(), sanitized })
        });
        let Self { quarantined, rejected, mut former_names, .. } =
            Self::from_decision(PinDecision { approved: Vec::new(), ..decision.clone() });
        former_names.retain(|name, _| !decision.approved.iter().any(|tool| *tool.spec.name == **name));
        let stored = StoredApprovals { approved: approved.collect(), quarantined, rejected, former_names };
        RawJson::from_serialize(&stored).ok()
    }

    /// The approvals stored with this tool list; `None` if the two do not fit together.
    pub(crate) fn from_stored(stored: &RawJson, list: &[RawJson]) -> Option<Self> {
        let stored: StoredApprovals = stored.read().ok()?;
        let restore = |tool: StoredTool| {
            let raw = tool.sanitized.or_else(|| list.get(tool.index).cloned())?;
            let spec = parse_validated_spec(&raw)?;
            Some(ApprovedTool { spec, pin: tool.pin, notes: tool.notes, claim: tool.claim })
        };
        Some(Self {
            quarantined: stored.quarantined,
            rejected: stored.rejected,
            former_names: stored.former_names,
            ..Self::new(stored.approved.into_iter().map(restore).collect::<Option<_>>()?)
        })
    }
}

/// A whole definition as lines: its difference from an empty one.
fn describe_definition(tool: &ValidTool) -> Vec<String> {
    let empty = RawJson::from(serde_json::json!({"name": tool.spec.name}));
    diff_definitions(&empty, &tool.definition).unwrap_or_default()
}

/// Approvals as stored beside the tool list; approved tools refer to it by index.
#[derive(Debug, Serialize, Deserialize)]
struct StoredApprovals {
    approved: Vec<StoredTool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    quarantined: Vec<QuarantinedTool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rejected: Vec<RejectedTool>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    former_names: BTreeMap<String, NameClaim>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredTool {
    index: usize,
    pin: ContentHash,
    claim: NameClaim,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// The definition without unsafe characters, where it differs from the one in the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sanitized: Option<RawJson>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_is_told_which_server_to_review() {
        let pin = ContentHash::of(b"definition");
        let held = QuarantinedTool {
            name: "greet".to_owned(),
            pin,
            reason: "the definition changed".to_owned(),
            difference: Vec::new(),
        };
        let approvals = ToolApprovals { quarantined: vec![held], ..ToolApprovals::default() };
        let error = approvals.check(&"fake".into(), "greet", pin).unwrap_err();
        assert_eq!(error.hint(), Some("review the change: toolyard servers show fake"));
    }
}
