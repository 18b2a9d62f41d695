//! What a person at a terminal sees and types.

use std::process::Command;

use serde_json::{Value, json};

use crate::{Yard, tidy};

/// Runs it at a terminal; everything that is left on the screen.
fn at_a_terminal(yard: &Yard, words: &[&str], answers: &Value) -> String {
    plain(&written_to_a_terminal(yard, words, answers))
}

/// Runs it at a terminal; everything that was written to it.
fn written_to_a_terminal(yard: &Yard, words: &[&str], answers: &Value) -> String {
    let program = yard.place.command(words);
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/terminal.py");
    let mut command = Command::new("python3");
    command.arg(driver).arg(answers.to_string()).arg(program.get_program()).args(program.get_args());
    command.current_dir(program.get_current_dir().unwrap()).env_clear().env("TERM", "xterm");
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap());
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.is_empty(), "{errors}");
    text
}

/// What is left on the screen: lines that were drawn over are gone.
fn plain(text: &str) -> String {
    let mut lines = vec![String::new()];
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '\n' => lines.push(String::new()),
            '\u{1b}' => {
                let end = rest.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(0);
                let number = rest.trim_start_matches('[')[..].split(|c: char| !c.is_ascii_digit()).next();
                if rest[..=end].ends_with('A') {
                    let up: usize = number.unwrap_or("1").parse().unwrap_or(1);
                    lines.truncate(lines.len().saturating_sub(up + 1));
                    lines.push(String::new());
                }
                rest = &rest[(end + 1).min(rest.len())..];
            }
            letter => lines.last_mut().unwrap().push(letter),
        }
    }
    tidy(&lines.join("\n"))
}

#[test]
fn a_person_is_asked_in_the_tree_and_sees_the_answer_as_it_comes() {
    let yard = Yard::new();
    yard.plans_to_note();
    let answers = json!([["etails", "what?\n"], ["etails", "d\n"], ["etails", "y\n"]]);
    let shown = at_a_terminal(&yard, &["ask", "note it"], &answers);
    let times = |line: &str| {
        line.split(' ')
            .map(|word| if word.parse::<f64>().is_ok() && word.contains('.') { "N" } else { word })
            .collect::<Vec<_>>()
            .join(" ")
    };
    let shown: Vec<String> = shown.lines().map(times).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     ✓ write write_note skill:notebook {"written":true} N s
     ✓ verify 2 of 2 results
    I wrote it down.
    run RUN resume, inspect or replay: toolyard runs show RUN

    exit 0
    "#);
    assert_eq!(yard.notes().len(), 1);
}

#[test]
fn a_person_who_says_no_is_heard() {
    let yard = Yard::new();
    yard.plans_to_note();
    let shown = at_a_terminal(&yard, &["ask", "note it"], &json!([["etails", "n\n"]]));
    assert!(shown.contains("- write write_note skill:notebook denied by"), "{shown}");
    assert!(yard.notes().is_empty());
}

#[test]
fn ctrl_c_in_a_chat_cancels_the_run_and_not_the_chat() {
    let yard = Yard::new();
    yard.model.plans("slowly", &json!([{"id": "slow", "tool_type": "slow_note", "arguments": {"text": 1}}]));
    yard.model.answers_at_once("hello", "Hello to you.");
    let answers = json!([
        ["> ", "slowly\n"],
        ["slow_note  skill:notebook  {", "\u{3}"],
        ["was cancelled", "\u{3}"],
        ["nothing is under way", "hello\n"],
        ["Hello to you.", "\u{4}"],
    ]);
    let shown = at_a_terminal(&yard, &["chat", "--yes"], &answers);
    for wanted in [
        "cancelling: calls that are under way",
        "the run was cancelled",
        "Hello to you.",
        "go on with it: toolyard chat --conversation",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    assert!(shown.ends_with("exit 0"), "{shown}");
}

#[test]
fn ctrl_c_at_a_question_cancels_the_run() {
    let yard = Yard::new();
    yard.plans_to_note();
    let shown = at_a_terminal(&yard, &["ask", "note it"], &json!([["etails", "\u{3}"]]));
    assert!(shown.ends_with("exit 130"), "{shown}");
    assert!(yard.notes().is_empty());
    assert!(yard.run(&["runs", "list"]).contains("RUN cancelled"), "{shown}");
}

#[test]
fn what_was_typed_before_a_question_was_shown_is_no_answer_to_it() {
    let yard = Yard::new();
    yard.plans_two_notes();
    yard.set("[approvals]\nallow = [\"brief_note\"]\n");
    let shown =
        at_a_terminal(&yard, &["ask", "two notes"], &json!([["brief_note", "y\na\ny\n"], ["etails", "n\n"]]));
    assert!(shown.contains("- second write_note skill:notebook denied by"), "{shown}");
    assert_eq!(yard.notes(), [r#"{"text":"one"}"#]);
}

#[test]
fn the_end_of_long_arguments_is_shown_before_a_person_decides() {
    let yard = Yard::new();
    let long = format!("harmless {} THE-END", "x".repeat(5_000));
    yard.model
        .plans("much", &json!([{"id": "write", "tool_type": "write_note", "arguments": {"text": long}}]));
    yard.model.answers("much", "Done.");
    let shown = at_a_terminal(&yard, &["ask", "much"], &json!([["THE-END", "d\n"], ["THE-END", "n\n"]]));
    assert!(shown.contains("- write write_note skill:notebook denied by"), "{shown}");
    assert!(yard.notes().is_empty());
}

#[test]
fn a_tool_asks_the_person_at_the_terminal() {
    let yard = Yard::new();
    yard.plans_to_sign();
    let answers =
        json!([["answer it?", "y\n"], ["Your name", "\n"], ["Your name", "Ada\n"], ["sure", "y\n"]]);
    let shown = at_a_terminal(&yard, &["ask", "sign it"], &answers);
    assert!(shown.contains("It is signed."), "{shown}");
    assert_eq!(yard.signed(), "{\"action\": \"accept\", \"content\": {\"name\": \"Ada\", \"sure\": true}}\n");
    let shown = at_a_terminal(&yard, &["ask", "sign it"], &json!([["answer it?", "n\n"]]));
    assert!(yard.signed().ends_with("{\"action\": \"decline\"}\n"), "{shown}");
}

#[test]
fn whoever_allows_everything_is_not_there_to_be_asked() {
    let yard = Yard::new();
    yard.plans_to_sign();
    let told = || std::fs::read_to_string(yard.place.path("signed.txt.client")).unwrap();
    at_a_terminal(&yard, &["ask", "sign it"], &json!([["answer it?", "n\n"]]));
    assert!(told().contains("elicitation"), "{}", told());
    at_a_terminal(&yard, &["ask", "--yes", "sign it"], &json!([]));
    assert!(!told().contains("elicitation"), "{}", told());
    at_a_terminal(&yard, &["chat", "--yes"], &json!([["> ", "sign it\n"], ["It is signed.", "\u{4}"]]));
    assert!(!told().contains("elicitation"), "{}", told());
}

#[test]
fn a_long_prompt_stays_on_its_line() {
    let yard = Yard::new();
    yard.plans_to_sign_with_title(40);
    let answers = json!([["answer it?", "y\n"], ["Your name", "Ada\n"], ["sure", "y\n"]]);
    let written = written_to_a_terminal(&yard, &["ask", "sign it"], &answers);
    assert!(yard.signed().contains("Ada"), "{written}");
    let line = written.split(['\n', '\u{1b}']).find(|line| line.contains("Your name")).unwrap();
    assert!(line.chars().count() < 100 && line.contains('…') && line.contains("more: Ada"), "{line}");
}
