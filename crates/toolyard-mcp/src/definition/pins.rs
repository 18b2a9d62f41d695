//! Which tools may serve, given what was approved before and what the server sends now.
//!
//! A definition is pinned when it is approved: by a person, or by the rule of first sight. From then on a tool serves
//! only with a definition that was approved for its name, whichever of them it is: one that returns to an approved form
//! is approved. A tool that comes new to a known server is approved by first sight, too, and named in the notice; with
//! [`FirstSight::Ask`] it waits for a person. A tool that comes new while another one vanished is taken for that other
//! one under a changed name, and waits, when it says the same: a pin must not be shed by a new name.

use std::collections::{HashMap, HashSet};

use toolyard_core::{ContentHash, ToolDefinition};

use super::{
    canonical::canonical_without,
    difference::difference,
    judge::{JudgedList, QuarantinedTool, UsableTool},
    tree::Tree,
};

/// Levels that are read of a remembered definition; more never got a pin.
const DEPTH: usize = 64;

/// What happens with a definition of a tool that was never seen before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FirstSight {
    /// It is approved, and named in the notice.
    #[default]
    Trust,
    /// It waits for a person.
    Ask,
}

/// What is done with a list of tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PinDecision {
    /// These serve.
    pub in_service: Vec<UsableTool>,
    /// These wait for a person.
    pub blocked: Vec<BlockedTool>,
    /// These cannot be used at all.
    pub quarantined: Vec<QuarantinedTool>,
    /// Names of those in service that the rule of first sight approved just now: the notice.
    pub first_seen: Vec<String>,
    /// Names that were approved once and are no longer in the list.
    pub gone: Vec<String>,
    /// What must be remembered before anything serves.
    pub records: Vec<ToolDefinition>,
}

/// A tool that waits for a person.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockedTool {
    /// The tool as it is now.
    pub tool: UsableTool,
    /// Why it waits.
    pub reason: Blocked,
    /// How it differs from what was approved, in lines for people.
    pub difference: Vec<String>,
}

/// Why a tool waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Blocked {
    /// It was approved in another form.
    #[error("its definition changed since it was approved")]
    Changed,
    /// It was approved under another name.
    #[error("it looks like {from} under a changed name")]
    Renamed {
        /// The name that is gone.
        from: String,
    },
    /// Nobody approved it yet.
    #[error("nobody approved it yet")]
    Unapproved,
}

impl PinDecision {
    /// What to remember when a person approves what is blocked: all of it, or only the tools of these names. It holds
    /// the very definitions that were shown; what the server sends later is not approved by it.
    pub fn approval(&self, tools: Option<&[String]>, now: i64) -> Result<Vec<ToolDefinition>, NotBlocked> {
        let is_blocked = |name: &String| self.blocked.iter().any(|blocked| *blocked.tool.spec.name == **name);
        if let Some(name) = tools.unwrap_or_default().iter().find(|name| !is_blocked(name)) {
            return Err(NotBlocked(name.clone()));
        }
        let chosen =
            |tool: &UsableTool| tools.is_none_or(|names| names.iter().any(|name| *name == *tool.spec.name));
        let blocked = self.blocked.iter().map(|blocked| &blocked.tool).filter(|tool| chosen(tool));
        Ok(blocked.map(|tool| record(tool, true, now)).collect())
    }
}

/// A tool that nobody has to approve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} does not wait for approval")]
pub struct NotBlocked(pub String);

/// Decides which tools of a list may serve. `history` is everything the server ever had; none for a server never seen.
pub fn decide(
    history: &[ToolDefinition],
    list: JudgedList,
    first_sight: FirstSight,
    now: i64,
) -> PinDecision {
    let pins = Pins::new(history);
    let mut decision = PinDecision { gone: pins.gone(&list), ..PinDecision::default() };
    let vanished = pins.vanished(&list);
    for tool in list.usable {
        let (name, known) = (tool.spec.name.to_string(), pins.is_known(&tool));
        let reason = pins.reason(&tool, &vanished, first_sight);
        if !known {
            decision.records.push(record(&tool, reason.is_none(), now));
        }
        match reason {
            None => {
                if !known {
                    decision.first_seen.push(name);
                }
                decision.in_service.push(tool);
            }
            Some(reason) => {
                let difference = pins.difference(&tool, &reason);
                decision.blocked.push(BlockedTool { tool, reason, difference });
            }
        }
    }
    decision.quarantined = list.quarantined;
    decision
}

