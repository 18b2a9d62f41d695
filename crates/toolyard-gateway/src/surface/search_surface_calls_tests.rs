//! Search results, and arguments as models write them.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolyard_core::{find_unsafe, params};

use super::*;

fn request(tool: &str, arguments: Value) -> ToolCallRequest {
    ToolCallRequest::new(tool, arguments)
}

#[test]
fn parameters_are_shown_in_one_line() {
    let schema = json!({"type": "object", "required": ["path", "cells"], "properties": {
        "path": {"type": "string"},
        "lines": {"type": "integer"},
        "mode": {"enum": ["read", "write"]},
        "cells": {"type": "array", "items": {"type": "object", "properties": {"at": {"type": "string"}}}},
    }});
    assert_eq!(
        signature(&params(&schema)),
        r#"path: string, lines?: integer, mode?: "read"|"write", cells: {at?: string}[]"#
    );
}

#[test]
fn a_description_is_shortened_to_its_first_sentence() {
    let text = "Read data from a worksheet.\n\nArgs:\n  filepath: the file";
    assert_eq!(one_line(text, MAX_LINE_CHARS), "Read data from a worksheet.");
    assert_eq!(one_line("e.g. this one goes on", MAX_LINE_CHARS), "e.g. this one goes on");
    assert_eq!(one_line(&"word ".repeat(100), 12), "word word w…");
}

#[test]
fn lenient_arguments_are_accepted() {
    let call = inner_call(&request("call_tool", json!({"name": "t", "arguments": "{\"a\":1}"}))).unwrap();
    assert_eq!((call.tool_name.as_str(), call.arguments.get()), ("t", "{\"a\":1}"));
    let call = inner_call(&request("call_tool", json!({"name": "t"}))).unwrap();
    assert_eq!(call.arguments.get(), "{}");
    let query = search_query(&request("search_tools", json!({"query": "x", "limit": 1e9}))).unwrap();
    assert_eq!(query, SearchQuery { query: "x".to_owned(), limit: Some(MAX_RESULTS) });
    let error = inner_call(&request("call_tool", json!({}))).unwrap_err();
    assert!(error.to_string().contains("missing field `name`"), "{error}");
}

proptest! {
    #[test]
    fn a_line_has_no_line_breaks_and_no_unsafe_characters(text in "(\\PC|[\\n\\u{200b}\\u{202e}\\u{e0041}\\u{1b}]){0,300}", max_chars in 2_usize..200) {
        let line = one_line(&text, max_chars);
        prop_assert!(!line.contains('\n') && line.chars().count() <= max_chars, "{line:?}");
        prop_assert!(find_unsafe(&line).is_empty(), "{line:?}");
    }
}
