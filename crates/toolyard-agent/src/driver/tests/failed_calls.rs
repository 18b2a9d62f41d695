//! Repairs of calls that failed: refused paths, repeated calls.

use serde_json::json;

use super::{steps::answer_of, *};
use crate::ApprovalRules;

#[tokio::test(start_paused = true)]
async fn a_refused_relative_path_is_made_absolute_without_a_model() {
    let plan = plan(&[("save", "save", json!({"filepath": "sales.xlsx", "data": [[1]]}), &[])]);
    let save = tool("save", Behavior::RequireAbsolutePath).writes();
    let in_one_folder = save.clone().with_folders(&["~/sheets", "/home/anna/sheets"]);
    let in_two_folders = save.clone().with_folders(&["/sheets", "/reports"]);
    let cases = [
        (save, "/docs/sales.xlsx"),
        (in_one_folder, "/home/anna/sheets/sales.xlsx"),
        (in_two_folders, "/docs/sales.xlsx"),
    ];
    for (save, absolute) in cases {
        let allow = ApprovalRules { allow: vec!["save".to_owned()], ..ApprovalRules::default() };
        let replies = replying([plan.clone(), "Saved.".to_owned()]);
        let fixture = Fixture::new(replies, &[save]).with_rules(allow);
        let (_, end) = fixture.ask(request("Save 1 in sales.xlsx")).await;
        assert_eq!(answer_of(&end), "Saved.");
        let calls = ["sales.xlsx", absolute].map(|path| json!({"filepath": path, "data": [[1]]}));
        assert_eq!(fixture.arguments_of("save"), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_plan_does_not_repeat_a_call_that_failed() {
    let add = plan(&[("add", "add", json!({"name": "Anna"}), &[])]);
    let create = plan(&[("create", "create", json!({"name": "Anna"}), &[])]);
    let tools = [
        tool("add", Behavior::FailWith("no entity Anna".to_owned())).writes(),
        tool("create", Behavior::Echo).writes(),
    ];
    let allow = ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() };
    let replies = replying([add.clone(), add, create, "Remembered.".to_owned()]);
    let fixture = Fixture::new(replies, &tools).with_rules(allow);
    let (_, end) = fixture.ask(request("Remember Anna")).await;
    assert_eq!(answer_of(&end), "Remembered.");
    assert_eq!(fixture.calls(), ["add", "create"]);
}

#[tokio::test(start_paused = true)]
async fn reasoning_alone_is_no_plan() {
    let think = json!({"steps": [{"id": "add", "tool_type": "none", "description": "Remember Anna", "dependencies": ["s1"]}]});
    let create = plan(&[("create", "create", json!({"name": "Anna"}), &[])]);
    let allow = ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() };
    let replies = replying([think.to_string(), create, "Remembered.".to_owned()]);
    let fixture = Fixture::new(replies, &[tool("create", Behavior::Echo).writes()]).with_rules(allow);
    let (_, end) = fixture.ask(request("Remember Anna")).await;
    assert_eq!(answer_of(&end), "Remembered.");
    assert_eq!(fixture.calls(), ["create"]);
}
