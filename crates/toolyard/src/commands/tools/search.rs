//! `toolyard tools search`: finds tools for a request.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Value, json};
use toolyard::Toolyard;
use toolyard_hub::{Snapshot, ToolCandidate, ToolMatch};
use toolyard_search::{MatchKind, TermMatch};

use super::{list, tool_json};
use crate::{cli::SearchToolsArgs, terminal::Output};

pub(super) fn run(arguments: &SearchToolsArgs, toolyard: &Toolyard, output: &Output) {
    let request = arguments.words.join(" ");
    let steps: Vec<&str> = arguments.steps.iter().map(String::as_str).collect();
    let found = match steps.as_slice() {
        [] => toolyard.hub().search(&request, arguments.limit),
        steps => toolyard.hub().search_steps(&request, steps, arguments.limit),
    };
    if output.is_json() {
        let snapshot = toolyard.hub().snapshot();
        output.json(&found.iter().map(|found| match_json(&snapshot, found)).collect::<Vec<_>>());
    } else if arguments.explain && !found.is_empty() {
        found.iter().for_each(|found| explain(found, output));
    } else {
        list(toolyard, &with_same_tools(&toolyard.hub().snapshot(), &found), output);
    }
}

/// The tools found, each followed by those of its definition that are called by another name.
fn with_same_tools(snapshot: &Snapshot, found: &[ToolMatch]) -> Vec<Arc<ToolCandidate>> {
    let mut names = HashSet::new();
    let mut tools = Vec::with_capacity(found.len());
    for tool in found.iter().flat_map(|found| std::iter::once(&found.tool).chain(&found.duplicates)) {
        if snapshot.callable_name(tool, None).is_some_and(|name| names.insert(name)) {
            tools.push(Arc::clone(tool));
        }
    }
    tools
}

fn match_json(snapshot: &Snapshot, found: &ToolMatch) -> Value {
    let mut all = tool_json(snapshot, &found.tool);
    let matched_word = |matched: &TermMatch| json!({"word": matched.word, "matches": matched.terms, "via": match_kind(matched.kind), "score": matched.score});
    if let Value::Object(fields) = &mut all {
        fields.insert("score".to_owned(), json!(found.score));
        fields.insert("by_name".to_owned(), json!(found.reachable_by_name));
        fields.insert("history".to_owned(), json!(found.history_score));
        let same: Vec<_> = found.duplicates.iter().map(|tool| tool.source_id()).collect();
        fields.insert("same_on".to_owned(), json!(same));
        fields
            .insert("matched".to_owned(), json!(found.matched.iter().map(matched_word).collect::<Vec<_>>()));
    }
    all
}

fn explain(found: &ToolMatch, output: &Output) {
    let source = found.tool.source_id();
    output.line(&format!("{}   {source}   {:.1}", found.callable_name, found.score));
    if found.history_score > 0.0 {
        output.line(&format!("  {:5.1}  used for similar requests before", found.history_score));
    }
    for matched in &found.matched {
        let explanation = match matched.kind {
            MatchKind::Exact => String::new(),
            other => format!(" → {} ({})", matched.terms.join(" "), match_kind(other)),
        };
        output.line(&format!("  {:5.1}  {}{explanation}", matched.score, matched.word));
    }
    if let [_, ..] = found.duplicates.as_slice() {
        let same: Vec<&str> = found.duplicates.iter().map(|tool| tool.source_id().as_str()).collect();
        output.line(&format!("         also offered by {}", same.join(", ")));
    }
}

fn match_kind(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact word",
        MatchKind::Compound => "compound",
        MatchKind::SameRoot => "same root",
        MatchKind::Synonym => "synonym",
        MatchKind::Translation => "translation",
        MatchKind::Value => "value format",
        MatchKind::Concept => "subject or action",
    }
}
