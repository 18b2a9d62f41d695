//! Requests and plans that show a small model what is wanted, with tools of their own that nobody has.

use serde_json::{Value, json};
use toolyard_model::ModelMessage;

/// The tools of the examples.
pub(super) const TOOLS: &str = "- get_stock(database: string, item: string)\n  Returns: {\"item\":\"figs\",\"count\":3}\n- \
    list_orders(database: string, customer: string)\n  Returns: {\"items\":[{\"id\":1,\"price\":9.5}]}\n- \
    save_rows(file: string, line: integer = 1, rows: any[][])";

/// The examples as turns of a conversation: an answer, single calls, plans whose steps need each other and plans whose
/// steps do not, in two languages.
pub(super) fn turns() -> Vec<ModelMessage> {
    let all = [
        (
            "Hi, who are you?",
            json!({"answer": "I am an assistant. I can use tools for you. What shall I do?"}),
        ),
        (
            "Look up the stock of apples and of pears in shop.db and save the sum of both in stock.csv",
            stock(),
        ),
        (
            "读取 shop.db 中 Bob 的订单",
            call("list_orders", &json!({"database": "shop.db", "customer": "Bob"})),
        ),
        ("新建文件夹 旧文件，然后把 笔记.txt 移到 旧文件", folder()),
        (
            "List the orders of Ann in shop.db, take the highest price and save it in line 5 of max.csv",
            highest(),
        ),
        (
            "Save the row 30, red in line 4 of colours.csv",
            call("save_rows", &json!({"file": "colours.csv", "line": 4, "rows": [[30, "red"]]})),
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

fn step(id: &str, tool: &str, arguments: &Value, needs: &[&str]) -> Value {
    json!({"id": id, "tool_type": tool, "arguments": arguments, "dependencies": needs})
}

fn stock() -> Value {
    json!({"steps": [
        step("apples", "get_stock", &json!({"database": "shop.db", "item": "apples"}), &[]),
        step("pears", "get_stock", &json!({"database": "shop.db", "item": "pears"}), &[]),
        step("sum", "calculate", &json!({"expression": "$apples.count + $pears.count"}), &["apples", "pears"]),
        step("save", "save_rows", &json!({"file": "stock.csv", "line": 1, "rows": [["$sum.result"]]}), &["sum"]),
    ]})
}

fn folder() -> Value {
    json!({"steps": [
        step("create", "create_folder", &json!({"path": "旧文件"}), &[]),
        step("move", "move_file", &json!({"file": "笔记.txt", "to": "旧文件"}), &["create"]),
    ]})
}

fn highest() -> Value {
    json!({"steps": [
        step("orders", "list_orders", &json!({"database": "shop.db", "customer": "Ann"}), &[]),
        step("highest", "calculate", &json!({"expression": "max(values)", "values": "$orders.items[*].price"}), &["orders"]),
        step("save", "save_rows", &json!({"file": "max.csv", "line": 5, "rows": [["$highest.result"]]}), &["highest"]),
    ]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planning::read::{Said, said};

    #[test]
    fn every_example_is_what_it_shows() {
        for message in turns().iter().skip(1).step_by(2) {
            let value: Value = serde_json::from_str(&message.text).unwrap();
            match said(&value).unwrap() {
                Said::Answer(answer) => assert!(!answer.is_empty()),
                Said::Plan(plan) => assert_eq!(crate::cycle(&plan), None),
            }
        }
    }
}
