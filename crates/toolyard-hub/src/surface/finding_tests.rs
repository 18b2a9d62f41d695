//! What is shown of tools that were found, and what the three tools understand.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolyard_core::{hidden_places, params};

use super::*;

fn asked(tool: &str, arguments: Value) -> ToolCallRequest {
    ToolCallRequest::new(tool, arguments)
}

#[test]
fn parameters_stand_in_one_line() {
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
fn a_description_is_shown_up_to_its_first_sentence() {
    let text = "Read data from a worksheet.\n\nArgs:\n  filepath: the file";
    assert_eq!(one_line(text, LINE), "Read data from a worksheet.");
    assert_eq!(one_line("e.g. this one goes on", LINE), "e.g. this one goes on");
    assert_eq!(one_line(&"word ".repeat(100), 12), "word word w…");
}

#[test]
fn what_models_write_is_understood() {
    let call = inner_call(&asked("call_tool", json!({"name": "t", "arguments": "{\"a\":1}"}))).unwrap();
    assert_eq!((call.tool_name.as_str(), call.arguments.get()), ("t", "{\"a\":1}"));
    let call = inner_call(&asked("call_tool", json!({"name": "t"}))).unwrap();
    assert_eq!(call.arguments.get(), "{}");
    let wish = wish(&asked("search_tools", json!({"query": "x", "limit": 1e9}))).unwrap();
    assert_eq!(wish, Wish { query: "x".to_owned(), limit: MOST_FOUND });
    let error = inner_call(&asked("call_tool", json!({}))).unwrap_err();
    assert!(error.to_string().contains("missing field `name`"), "{error}");
}

proptest! {
    #[test]
    fn a_line_is_one_line_without_anything_hidden(text in "(\\PC|[\\n\\u{200b}\\u{202e}\\u{e0041}\\u{1b}]){0,300}", most in 2_usize..200) {
        let line = one_line(&text, most);
        prop_assert!(!line.contains('\n') && line.chars().count() <= most, "{line:?}");
        prop_assert!(hidden_places(&line).is_empty(), "{line:?}");
    }
}
