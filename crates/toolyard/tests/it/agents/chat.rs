//! `toolyard chat` with piped input.

use std::{io::Write as _, process::Stdio};

use super::{Fixture, normalize};

/// The output of `toolyard chat` with this input.
pub(crate) fn chat(fixture: &Fixture, args: &[&str], input: &str) -> String {
    let args: Vec<&str> = ["chat"].iter().chain(args).copied().collect();
    let mut command = fixture.home.command(&args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    normalize(&fixture.home.output_text(&child.wait_with_output().unwrap()))
}

#[test]
fn a_conversation_continues_across_processes() {
    let fixture = Fixture::new();
    fixture.model.script_direct_answer("my name is Ada", "Hello, Ada.");
    fixture.model.script_direct_answer("what is my name", "Ada.");
    insta::assert_snapshot!(chat(&fixture, &["--conversation", "names"], "my name is Ada\nwhat is my name?\n"), @r"
    Hello, Ada.
    Ada.
    --- stderr
    Nothing was changed.
    Nothing was changed.
    ");
    let requests = fixture.model.requests();
    let last_request = requests.last().unwrap().to_string();
    assert!(
        last_request.contains("my name is Ada") && last_request.contains("Hello, Ada."),
        "{last_request}"
    );
    chat(&fixture, &["--conversation", "names"], "what is my name?\n");
    assert!(
        fixture.model.requests().last().unwrap().to_string().contains("my name is Ada"),
        "another process continues the conversation"
    );
    chat(&fixture, &["--conversation", "names"], "/clear\nwhat is my name?\n");
    assert!(!fixture.model.requests().last().unwrap().to_string().contains("my name is Ada"));
}

#[test]
fn slash_commands_are_executed_until_exit() {
    let fixture = Fixture::new();
    fixture.script_note();
    let input =
        "/help\n/model\n/agent\n/tools write a note\n/plan note it\n/runs\n/nonsense\n/exit\nnever said\n";
    insta::assert_snapshot!(chat(&fixture, &[], input), @r#"
    --- stderr
    /tools [REQUEST] list all tools, or search for a request
    /plan QUESTION show the plan without calling tools
    /dry-run QUESTION skip calls with side effects
    /runs list the runs of this chat
    /show [RUN] show a run, by default the last one
    /model [NAME] show or change the model
    /agent [NAME] show or change the agent
    /history show the conversation
    /clear start over; the stored conversation stays
    /exit exit, like ctrl-d
    Ctrl-c interrupts the current run, which can be resumed.
    agent assistant, model local
    agent assistant; known agents: assistant
    write_note skill:notebook Write a note into the notebook
    slow_note skill:notebook Write a note into the notebook
    notebook skill:notebook Notes
    read_result native Read the rest of a result that was too long to be shown whole, page by page
    get_time native Tell the current date, time and weekday in a time zone
    plan power → write local, N s
    run RUN
    error: unknown command /nonsense
      hint: /help lists the commands
    --- exit 2
    "#);
    assert!(fixture.notes().is_empty());
}

#[test]
fn the_exit_code_is_that_of_the_last_message() {
    let fixture = Fixture::new();
    fixture.script_note();
    insta::assert_snapshot!(chat(&fixture, &[], "note it\n"), @r#"
    --- stderr
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     ? write write_note skill:notebook unverified effects: {"text":1024}
    error: the run is suspended until you approve: write_note
      hint: toolyard runs approve RUN · toolyard runs deny RUN
    --- exit 6
    "#);
}

#[test]
fn a_later_answer_joins_the_conversation() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture.model.script_direct_answer("and now", "Now what?");
    let output = chat(&fixture, &["--conversation", "notes"], "note it\n");
    assert!(output.contains("suspended until you approve"), "{output}");
    let last_request = |fixture: &Fixture| fixture.model.requests().last().unwrap().to_string();
    chat(&fixture, &["--conversation", "notes"], "and now?\n");
    assert!(
        !last_request(&fixture).contains(&fixture.last_run())
            && !last_request(&fixture).contains("I wrote it down."),
        "{}",
        last_request(&fixture)
    );
    let runs = fixture.home.command(&["runs", "list", "--json"]).output().unwrap();
    let runs: serde_json::Value = serde_json::from_slice(&runs.stdout).unwrap();
    fixture.run(&["runs", "approve", runs[1]["id"].as_str().unwrap(), "--yes"]);
    let output = chat(&fixture, &["--conversation", "notes"], "and now?\n");
    assert!(output.contains("has finished: I wrote it down."), "{output}");
    assert!(last_request(&fixture).contains("I wrote it down."), "{}", last_request(&fixture));
}

/// The id of the unfinished run.
fn unfinished_run(fixture: &Fixture) -> String {
    let runs = fixture.home.command(&["runs", "list", "--json"]).output().unwrap();
    let runs: serde_json::Value = serde_json::from_slice(&runs.stdout).unwrap();
    let unfinished = runs.as_array().unwrap().iter().find(|run| run["state"] == "open").unwrap();
    unfinished["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_later_answer_is_reported_once() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture.model.script_direct_answer("and now", "Now what?");
    let chat = |input: &str| chat(&fixture, &["--conversation", "notes"], input);
    chat("note it\n");
    fixture.run(&["runs", "approve", &unfinished_run(&fixture), "--yes"]);
    let output = chat("and now?\nand now?\n");
    assert_eq!(output.matches("has finished").count(), 1, "{output}");
    let output = chat("and now?\n/history\n");
    assert!(!output.contains("has finished"), "{output}");
    assert!(output.contains("assistant: I wrote it down."), "the answer is part of the history: {output}");
    assert!(!output.contains("run: "), "{output}");
}

#[test]
fn a_cancelled_run_leaves_no_placeholder_in_the_history() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture.model.script_direct_answer("and now", "Now what?");
    let chat = |input: &str| chat(&fixture, &["--conversation", "notes"], input);
    chat("note it\n");
    fixture.run(&["runs", "cancel", &unfinished_run(&fixture)]);
    chat("and now?\n");
    let output = chat("/history\n");
    assert!(output.contains("user: note it") && !output.contains("run: "), "{output}");
}

#[test]
fn the_history_tool_hides_placeholders() {
    let fixture = Fixture::new();
    fixture.script_note();
    let steps = serde_json::json!([{"id": "back", "tool_type": "get_conversation_history", "arguments": {}}]);
    fixture.model.script_plan("look back", &steps);
    fixture.model.script_answer("look back", "You wanted a note.");
    chat(&fixture, &["--conversation", "notes"], "note it\n");
    let run = unfinished_run(&fixture);
    let output = chat(&fixture, &["--conversation", "notes"], "look back\n");
    assert!(output.contains("You wanted a note."), "{output}");
    let last_request = fixture.model.requests().last().unwrap().to_string();
    assert!(last_request.contains("note it") && !last_request.contains(&run), "{last_request}");
}
