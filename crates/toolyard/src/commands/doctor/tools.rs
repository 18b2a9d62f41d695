//! Checks the tools of all sources: names that several sources use.

use std::{collections::BTreeMap, sync::Arc};

use toolyard::Toolyard;
use toolyard_hub::{NameMatches, Snapshot, ToolCandidate};

use super::finding::{Finding, Severity, some_names};
use crate::commands::tools::count_tools;

pub(super) fn check(toolyard: &Toolyard) -> Vec<Finding> {
    let snapshot = toolyard.hub().snapshot();
    let mut findings = vec![Finding::ok("tools", count_tools(toolyard))];
    findings.extend(check_collisions(&snapshot));
    findings.extend(check_name_owners(&snapshot));
    findings
}

/// Who is called if a name of several sources is used without a source.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Shared {
    /// All of these sources, which are equivalent.
    Equivalent { used: String },
    /// Some of the sources; the others have to be named.
    Chosen { used: String, others: String },
    /// None, until somebody decides.
    Contested { sources: String },
}

/// Reports names that exist in several sources, one line for each combination of sources.
fn check_collisions(snapshot: &Snapshot) -> Vec<Finding> {
    let mut groups: BTreeMap<Shared, Vec<String>> = BTreeMap::new();
    for collision in snapshot.collisions() {
        // A name without an owner is reported on its own.
        if collision.equivalents.is_empty() {
            continue;
        }
        let (used, others) = (source_names(&collision.equivalents), source_names(&collision.others));
        let shared = if !snapshot.contenders(&collision.name, None).is_empty() {
            Shared::Contested { sources: format!("{used}, {others}") }
        } else if others.is_empty() {
            Shared::Equivalent { used }
        } else {
            Shared::Chosen { used, others }
        };
        groups.entry(shared).or_default().push(format!("`{}`", collision.name));
    }
    let [mut equivalent, mut chosen, mut contested] = [const { Vec::new() }; 3];
    for (shared, names) in groups {
        let verb = if names.len() == 1 { "exists" } else { "exist" };
        let subject = format!("{} {verb} in several sources", some_names(&names).unwrap_or_default());
        match shared {
            Shared::Equivalent { used } => equivalent.push(format!("{subject}; {used} is used")),
            Shared::Chosen { used, others } => {
                chosen.push(format!("{subject}; {used} is used; {others} only with --source"));
            }
            Shared::Contested { sources } => contested.push(format!("{subject}: {sources}")),
        }
    }
    let finding = |lines: Vec<String>, hint: &str| {
        let heading = |count: usize| format!("{count} groups of sources share names");
        let finding = Finding::group(Severity::Note, "tools", heading, lines)?;
        Some(if hint.is_empty() { finding } else { finding.with_hint(hint) })
    };
    let decide =
        "call one as SOURCE.TOOL, or give one the name: toolyard servers approve SOURCE TOOL --take-names";
    [
        finding(equivalent, ""),
        finding(chosen, "change this with [routing.pin] or [equivalent]"),
        finding(contested, decide),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn source_names(tools: &[Arc<ToolCandidate>]) -> String {
    tools.iter().map(|tool| tool.source_id().to_string()).collect::<Vec<_>>().join(", ")
}

/// Reports names whose owners do not offer them now.
fn check_name_owners(snapshot: &Snapshot) -> Option<Finding> {
    let unowned = snapshot.candidates_by_name().filter(|(_, found)| found.equivalents.is_empty());
    let finding = |(name, found): (&Arc<str>, NameMatches<'_>)| {
        let first = found.all().next()?;
        let (source, owner) = (first.source_id(), first.yields_to.as_ref()?);
        let line = format!("`{name}` is reserved for {owner}; call {source}.{name}");
        let decision = format!("toolyard servers approve {source} {name} --take-names");
        Some((line, format!("give the name to {source}: {decision}")))
    };
    let mut found: Vec<(String, String)> = unowned.filter_map(finding).collect();
    found.sort();
    let hint = found.first()?.1.clone();
    let heading = |count: usize| format!("{count} names belong to sources that do not offer them");
    let lines = found.into_iter().map(|(line, _)| line).collect();
    Finding::group(Severity::Note, "tools", heading, lines).map(|finding| finding.with_hint(hint))
}
