//! `toolyard chat` with piped input.

use std::{io::Write as _, process::Stdio};

use crate::{Fixture, tidy};

fn chat(fixture: &Fixture, words: &[&str], said: &str) -> String {
    let words: Vec<&str> = ["chat"].iter().chain(words).copied().collect();
    let mut command = fixture.home.command(&words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
    tidy(&fixture.home.seen(&child.wait_with_output().unwrap()))
}

#[test]
fn a_conversation_continues_across_processes() {
    let fixture = Fixture::new();
    fixture.model.answers_at_once("my name is Ada", "Hello, Ada.");
    fixture.model.answers_at_once("what is my name", "Ada.");
    insta::assert_snapshot!(chat(&fixture, &["--conversation", "names"], "my name is Ada\nwhat is my name?\n"), @r#"
    Hello, Ada.
    Ada.
    "#);
    let requests = fixture.model.requests();
    let told = requests.last().unwrap().to_string();
    assert!(told.contains("my name is Ada") && told.contains("Hello, Ada."), "{told}");
    chat(&fixture, &["--conversation", "names"], "what is my name?\n");
    assert!(
        fixture.model.requests().last().unwrap().to_string().contains("my name is Ada"),
        "in another process"
    );
    chat(&fixture, &["--conversation", "names"], "/clear\nwhat is my name?\n");
    assert!(!fixture.model.requests().last().unwrap().to_string().contains("my name is Ada"));
}

#[test]
fn slash_commands_work() {
    let fixture = Fixture::new();
    fixture.plans_to_note();
    let said =
        "/help\n/model\n/agent\n/tools write a note\n/plan note it\n/runs\n/nonsense\n/exit\nnever said\n";
    insta::assert_snapshot!(chat(&fixture, &[], said), @r#"
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
    Ctrl-c cancels the current run.
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
    fixture.plans_to_note();
    insta::assert_snapshot!(chat(&fixture, &[], "note it\n"), @r#"
    --- stderr
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     ? write write_note skill:notebook writes: {"text":1024}
    error: the run is suspended until you approve: write_note
      hint: toolyard runs approve RUN · toolyard runs deny RUN
    --- exit 6
    "#);
}

#[test]
fn a_later_answer_joins_the_conversation() {
    let fixture = Fixture::new();
    fixture.plans_to_note();
    fixture.model.answers_at_once("and now", "Now what?");
    let seen = chat(&fixture, &["--conversation", "notes"], "note it\n");
    assert!(seen.contains("suspended until you approve"), "{seen}");
    let told = |fixture: &Fixture| fixture.model.requests().last().unwrap().to_string();
    chat(&fixture, &["--conversation", "notes"], "and now?\n");
    assert!(
        !told(&fixture).contains(&fixture.last_run()) && !told(&fixture).contains("I wrote it down."),
        "{}",
        told(&fixture)
    );
    let runs = fixture.home.command(&["runs", "list", "--json"]).output().unwrap();
    let runs: serde_json::Value = serde_json::from_slice(&runs.stdout).unwrap();
    fixture.run(&["runs", "approve", runs[1]["id"].as_str().unwrap()]);
    let seen = chat(&fixture, &["--conversation", "notes"], "and now?\n");
    assert!(seen.contains("has finished: I wrote it down."), "{seen}");
    assert!(told(&fixture).contains("I wrote it down."), "{}", told(&fixture));
}

/// The id of the unfinished run.
fn waiting_run(fixture: &Fixture) -> String {
    let runs = fixture.home.command(&["runs", "list", "--json"]).output().unwrap();
    let runs: serde_json::Value = serde_json::from_slice(&runs.stdout).unwrap();
    let open = runs.as_array().unwrap().iter().find(|run| run["state"] == "open").unwrap();
    open["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_later_answer_is_reported_once() {
    let fixture = Fixture::new();
    fixture.plans_to_note();
    fixture.model.answers_at_once("and now", "Now what?");
    let chat = |said: &str| chat(&fixture, &["--conversation", "notes"], said);
    chat("note it\n");
    fixture.run(&["runs", "approve", &waiting_run(&fixture)]);
    let seen = chat("and now?\nand now?\n");
    assert_eq!(seen.matches("has finished").count(), 1, "{seen}");
    let seen = chat("and now?\n/history\n");
    assert!(!seen.contains("has finished"), "{seen}");
    assert!(seen.contains("assistant: I wrote it down."), "it is part of it: {seen}");
    assert!(!seen.contains("run: "), "{seen}");
}

#[test]
fn a_run_without_an_answer_leaves_no_placeholder() {
    let fixture = Fixture::new();
    fixture.plans_to_note();
    fixture.model.answers_at_once("and now", "Now what?");
    let chat = |said: &str| chat(&fixture, &["--conversation", "notes"], said);
    chat("note it\n");
    fixture.run(&["runs", "cancel", &waiting_run(&fixture)]);
    chat("and now?\n");
    let seen = chat("/history\n");
    assert!(seen.contains("user: note it") && !seen.contains("run: "), "{seen}");
}

#[test]
fn the_history_tool_hides_placeholders() {
    let fixture = Fixture::new();
    fixture.plans_to_note();
    let recall =
        serde_json::json!([{"id": "back", "tool_type": "get_conversation_history", "arguments": {}}]);
    fixture.model.plans("look back", &recall);
    fixture.model.answers("look back", "You wanted a note.");
    chat(&fixture, &["--conversation", "notes"], "note it\n");
    let run = waiting_run(&fixture);
    let seen = chat(&fixture, &["--conversation", "notes"], "look back\n");
    assert!(seen.contains("You wanted a note."), "{seen}");
    let told = fixture.model.requests().last().unwrap().to_string();
    assert!(told.contains("note it") && !told.contains(&run), "{told}");
}
