//! Example requests and replies for small models, with fictional tools.

use serde_json::{Value, json};
use toolyard_model::ModelMessage;

/// The examples as conversation turns: an answer, single calls and plans in two languages. Chosen by measurements with a
/// 1.5B model: with more plans among them, it plans where one call is enough.
pub(super) fn example_turns() -> Vec<ModelMessage> {
    let all = [
        (
            "Hi, who are you?",
            json!({"answer": "I am an assistant. I can use tools for you. What shall I do?"}),
        ),
        ("Look up the owner of shop.db and save it in owner.csv", owner()),
        (
            "把 红、大 保存到 颜色.csv 的第 4 行",
            call("save_rows", &json!({"file": "颜色.csv", "line": 4, "rows": [["红", "大"]]})),
        ),
        (
            "读取 shop.db 中 Bob 的订单",
            call("list_orders", &json!({"database": "shop.db", "customer": "Bob"})),
        ),
        ("读取 shop.db 中 Ann 的订单，求最高价格，并保存到 max.csv", highest()),
        (
            "Save the row 30, red, large in colours.csv, beginning at line 4",
            call("save_rows", &json!({"file": "colours.csv", "line": 4, "rows": [[30, "red", "large"]]})),
        ),
    ];
    let turn = |(request, reply): (&str, Value)| {
        [ModelMessage::user(request), ModelMessage::assistant(reply.to_string())]
    };
    all.into_iter().flat_map(turn).collect()
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"call": {"tool_type": tool, "arguments": arguments}})
}

fn step(id: &str, tool: &str, arguments: &Value, dependencies: &[&str]) -> Value {
    json!({"id": id, "tool_type": tool, "arguments": arguments, "dependencies": dependencies})
}

fn owner() -> Value {
    json!({"steps": [
        step("owner", "get_owner", &json!({"database": "shop.db"}), &[]),
        step("save", "save_rows", &json!({"file": "owner.csv", "rows": [["$owner.name"]]}), &["owner"]),
    ]})
}

fn highest() -> Value {
    json!({"steps": [
        step("orders", "list_orders", &json!({"database": "shop.db", "customer": "Ann"}), &[]),
        step("highest", "calculate", &json!({"expression": "max(values)", "values": "$orders.items[*].price"}), &["orders"]),
        step("save", "save_rows", &json!({"file": "max.csv", "rows": [["$highest.result"]]}), &["highest"]),
    ]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::{PlannerDecision, plan_check::find_cycle, reply::plan_json::parse_decision};

    #[test]
    fn every_example_is_a_valid_reply() {
        for message in example_turns().iter().skip(1).step_by(2) {
            let value: Value = serde_json::from_str(&message.text).unwrap();
            match parse_decision(&value).unwrap() {
                PlannerDecision::Answer(answer) => assert!(!answer.is_empty()),
                PlannerDecision::Plan(plan) => assert_eq!(find_cycle(&plan), None),
            }
        }
    }
}
