//! Example requests and replies for small models, with fictional tools.

use serde_json::{Value, json};
use toolyard_model::ModelMessage;

use super::plan::NO_TOOL;

/// The examples as conversation turns: an answer, single calls and plans in two languages. Chosen by measurements with a
/// 1.5B model: with more plans among them, it plans where one call is enough, and it copies steps of an example whose
/// words occur in the request, or chooses tools whose names begin like those of the examples. So the examples are about
/// something that few requests are about, and read with tools that are called `read_…`.
pub(super) fn example_turns() -> Vec<ModelMessage> {
    let all = [
        (
            "Hi, who are you?",
            json!({"answer": "I am an assistant. I can use tools for you. What shall I do?"}),
        ),
        ("Look up the keeper of hive 7 and save it in keeper.csv", keeper()),
        (
            "把 红、大 保存到 颜色.csv 的第 4 行",
            call("save_rows", &json!({"file": "颜色.csv", "line": 4, "rows": [["红", "大"]]})),
        ),
        ("7 号蜂箱五月份有多少蜂蜜？", call("read_harvests", &json!({"hive": 7, "month": 5}))),
        ("读取 7 号蜂箱的收成，求最高重量，并保存到 max.csv", highest()),
        ("Translate the motto of hive 3 into French and save it in motto.txt", motto()),
        ("Which month had the most honey in hive 7?", call("read_harvests", &json!({"hive": 7}))),
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

fn keeper() -> Value {
    json!({"steps": [
        step("keeper", "find_keeper", &json!({"hive": 7}), &[]),
        step("save", "save_rows", &json!({"file": "keeper.csv", "rows": [["$keeper.name"]]}), &["keeper"]),
    ]})
}

fn highest() -> Value {
    json!({"steps": [
        step("harvests", "read_harvests", &json!({"hive": 7}), &[]),
        step("highest", "calculate", &json!({"expression": "max(values)", "values": "$harvests.items[*].weight"}), &["harvests"]),
        step("save", "save_rows", &json!({"file": "max.csv", "rows": [["$highest.result"]]}), &["highest"]),
    ]})
}

fn motto() -> Value {
    json!({"steps": [
        step("motto", "read_motto", &json!({"hive": 3}), &[]),
        {"id": "french", "tool_type": NO_TOOL, "description": "Translate the motto into French", "dependencies": ["motto"]},
        step("save", "save_text", &json!({"file": "motto.txt", "text": "$french"}), &["french"]),
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
                PlannerDecision::Search(words) => panic!("{words}"),
            }
        }
    }
}
