//! Lists of tools that are invalid, too large or endless.

use serde_json::{Value, json};

use crate::protocol::{Request, list_result, tool};

/// The response to `tools/list` in a case about it; none in all others.
pub(crate) fn list_response(case: &str, request: &Request) -> Option<String> {
    let cursor = request.params.get("cursor").and_then(Value::as_str).unwrap_or_default();
    if let Some(next) = next_cursor(case, cursor) {
        let mut page = list_result(&json!([tool(&format!("echo{cursor}"))]));
        if let Some(page) = page.as_object_mut() {
            page.insert("nextCursor".to_owned(), next);
        }
        return Some(request.result(&page));
    }
    if let Some(raw) = raw_list(case) {
        return Some(request.raw_result(&raw));
    }
    let tools = tools(case)?;
    Some(request.result(&list_result(&tools)))
}

fn next_cursor(case: &str, cursor: &str) -> Option<Value> {
    match case {
        "endless-pagination" => {
            let number: u64 = cursor.parse().unwrap_or_default();
            Some(json!((number + 1).to_string()))
        }
        "repeating-cursor" => Some(json!("again")),
        "alternating-cursors" => Some(json!(if cursor == "a" { "b" } else { "a" })),
        "empty-cursor" => Some(json!("")),
        "huge-cursor" if cursor.is_empty() => Some(json!("c".repeat(9 << 20))),
        "cursor-number" => Some(json!(7)),
        _ => None,
    }
}

/// Lists as JSON text.
fn raw_list(case: &str) -> Option<String> {
    let list_with_schema = |schema: String| {
        let bad = format!(r#"{{"name":"bad","inputSchema":{schema}}}"#);
        format!(r#"{{"resultType":"complete","tools":[{},{bad}]}}"#, tool("echo"))
    };
    // Large values are written as text, because this server must not be slow itself.
    let tool_with_description = |name: &str, bytes: usize| {
        format!(
            r#"{{"name":"{name}","description":"{}","inputSchema":{{"type":"object"}}}}"#,
            "d".repeat(bytes)
        )
    };
    let list_with = |tools: Vec<String>| {
        Some(format!(r#"{{"resultType":"complete","tools":[{},{}]}}"#, tool("echo"), tools.join(",")))
    };
    let numbered_tools = |count: u32, bytes: usize| {
        (0..count).map(move |number| tool_with_description(&format!("t{number}"), bytes))
    };
    match case {
        "many-tools" => list_with(numbered_tools(10_000, 20).collect()),
        "huge-list" => list_with(numbered_tools(2_000, 10_000).collect()),
        "list-9mb" => list_with(numbered_tools(150, 60_000).collect()),
        "many-large-tools" => list_with(numbered_tools(120, 60_000).collect()),
        "huge-description" => list_with(vec![tool_with_description("bad", 10 << 20)]),
        "description-7mb" => list_with(vec![tool_with_description("bad", 7 << 20)]),
        "wide-schema" => {
            let properties: Vec<String> = (0..100_000).map(|number| format!(r#""p{number}":{{}}"#)).collect();
            Some(list_with_schema(format!(
                r#"{{"type":"object","properties":{{{}}}}}"#,
                properties.join(",")
            )))
        }
        "deep-schema" => {
            let deep = r#"{"type":"object","properties":{"a":"#.repeat(100_000);
            Some(list_with_schema(format!("{deep}1{}", "}}".repeat(100_000))))
        }
        "schema-100-levels" => {
            let deep = r#"{"not":"#.repeat(100);
            Some(list_with_schema(format!(r#"{{"type":"object","x":{deep}{{}}{}}}"#, "}".repeat(100))))
        }
        "duplicate-schema-keys" => Some(list_with_schema(r#"{"type":"object","type":"string"}"#.to_owned())),
        "schema-number-1e400" => {
            Some(list_with_schema(r#"{"type":"object","maxProperties":1e400}"#.to_owned()))
        }
        _ => None,
    }
}

fn tools(case: &str) -> Option<Value> {
    let bad_tool = |schema: Value| json!({"name": "bad", "inputSchema": schema});
    let beside_echo = |bad: Value| json!([tool("echo"), bad]);
    Some(match case {
        "huge-name" => beside_echo(tool(&"n".repeat(1 << 20))),
        "ref-cycle" => beside_echo(bad_tool(json!({
            "type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        }))),
        "remote-ref" => beside_echo(bad_tool(json!({
            "type": "object", "properties": {"a": {"$ref": "http://169.254.169.254/latest/meta-data"}},
        }))),
        "regex-bomb" => beside_echo(bad_tool(json!({
            "type": "object", "properties": {"text": {"type": "string", "pattern": "^(((a+)+)+)+$"}},
        }))),
        "regex-size-bomb" => beside_echo(bad_tool(json!({
            "type": "object", "properties": {"text": {"type": "string", "pattern": "((a{1,1000}){1,1000}){1,1000}"}},
        }))),
        "branching-schema" => {
            let doubled = |inner: Value| json!({"allOf": [inner.clone(), inner]});
            let exponential = (0..14).fold(json!({"type": "object"}), |inner, _| doubled(inner));
            beside_echo(bad_tool(json!({"type": "object", "allOf": [exponential]})))
        }
        other => return badly_named_tools(other),
    })
}

/// Names that are invalid or look like others.
fn badly_named_tools(case: &str) -> Option<Value> {
    Some(match case {
        "duplicate-names" => {
            let mut other = tool("twice");
            if let Some(other) = other.as_object_mut() {
                other.insert("description".to_owned(), "Something else".into());
            }
            json!([tool("echo"), tool("twice"), other])
        }
        "names-by-case" => json!([tool("echo"), tool("Echo"), tool("ECHO")]),
        "homoglyph-name" => json!([tool("echo"), tool("ech\u{43e}")]),
        "hidden-name" => {
            json!([tool("echo"), tool("ec\u{200b}ho"), tool("\u{202e}ohce"), tool("e\u{e0063}")])
        }
        "control-name" => json!([tool("echo"), tool("e\u{1b}[31mcho"), tool("e\ncho"), tool("e\u{0}")]),
        "names-malformed" => {
            let nameless = json!({"inputSchema": {"type": "object"}});
            json!([tool("echo"), tool(""), nameless, {"name": 7}, {"name": null}, null, 7, "echo", []])
        }
        "schemas-malformed" => json!([
            tool("echo"),
            {"name": "a", "inputSchema": 7}, {"name": "b", "inputSchema": "object"},
            {"name": "c", "inputSchema": []}, {"name": "d", "inputSchema": {"type": 7}},
            {"name": "e", "inputSchema": {"type": "array"}},
        ]),
        "tools-not-a-list" => json!({"echo": tool("echo")}),
        "tools-null" => Value::Null,
        "same-tool-4000-times" => vec![tool("echo"); 4_000].into(),
        _ => return None,
    })
}
