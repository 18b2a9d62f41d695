//! `toolyard tools search`: the tools for a request, and why these.

use serde_json::{Value, json};
use toolyard::Toolyard;
use toolyard_hub::{
    FoundTool,
    search::{Matched, Via},
};

use super::tools::{facts, list};
use crate::{
    cli::ToolsSearch,
    output::{Output, harmless},
};

/// Searches, and prints what was found.
pub(crate) fn run(arguments: &ToolsSearch, yard: &Toolyard, output: &Output) {
    let request = arguments.words.join(" ");
    let steps: Vec<&str> = arguments.steps.iter().map(String::as_str).collect();
    let found = match steps.as_slice() {
        [] => yard.hub().search(&request, arguments.limit),
        steps => yard.hub().search_steps(&request, steps, arguments.limit),
    };
    if output.wants_json() {
        output.json(&found.iter().map(with_reasons).collect::<Vec<_>>());
    } else if arguments.explain && !found.is_empty() {
        found.iter().for_each(|found| explain(found, output));
    } else {
        let tools: Vec<_> = found.into_iter().map(|found| found.tool).collect();
        list(&tools, output);
    }
}

fn with_reasons(found: &FoundTool) -> Value {
    let mut all = facts(&found.tool);
    let reason = |matched: &Matched| json!({"word": matched.word, "matches": matched.terms, "via": via(matched.via), "score": matched.score});
    if let Value::Object(fields) = &mut all {
        fields.insert("score".to_owned(), json!(found.score));
        fields.insert("by_name".to_owned(), json!(found.by_name));
        fields.insert("history".to_owned(), json!(found.history));
        let same: Vec<_> = found.same.iter().map(|tool| tool.source_id()).collect();
        fields.insert("same_on".to_owned(), json!(same));
        fields.insert("matched".to_owned(), json!(found.matched.iter().map(reason).collect::<Vec<_>>()));
    }
    all
}

fn explain(found: &FoundTool, output: &Output) {
    let (tool, source) = (&found.tool, found.tool.source_id());
    let only = if found.by_name { String::new() } else { format!("   (name it: --source {source})") };
    output.line(&harmless(&format!("{}   {source}   {:.1}{only}", tool.name, found.score)));
    if found.history > 0.0 {
        output.line(&format!("  {:5.1}  used for such requests before", found.history));
    }
    for matched in &found.matched {
        let how = match matched.via {
            Via::Own => String::new(),
            other => format!(" → {} ({})", matched.terms.join(" "), via(other)),
        };
        output.line(&format!("  {:5.1}  {}", matched.score, harmless(&format!("{}{how}", matched.word))));
    }
    if let [_, ..] = found.same.as_slice() {
        let same: Vec<&str> = found.same.iter().map(|tool| tool.source_id().as_str()).collect();
        output.line(&harmless(&format!("         the same name on {}", same.join(", "))));
    }
}

fn via(via: Via) -> &'static str {
    match via {
        Via::Own => "the word",
        Via::Joined => "two words as one",
        Via::Relative => "the same root",
        Via::Synonym => "what tools call it",
        Via::Gloss => "translated",
        Via::Value => "its form",
    }
}
