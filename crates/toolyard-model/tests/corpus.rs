//! What is found in outputs of the shapes that models really write, one JSON object a line in `corpus/`.
//!
//! `text` is what a model said, `calls` what must be made of it, and, where it matters, `rest`, `cut_off` and `unreadable`
//! say what else. Every text is read whole and letter by letter.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{fs, path::Path};

use serde::Deserialize;
use serde_json::{Map, Value};
use toolyard_model::tool_call_tag::{CallSplitter, TextCalls, read_calls};

const TOOLS: [&str; 15] = [
    "get_time",
    "calculate",
    "search_web",
    "read_data_from_excel",
    "write_data_to_excel",
    "apply_formula",
    "create_workbook",
    "get_weather",
    "send_mail",
    "read_file",
    "write_file",
    "list_files",
    "get_conversation_history",
    "create_event",
    "translate",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Who writes like this, or what is odd about it.
    shape: String,
    text: String,
    calls: Vec<Call>,
    rest: Option<String>,
    #[serde(default)]
    cut_off: bool,
    #[serde(default)]
    unreadable: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    arguments: Map<String, Value>,
    id: Option<String>,
    source: Option<String>,
}

fn is_tool(name: &str) -> bool {
    TOOLS.contains(&name)
}

fn corpus() -> Vec<(String, Entry)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut entries = Vec::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let entry = serde_json::from_str(line).unwrap_or_else(|error| panic!("{name} {number}: {error}"));
            entries.push((format!("{name} line {}", number + 1), entry));
        }
    }
    entries
}

/// What is wrong with what was found.
fn mistakes(entry: &Entry, found: &TextCalls) -> Vec<String> {
    let mut mistakes = Vec::new();
    let mut check = |what: &str, is: String, should: String| {
        if is != should {
            mistakes.push(format!("{what} is {is}, should be {should}"));
        }
    };
    let is: Vec<String> = found
        .calls
        .iter()
        .map(|call| format!("{}{}", call.name, Value::Object(call.arguments.clone())))
        .collect();
    let should: Vec<String> = entry
        .calls
        .iter()
        .map(|call| format!("{}{}", call.name, Value::Object(call.arguments.clone())))
        .collect();
    check("calls", format!("{is:?}"), format!("{should:?}"));
    for (is, should) in found.calls.iter().zip(&entry.calls) {
        if should.id.is_some() {
            check("id", format!("{:?}", is.id), format!("{:?}", should.id));
        }
        check("source", format!("{:?}", is.source), format!("{:?}", should.source));
    }
    check("cut_off", found.cut_off.to_string(), entry.cut_off.to_string());
    check("unreadable", found.unreadable.len().to_string(), entry.unreadable.to_string());
    if let Some(rest) = &entry.rest {
        check("rest", format!("{:?}", found.rest), format!("{rest:?}"));
    }
    mistakes
}

#[test]
fn the_corpus_is_read_as_it_should_be() {
    let corpus = corpus();
    let mut wrong = Vec::new();
    for (place, entry) in &corpus {
        let found = read_calls(&entry.text, &is_tool);
        for mistake in mistakes(entry, &found) {
            wrong.push(format!("{place} ({}): {mistake}\n    {:?}", entry.shape, entry.text));
        }
    }
    println!(
        "{} outputs, {} with calls",
        corpus.len(),
        corpus.iter().filter(|(_, e)| !e.calls.is_empty()).count()
    );
    assert!(wrong.is_empty(), "{} mistakes:\n{}", wrong.len(), wrong.join("\n"));
    assert!(corpus.len() >= 300, "only {} outputs", corpus.len());
}

#[test]
fn the_corpus_is_read_the_same_letter_by_letter() {
    for (place, entry) in corpus() {
        let whole = read_calls(&entry.text, &is_tool);
        let mut splitter = CallSplitter::new(is_tool);
        let mut shown = String::new();
        for letter in entry.text.chars() {
            let more = splitter.push(letter.encode_utf8(&mut [0; 4]));
            shown.push_str(&more);
            assert!(whole.rest.starts_with(&shown), "{place} shows {shown:?} of {:?}", whole.rest);
        }
        let (more, found) = splitter.finish();
        assert_eq!((shown + &more, found), (whole.rest.clone(), whole), "{place}: {:?}", entry.text);
    }
}

/// However a text is wrapped up as a quotation, nothing in it is a call.
#[test]
fn quoted_outputs_are_never_calls() {
    for (place, entry) in corpus() {
        let text = entry.text.replace('\n', "\n> ");
        let quoted = format!("The model said:\n\n> {text}\n\nThat was all.");
        assert_eq!(read_calls(&quoted, &is_tool).calls, [], "{place}: {quoted}");
        let fence = "`".repeat(12);
        let fenced = format!("The model said:\n\n{fence}markdown\n{}\n{fence}\n", entry.text);
        assert_eq!(read_calls(&fenced, &is_tool).calls, [], "{place}: {fenced}");
    }
}
