//! `toolyard tools learn`: a model writes example requests, and search knows them.

use serde_json::{Value, json};

use super::{Fixture, TestHome};
use crate::model_server::ReplyFormat;

fn script(fixture: &Fixture, tool: &str, english: &[&str], chinese: &[&str]) {
    let reply = json!({"english": english, "chinese": chinese}).to_string();
    fixture.model.script_reply(&format!("Tool: {tool}\n"), ReplyFormat::Json, &reply);
}

fn json_of(fixture: &Fixture, arguments: &[&str]) -> Value {
    let output = fixture.home.command(&[arguments, &["--json"]].concat()).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_model_is_needed() {
    let output = TestHome::new().run(&["tools", "learn"]);
    assert!(output.contains("error: no model is configured") && output.ends_with("--- exit 2"), "{output}");
}

#[test]
fn example_requests_are_written_once_and_searched() {
    let fixture = Fixture::new();
    let learn = ["tools", "learn", "--server", "skill:notebook"];
    assert_eq!(
        json_of(&fixture, &[&learn[..], &["--dry-run"]].concat()),
        json!({"missing": 3, "known": 0,
            "tools": ["notebook@skill:notebook", "slow_note@skill:notebook", "write_note@skill:notebook"]})
    );
    assert!(fixture.model.requests().is_empty(), "a dry run sends nothing");

    script(&fixture, "notebook", &["How do I take notes?"], &["怎么记笔记"]);
    script(&fixture, "slow_note", &["Wait before you jot"], &["慢慢写"]);
    script(
        &fixture,
        "write_note",
        &["Remind me of the dentist", "Remind me of the dentist"],
        &["提醒我买牛奶"],
    );
    insta::assert_snapshot!(fixture.home.run(&[&learn[..], &["--limit", "2"]].concat()), @r"
    --- stderr
    1 of 2   notebook@skill:notebook: 2 requests
    2 of 2   slow_note@skill:notebook: 2 requests
    wrote example requests for 2 tools; 0 known before, 1 left
    ");
    insta::assert_snapshot!(fixture.home.run(&learn), @r"
    --- stderr
    1 of 1   write_note@skill:notebook: 2 requests
    wrote example requests for 1 tool; 2 known before, 0 left
    ");
    let requests = fixture.model.requests();
    assert_eq!(requests.len(), 3, "one request per tool");
    insta::assert_snapshot!(requests[2]["messages"][1]["content"].as_str().unwrap(), @r"
    Tool: write_note
    Server: skill:notebook
    Parameters: text
    > Write a note into the notebook
    ");

    for words in ["remind me of the dentist", "提醒"] {
        let found = json_of(&fixture, &["tools", "search", words]);
        assert_eq!(found[0]["name"], "write_note", "{words}: {found}");
    }
    let shown = fixture.home.run(&["tools", "show", "write_note"]);
    insta::assert_snapshot!(shown.split_once("  Example").unwrap().1, @r"
     requests that a model wrote:
        - Remind me of the dentist
        - 提醒我买牛奶
    ");

    // A changed definition is learned again, and its old requests no longer count.
    let path = "config/toolyard/skills/notebook/write_note";
    let program = std::fs::read_to_string(fixture.home.path(path)).unwrap();
    std::fs::write(fixture.home.path(path), program.replace("into the notebook", "onto the wall")).unwrap();
    let found = json_of(&fixture, &["tools", "search", "dentist"]);
    assert_eq!(found, json!([]));
    let dry_run = json_of(&fixture, &[&learn[..], &["--dry-run"]].concat());
    assert_eq!(dry_run["tools"], json!(["write_note@skill:notebook"]));
}

#[test]
fn a_reply_that_cannot_be_used_is_reported_and_tried_again() {
    let fixture = Fixture::new();
    fixture.model.script_reply("Tool: ", ReplyFormat::Json, "I would rather not.");
    let learned = json_of(&fixture, &["tools", "learn", "--server", "skill:notebook", "--limit", "1"]);
    assert_eq!(learned, json!({"written": [], "failed": ["notebook@skill:notebook"], "known": 0, "left": 3}));
}
