//! Parses a corpus of model outputs, one JSON object per line in `corpus/`.
//!
//! `text` is the output and `calls` are the expected calls; `visible_text`, `truncated` and `malformed` are the other expected
//! results. Every output is parsed whole and character by character.

use std::{fs, path::Path};

use serde::Deserialize;
use serde_json::{Map, Value};
use toolyard_model::tool_call_parser::{ParsedText, StreamingParser, parse_tool_calls};

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
    /// The model that writes like this, or the peculiarity.
    shape: String,
    text: String,
    calls: Vec<Call>,
    visible_text: Option<String>,
    #[serde(default)]
    truncated: bool,
    #[serde(default)]
    malformed: usize,
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus");
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

/// The differences from the expected result.
fn differences(entry: &Entry, parsed: &ParsedText) -> Vec<String> {
    let mut differences = Vec::new();
    let mut check = |what: &str, actual: String, expected: String| {
        if actual != expected {
            differences.push(format!("{what} is {actual}, expected {expected}"));
        }
    };
    let actual: Vec<String> = parsed
        .calls
        .iter()
        .map(|call| format!("{}{}", call.name, Value::Object(call.arguments.clone())))
        .collect();
    let expected: Vec<String> = entry
        .calls
        .iter()
        .map(|call| format!("{}{}", call.name, Value::Object(call.arguments.clone())))
        .collect();
    check("calls", format!("{actual:?}"), format!("{expected:?}"));
    for (actual, expected) in parsed.calls.iter().zip(&entry.calls) {
        if expected.id.is_some() {
            check("id", format!("{:?}", actual.id), format!("{:?}", expected.id));
        }
        check("source", format!("{:?}", actual.source), format!("{:?}", expected.source));
    }
    check("truncated", parsed.truncated.to_string(), entry.truncated.to_string());
    check("malformed", parsed.malformed.len().to_string(), entry.malformed.to_string());
    if let Some(text) = &entry.visible_text {
        check("visible_text", format!("{:?}", parsed.text), format!("{text:?}"));
    }
    differences
}

#[test]
fn the_corpus_is_parsed_as_expected() {
    let corpus = corpus();
    let mut mismatches = Vec::new();
    for (location, entry) in &corpus {
        let parsed = parse_tool_calls(&entry.text, &is_tool);
        for difference in differences(entry, &parsed) {
            mismatches.push(format!("{location} ({}): {difference}\n    {:?}", entry.shape, entry.text));
        }
    }
    println!(
        "{} outputs, {} with calls",
        corpus.len(),
        corpus.iter().filter(|(_, e)| !e.calls.is_empty()).count()
    );
    assert!(mismatches.is_empty(), "{} mismatches:\n{}", mismatches.len(), mismatches.join("\n"));
    assert!(corpus.len() >= 300, "only {} outputs", corpus.len());
}

#[test]
fn the_corpus_is_parsed_the_same_character_by_character() {
    for (location, entry) in corpus() {
        let whole = parse_tool_calls(&entry.text, &is_tool);
        let mut parser = StreamingParser::new(is_tool);
        let mut shown = String::new();
        for character in entry.text.chars() {
            let delta = parser.push(character.encode_utf8(&mut [0; 4]));
            shown.push_str(&delta);
            assert!(whole.text.starts_with(&shown), "{location} shows {shown:?} of {:?}", whole.text);
        }
        let (delta, parsed) = parser.finish();
        assert_eq!((shown + &delta, parsed), (whole.text.clone(), whole), "{location}: {:?}", entry.text);
    }
}

#[test]
fn quoted_outputs_are_never_calls() {
    for (location, entry) in corpus() {
        let text = entry.text.replace('\n', "\n> ");
        let quoted = format!("The model said:\n\n> {text}\n\nThat was all.");
        assert_eq!(parse_tool_calls(&quoted, &is_tool).calls, [], "{location}: {quoted}");
        let fence = "`".repeat(12);
        let fenced = format!("The model said:\n\n{fence}markdown\n{}\n{fence}\n", entry.text);
        assert_eq!(parse_tool_calls(&fenced, &is_tool).calls, [], "{location}: {fenced}");
    }
}
