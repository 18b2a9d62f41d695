//! `toolyard chat` with messages that come through a pipe.

use std::{io::Write as _, process::Stdio};

use crate::{Yard, tidy};

fn chat(yard: &Yard, words: &[&str], said: &str) -> String {
    let words: Vec<&str> = ["chat"].iter().chain(words).copied().collect();
    let mut command = yard.place.command(&words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
    tidy(&yard.place.seen(&child.wait_with_output().unwrap()))
}

#[test]
fn what_was_said_is_remembered() {
    let yard = Yard::new();
    yard.model.answers_at_once("my name is Ada", "Hello, Ada.");
    yard.model.answers_at_once("what is my name", "Ada.");
    insta::assert_snapshot!(chat(&yard, &["--conversation", "names"], "my name is Ada\nwhat is my name?\n"), @r#"
    Hello, Ada.
    Ada.
    "#);
    let requests = yard.model.requests();
    let told = requests.last().unwrap().to_string();
    assert!(told.contains("my name is Ada") && told.contains("Hello, Ada."), "{told}");
    chat(&yard, &["--conversation", "names"], "what is my name?\n");
    assert!(
        yard.model.requests().last().unwrap().to_string().contains("my name is Ada"),
        "in another process"
    );
    chat(&yard, &["--conversation", "names"], "/clear\nwhat is my name?\n");
    assert!(!yard.model.requests().last().unwrap().to_string().contains("my name is Ada"));
}

#[test]
fn other_things_can_be_said_too() {
    let yard = Yard::new();
    yard.plans_to_note();
    let said =
        "/help\n/model\n/agent\n/tools write a note\n/plan note it\n/runs\n/nonsense\n/exit\nnever said\n";
    insta::assert_snapshot!(chat(&yard, &[], said), @r#"
    --- stderr
    /tools [WORDS] all tools, or those that fit
    /plan QUESTION what it would do; nothing is called
    /dry-run QUESTION everything but what would change something
    /runs the runs of this chat
    /show [RUN] a run, step by step; the last one if none is named
    /model [NAME] which model, or another one from now on
    /agent [NAME] which agent, or another one from now on
    /history what was said
    /clear begin anew; what was said stays kept
    /exit leave, as ctrl-d does
    Ctrl-c cancels what is under way.
    assistant thinks with local
    you talk with assistant; there are assistant
    write_note skill:notebook Write a note into the notebook
    slow_note skill:notebook Write a note into the notebook
    notebook skill:notebook Notes
    read_result native Read the rest of a result that was too long to be shown whole, page by page
    get_time native Tell the current date, time and weekday in a time zone
    plan power → write local, N s
    run RUN
    error: /nonsense means nothing here
      hint: /help says what does
    --- exit 2
    "#);
    assert!(yard.notes().is_empty());
}

#[test]
fn how_the_last_message_went_is_the_exit_code() {
    let yard = Yard::new();
    yard.plans_to_note();
    insta::assert_snapshot!(chat(&yard, &[], "note it\n"), @r#"
    --- stderr
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     ? write write_note skill:notebook writes: {"text":1024}
    error: the run is suspended: it waits for a person to allow write_note
      hint: toolyard runs approve RUN (or, to say no: --deny)
    --- exit 6
    "#);
}

#[test]
fn an_answer_that_came_later_is_part_of_the_conversation() {
    let yard = Yard::new();
    yard.plans_to_note();
    yard.model.answers_at_once("and now", "Now what?");
    let seen = chat(&yard, &["--conversation", "notes"], "note it\n");
    assert!(seen.contains("waits for a person"), "{seen}");
    let told = |yard: &Yard| yard.model.requests().last().unwrap().to_string();
    chat(&yard, &["--conversation", "notes"], "and now?\n");
    assert!(
        !told(&yard).contains(&yard.last_run()) && !told(&yard).contains("I wrote it down."),
        "{}",
        told(&yard)
    );
    let runs = yard.place.command(&["runs", "list", "--json"]).output().unwrap();
    let runs: serde_json::Value = serde_json::from_slice(&runs.stdout).unwrap();
    yard.run(&["runs", "approve", runs[1]["id"].as_str().unwrap()]);
    let seen = chat(&yard, &["--conversation", "notes"], "and now?\n");
    assert!(seen.contains("was answered meanwhile: I wrote it down."), "{seen}");
    assert!(told(&yard).contains("I wrote it down."), "{}", told(&yard));
}

/// The run of the first question of a conversation that is not over yet.
fn waiting_run(yard: &Yard) -> String {
    let runs = yard.place.command(&["runs", "list", "--json"]).output().unwrap();
    let runs: serde_json::Value = serde_json::from_slice(&runs.stdout).unwrap();
    let open = runs.as_array().unwrap().iter().find(|run| run["state"] == "open").unwrap();
    open["id"].as_str().unwrap().to_owned()
}

#[test]
fn an_answer_that_came_later_is_told_once() {
    let yard = Yard::new();
    yard.plans_to_note();
    yard.model.answers_at_once("and now", "Now what?");
    let chat = |said: &str| chat(&yard, &["--conversation", "notes"], said);
    chat("note it\n");
    yard.run(&["runs", "approve", &waiting_run(&yard)]);
    let seen = chat("and now?\nand now?\n");
    assert_eq!(seen.matches("was answered meanwhile").count(), 1, "{seen}");
    let seen = chat("and now?\n/history\n");
    assert!(!seen.contains("was answered meanwhile"), "{seen}");
    assert!(seen.contains("assistant: I wrote it down."), "it is part of it: {seen}");
    assert!(!seen.contains("run: "), "{seen}");
}

#[test]
fn a_run_that_ends_without_an_answer_leaves_nothing_in_the_conversation() {
    let yard = Yard::new();
    yard.plans_to_note();
    yard.model.answers_at_once("and now", "Now what?");
    let chat = |said: &str| chat(&yard, &["--conversation", "notes"], said);
    chat("note it\n");
    yard.run(&["runs", "cancel", &waiting_run(&yard)]);
    chat("and now?\n");
    let seen = chat("/history\n");
    assert!(seen.contains("user: note it") && !seen.contains("run: "), "{seen}");
}

#[test]
fn a_model_that_looks_back_sees_what_was_said_and_nothing_else() {
    let yard = Yard::new();
    yard.plans_to_note();
    let recall =
        serde_json::json!([{"id": "back", "tool_type": "get_conversation_history", "arguments": {}}]);
    yard.model.plans("look back", &recall);
    yard.model.answers("look back", "You wanted a note.");
    chat(&yard, &["--conversation", "notes"], "note it\n");
    let run = waiting_run(&yard);
    let seen = chat(&yard, &["--conversation", "notes"], "look back\n");
    assert!(seen.contains("You wanted a note."), "{seen}");
    let told = yard.model.requests().last().unwrap().to_string();
    assert!(told.contains("note it") && !told.contains(&run), "{told}");
}