fn record(tool: &UsableTool, approved: bool, now: i64) -> ToolDefinition {
    ToolDefinition {
        tool: tool.spec.name.to_string(),
        hash: tool.hash,
        definition: tool.definition.clone(),
        approved,
        first_seen_at: now,
    }
}

/// What was known, by name.
struct Pins<'a> {
    by_tool: HashMap<&'a str, Vec<&'a ToolDefinition>>,
    hashes: HashSet<(&'a str, ContentHash)>,
}

impl<'a> Pins<'a> {
    fn new(history: &'a [ToolDefinition]) -> Self {
        let mut by_tool: HashMap<&str, Vec<&ToolDefinition>> = HashMap::new();
        for definition in history {
            by_tool.entry(definition.tool.as_str()).or_default().push(definition);
        }
        Self { by_tool, hashes: history.iter().map(|known| (known.tool.as_str(), known.hash)).collect() }
    }

    fn of(&self, tool: &str) -> &[&'a ToolDefinition] {
        self.by_tool.get(tool).map_or(&[], Vec::as_slice)
    }

    fn is_known(&self, tool: &UsableTool) -> bool {
        self.hashes.contains(&(tool.spec.name.as_ref(), tool.hash))
    }

    /// The approved form that was seen last.
    fn pinned(&self, tool: &str) -> Option<&'a ToolDefinition> {
        let approved = self.of(tool).iter().copied().filter(|known| known.approved);
        approved.max_by_key(|known| known.first_seen_at)
    }

    fn reason(
        &self,
        tool: &UsableTool,
        vanished: &HashMap<String, &'a str>,
        first_sight: FirstSight,
    ) -> Option<Blocked> {
        let known = self.of(&tool.spec.name);
        if known.iter().any(|known| known.approved && known.hash == tool.hash) {
            return None;
        }
        if known.iter().any(|known| known.approved) {
            return Some(Blocked::Changed);
        }
        let marks = if vanished.is_empty() { Vec::new() } else { marks(tool.definition.get()) };
        if let Some(from) = marks.iter().find_map(|mark| vanished.get(mark)) {
            return Some(Blocked::Renamed { from: (*from).to_owned() });
        }
        let waits = first_sight == FirstSight::Ask || !known.is_empty();
        waits.then_some(Blocked::Unapproved)
    }

    fn difference(&self, tool: &UsableTool, reason: &Blocked) -> Vec<String> {
        let before = match reason {
            Blocked::Changed => self.pinned(&tool.spec.name),
            Blocked::Renamed { from } => self.pinned(from).or_else(|| self.of(from).last().copied()),
            Blocked::Unapproved => None,
        };
        let lines = before.map(|before| difference(&before.definition, &tool.definition));
        lines.and_then(Result::ok).unwrap_or_default()
    }

    /// Names with history that are not in the list, sorted.
    fn missing(&self, list: &JudgedList) -> Vec<&'a str> {
        let usable = list.usable.iter().map(|tool| tool.spec.name.as_ref());
        let quarantined = list.quarantined.iter().filter_map(|tool| tool.name.as_deref());
        let present: HashSet<&str> = usable.chain(quarantined).collect();
        let mut missing: Vec<&str> =
            self.by_tool.keys().copied().filter(|name| !present.contains(name)).collect();
        missing.sort_unstable();
        missing
    }

    fn gone(&self, list: &JudgedList) -> Vec<String> {
        let gone = self.missing(list).into_iter().filter(|name| self.pinned(name).is_some());
        gone.map(str::to_owned).collect()
    }

    /// The marks of all tools that are not in the list, approved or not: a blocked tool must not come back under
    /// another name, either. Nothing is read when nothing new came.
    fn vanished(&self, list: &JudgedList) -> HashMap<String, &'a str> {
        let missing = self.missing(list);
        if list.usable.iter().all(|tool| self.pinned(&tool.spec.name).is_some()) {
            return HashMap::new();
        }
        let definitions = missing.iter().flat_map(|name| self.of(name).iter().map(|known| (*name, *known)));
        definitions
            .flat_map(|(name, known)| marks(known.definition.get()).into_iter().map(move |mark| (mark, name)))
            .collect()
    }
}

/// What two tools of different names have in common when they are one: all but names and title, or the description.
fn marks(definition: &str) -> Vec<String> {
    let Ok(tree) = Tree::read(definition, DEPTH) else { return Vec::new() };
    let rest = format!("all {}", canonical_without(&tree, &["name", "title"]));
    let description = tree.get("description").and_then(Tree::as_text).map(str::trim);
    let description = description.filter(|words| !words.is_empty());
    std::iter::once(rest).chain(description.map(|words| format!("description {words}"))).collect()
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
