//! Which values are calls.

use serde_json::json;

use super::*;

fn known(name: &str) -> bool {
    matches!(name, "get_time" | "create_user" | "server.search")
}

fn of(value: &Value, standing: Standing) -> String {
    match shape(value, standing, &known) {
        Shape::Calls(calls) => {
            let one = |call: &TextCall| {
                format!(
                    "{}{}{}",
                    call.name,
                    Value::Object(call.arguments.clone()),
                    call.id.clone().unwrap_or_default()
                )
            };
            calls.iter().map(one).collect::<Vec<_>>().join(" ")
        }
        Shape::Example => "example".to_owned(),
        Shape::Other => "other".to_owned(),
    }
}

#[test]
fn names_and_arguments_have_many_names() {
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
        // It has a description of why it is called, not of what it does.
        (json!({"name": "get_time", "description": "now", "arguments": {"a": 1}}), r#"get_time{"a":1}"#),
    ] {
        assert_eq!(of(&value, Standing::Tagged), expected, "{value}");
        assert_eq!(of(&value, Standing::Untagged), expected, "{value}");
    }
}

#[test]
fn tags_allow_more() {
    for (value, tagged) in [
        (json!({"name": "delete_all", "arguments": {}}), "delete_all{}"),
        (json!({"name": "get_time"}), "get_time{}"),
        (json!({"name": "get_time", "zone": "x", "id": "1"}), r#"get_time{"zone":"x"}1"#),
        (json!({"tool": "create_user", "name": "bob"}), r#"create_user{"name":"bob"}"#),
        (json!({"get_time": {"zone": "x"}}), r#"get_time{"zone":"x"}"#),
        (json!([]), ""),
    ] {
        assert_eq!(of(&value, Standing::Tagged), tagged, "{value}");
        assert_eq!(of(&value, Standing::Untagged), "other", "{value}");
    }
}

#[test]
fn descriptions_and_blanks_are_examples() {
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
        assert_eq!(of(&value, Standing::Tagged), "example", "{value}");
        assert_eq!(of(&value, Standing::Untagged), "example", "{value}");
    }
    for value in [
        json!({"answer": 42}),
        json!({"name": "get_time", "arguments": 7}),
        json!({"name": "get_time", "arguments": "two words"}),
        json!({"name": "", "arguments": {}}),
        json!([1, 2]),
        json!(7),
    ] {
        assert_eq!(of(&value, Standing::Tagged), "other", "{value}");
    }
}
