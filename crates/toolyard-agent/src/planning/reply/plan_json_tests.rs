//! Plans in the formats that models write.

use serde_json::json;

use super::*;

fn steps(value: &Value) -> Vec<(String, String, Value, Vec<String>)> {
    match parse_decision(value) {
        Some(PlannerDecision::Plan(plan)) => plan
            .steps
            .into_iter()
            .map(|step| (step.id, step.tool_type, Value::Object(step.arguments), step.dependencies))
            .collect(),
        other => panic!("{value} was read as {other:?}"),
    }
}

fn step(id: &str, tool: &str, arguments: Value, needs: &[&str]) -> (String, String, Value, Vec<String>) {
    (id.to_owned(), tool.to_owned(), arguments, needs.iter().map(|need| (*need).to_owned()).collect())
}

#[test]
fn alternative_field_names_are_accepted() {
    let expected = [step("a", "t", json!({"x": 1}), &["b"])];
    for value in [
        json!({"steps": [{"id": "a", "tool_type": "t", "arguments": {"x": 1}, "dependencies": ["b"]}]}),
        json!({"plan": [{"id": "a", "tool": "t", "args": {"x": 1}, "depends_on": "b"}]}),
        json!({"plan": {"steps": [{"step_id": "a", "tool_name": "t", "parameters": "{\"x\": 1}", "deps": ["$b"]}]}}),
        json!([{"name": "a", "tool_type": "t", "input": {"x": 1}, "dependencies": "b"}]),
        json!({"response": {"make_plan": {"tasks": [{"id": "a", "function": {"name": "t", "arguments": "{\"x\": 1}"}}]}}}),
        json!({"steps": {"a": {"tool": "t", "arguments": {"x": 1}, "after": ["b"]}}}),
        json!({"步骤": [{"编号": "a", "工具": "t", "参数": {"x": 1}, "依赖": "b"}]}),
        json!({"id": "a", "tool_type": "t", "arguments": {"x": 1}, "dependencies": ["b"]}),
    ] {
        let found = steps(&value);
        assert_eq!(found[0].0, expected[0].0, "{value}");
        assert_eq!((&found[0].1, &found[0].2), (&expected[0].1, &expected[0].2), "{value}");
        assert!(found[0].3 == expected[0].3 || found[0].3.is_empty(), "{value}");
    }
}

#[test]
fn numbers_nulls_and_strings_are_accepted() {
    let value = json!({"steps": [
        {"id": 1, "tool_type": "t", "arguments": null, "dependencies": null},
        {"id": 2, "tool_type": "t", "arguments": "1 + 1", "dependencies": 1},
        "think about it",
        "{\"id\": \"x\", \"tool\": \"t\", \"arguments\": {}}",
        {"tool": "t", "args": [1, 2], "dependencies": "1, 2 、x"},
        7,
    ]});
    assert_eq!(
        steps(&value),
        [
            step("1", "t", json!({}), &[]),
            step("2", "t", json!({"input": "1 + 1"}), &["1"]),
            step("s3", NO_TOOL, json!({}), &[]),
            step("x", "t", json!({}), &[]),
            step("s5", "t", json!({"input": [1, 2]}), &["1", "2", "x"]),
        ]
    );
}

#[test]
fn text_that_is_almost_json_makes_a_plan_unreadable() {
    for value in [
        json!({"steps": ["{\"tool\": \"t\", \"arguments\": {},}"]}),
        json!({"steps": [{"tool": "t", "arguments": "{'x': 1}"}], "answer": "later"}),
        json!({"plan": {"a": {"tool": "t", "args": "{\"x\": 1"}}}),
    ] {
        assert_eq!(parse_decision(&value), None, "{value}");
        assert!(has_broken_text(&value), "{value}");
    }
}

#[test]
fn an_answer_counts_only_without_steps() {
    assert_eq!(
        parse_decision(&json!({"steps": [], "answer": " Paris "})),
        Some(PlannerDecision::Answer("Paris".to_owned()))
    );
    assert_eq!(parse_decision(&json!({"final_answer": "4"})), Some(PlannerDecision::Answer("4".to_owned())));
    assert_eq!(parse_decision(&json!({"steps": [], "answer": ""})), None);
    assert_eq!(parse_decision(&json!({"name": "Bob", "age": 7})), None);
    assert_eq!(steps(&json!({"steps": [{"id": "a", "tool": "t"}], "answer": "later"})).len(), 1);
}

#[test]
fn the_server_that_a_model_names_is_part_of_the_name() {
    let tools = |steps: Value| -> Vec<String> {
        let Some(PlannerDecision::Plan(plan)) = parse_decision(&json!({ "steps": steps })) else {
            panic!("no plan")
        };
        plan.steps.into_iter().map(|step| step.tool_type).collect()
    };
    assert_eq!(
        tools(json!([
            {"tool_name": "search_notes", "source": "beta", "arguments": {}},
            {"tool_name": "beta.search_notes", "source": "beta", "arguments": {}},
            {"tool_name": "calculate", "source": "native", "arguments": {}},
            {"tool_name": "calculate", "source": "appflowy", "arguments": {}},
            {"tool_name": "copy", "arguments": {"source": "a.txt"}},
        ])),
        ["beta.search_notes", "beta.search_notes", "calculate", "calculate", "copy"]
    );
}
