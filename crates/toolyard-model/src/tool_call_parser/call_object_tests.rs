//! Which values are calls.

use serde_json::json;

use super::*;

fn is_tool(name: &str) -> bool {
    matches!(name, "get_time" | "create_user" | "server.search")
}

fn describe(value: &Value, markup: Markup) -> String {
    match interpret_value(value, markup, &is_tool) {
        Interpretation::Calls(calls) => {
            let text = |call: &ParsedToolCall| {
                format!(
                    "{}{}{}",
                    call.name,
                    Value::Object(call.arguments.clone()),
                    call.id.clone().unwrap_or_default()
                )
            };
            calls.iter().map(text).collect::<Vec<_>>().join(" ")
        }
        Interpretation::Example => "example".to_owned(),
        Interpretation::NoCall => "other".to_owned(),
    }
}

#[test]
fn names_and_arguments_are_found_in_many_fields() {
    for (value, expected) in [
        (json!({"name": "get_time", "arguments": {"a": 1}}), r#"get_time{"a":1}"#),
        (json!({"tool_name": "get_time", "parameters": {"a": 1}, "id": 7}), r#"get_time{"a":1}7"#),
        (json!({"action": "get_time", "action_input": "{\"a\": 1}"}), r#"get_time{"a":1}"#),
        (json!({"name": "functions.get_time", "args": null}), "get_time{}"),
        (json!({"name": "get_time:0", "arguments": ""}), "get_time{}"),
        (json!({"name": "server.search", "arguments": []}), "server.search{}"),
        (
            json!({"id": "x", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}),
            "get_time{}x",
        ),
        (json!({"tool": {"name": "get_time", "input": {"a": 1}}}), r#"get_time{"a":1}"#),
        (json!({"tool": "create_user", "arguments": {"name": "bob"}}), r#"create_user{"name":"bob"}"#),
        (
            json!([{"name": "get_time", "args": {}}, {"name": "get_time", "args": {}}]),
            "get_time{} get_time{}",
        ),
        (json!({"tool_calls": [{"name": "get_time", "args": {}}]}), "get_time{}"),
        (json!("{\"name\": \"get_time\", \"arguments\": {}}"), "get_time{}"),
        (json!({"name": "get_time", "arguments": "\"{\\\"a\\\": 1}\""}), r#"get_time{"a":1}"#),
        // The description is the reason of the call, not that of the tool.
        (json!({"name": "get_time", "description": "now", "arguments": {"a": 1}}), r#"get_time{"a":1}"#),
    ] {
        assert_eq!(describe(&value, Markup::Tagged), expected, "{value}");
        assert_eq!(describe(&value, Markup::Untagged), expected, "{value}");
    }
}

#[test]
fn tagged_calls_may_omit_more() {
    for (value, tagged) in [
        (json!({"name": "delete_all", "arguments": {}}), "delete_all{}"),
        (json!({"name": "get_time"}), "get_time{}"),
        (json!({"name": "get_time", "zone": "x", "id": "1"}), r#"get_time{"zone":"x"}1"#),
        (json!({"tool": "create_user", "name": "bob"}), r#"create_user{"name":"bob"}"#),
        (json!({"get_time": {"zone": "x"}}), r#"get_time{"zone":"x"}"#),
        (json!([]), ""),
    ] {
        assert_eq!(describe(&value, Markup::Tagged), tagged, "{value}");
        assert_eq!(describe(&value, Markup::Untagged), "other", "{value}");
    }
}

#[test]
fn descriptions_and_placeholders_are_examples() {
    let schema = json!({"type": "object", "properties": {"zone": {"type": "string"}}});
    let described = json!({"zone": {"type": "string", "description": "where"}});
    for value in [
        json!({"name": "get_time", "description": "Tell the time", "parameters": schema}),
        json!({"type": "function", "function": {"name": "get_time", "parameters": schema}}),
        json!({"name": "get_time", "parameters": described}),
        json!({"name": "get_time", "arguments": {"zone": "..."}}),
        json!({"name": "get_time", "arguments": {"zone": "<the zone>"}}),
        json!({"name": "NAME", "arguments": {}}),
        json!({"name": "<function-name>", "arguments": {}}),
    ] {
        assert_eq!(describe(&value, Markup::Tagged), "example", "{value}");
        assert_eq!(describe(&value, Markup::Untagged), "example", "{value}");
    }
    for value in [
        json!({"answer": 42}),
        json!({"name": "get_time", "arguments": 7}),
        json!({"name": "get_time", "arguments": "two words"}),
        json!({"name": "", "arguments": {}}),
        json!([1, 2]),
        json!(7),
    ] {
        assert_eq!(describe(&value, Markup::Tagged), "other", "{value}");
    }
}
