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
    insta::assert_snapshot!(chat(&yard, &["--conversation", "names"], "my name is Ada\nwhat is my name?\n"), @"");
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
    insta::assert_snapshot!(chat(&yard, &[], said), @"");
    assert!(yard.notes().is_empty());
}

#[test]
fn how_the_last_message_went_is_the_exit_code() {
    let yard = Yard::new();
    yard.plans_to_note();
    insta::assert_snapshot!(chat(&yard, &[], "note it\n"), @"");
}
