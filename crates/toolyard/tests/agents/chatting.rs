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
