//! Sessions at a pseudo-terminal.

use std::process::Command;

use serde_json::{Value, json};

use super::{Fixture, normalize};

/// Runs a command at a pseudo-terminal and returns the final screen.
pub(crate) fn run_at_terminal(fixture: &Fixture, args: &[&str], answers: &Value) -> String {
    final_screen(&terminal_output(fixture, args, answers))
}

/// Runs a command at a pseudo-terminal and returns everything it wrote. `answers` are pairs: a text to wait for, such as
/// `etails` (the approval prompt ends with `[d]etails`), and the keys to press then.
pub(crate) fn terminal_output(fixture: &Fixture, args: &[&str], answers: &Value) -> String {
    let program = fixture.home.command(args);
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/agents/terminal.py");
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

/// The final screen, without overwritten lines.
fn final_screen(text: &str) -> String {
    let mut lines = vec![String::new()];
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '\n' => lines.push(String::new()),
            '\u{1b}' => {
                let end = rest.find(|character: char| character.is_ascii_alphabetic()).unwrap_or(0);
                let number = rest.trim_start_matches('[')[..].split(|c: char| !c.is_ascii_digit()).next();
                if rest[..=end].ends_with('A') {
                    let lines_up: usize = number.unwrap_or("1").parse().unwrap_or(1);
                    lines.truncate(lines.len().saturating_sub(lines_up + 1));
                    lines.push(String::new());
                }
                rest = &rest[(end + 1).min(rest.len())..];
            }
            character => lines.last_mut().unwrap().push(character),
        }
    }
    normalize(&lines.join("\n"))
}

#[test]
fn the_user_approves_a_call_and_sees_the_streamed_answer() {
    let fixture = Fixture::new();
    fixture.script_note();
    let answers = json!([["etails", "what?\n"], ["etails", "d\n"], ["etails", "y\n"]]);
    let screen = run_at_terminal(&fixture, &["ask", "note it"], &answers);
    let hide_durations = |line: &str| {
        line.split(' ')
            .map(|word| if word.parse::<f64>().is_ok() && word.contains('.') { "N" } else { word })
            .collect::<Vec<_>>()
            .join(" ")
    };
    let screen: Vec<String> = screen.lines().map(hide_durations).collect();
    insta::assert_snapshot!(screen.join("\n"), @r#"
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     ✓ write write_note skill:notebook {"written":true} N s
     ✓ verify 2 of 2 steps
    I wrote it down.
    Done: write_note → 1024 (step write)
    run RUN inspect: toolyard runs show RUN

    exit 0
    "#);
    assert_eq!(fixture.notes().len(), 1);
}

#[test]
fn the_user_denies_a_call() {
    let fixture = Fixture::new();
    fixture.script_note();
    let screen = run_at_terminal(&fixture, &["ask", "note it"], &json!([["etails", "n\n"]]));
    assert!(screen.contains("- write write_note skill:notebook denied by"), "{screen}");
    assert!(fixture.notes().is_empty());
}

#[test]
fn ctrl_c_in_a_chat_interrupts_the_run_and_not_the_chat() {
    let fixture = Fixture::new();
    fixture
        .model
        .script_plan("slowly", &json!([{"id": "slow", "tool_type": "slow_note", "arguments": {"text": 1}}]));
    fixture.model.script_direct_answer("hello", "Hello to you.");
    let answers = json!([
        ["> ", "slowly\n"],
        ["slow_note  skill:notebook  {", "\u{3}"],
        ["interrupting: waiting for calls in flight", "\u{3}"],
        ["the run is interrupted", "\u{3}"],
        ["no run is in progress", "hello\n"],
        ["Hello to you.", ""],
        ["> ", "\u{4}"],
    ]);
    let screen = run_at_terminal(&fixture, &["chat", "--yes"], &answers);
    for expected in [
        "error: the run is interrupted",
        "hint: toolyard runs resume RUN · toolyard runs cancel RUN",
        "Hello to you.",
        "continue with: toolyard chat --conversation",
    ] {
        assert!(screen.contains(expected), "{expected}: {screen}");
    }
    assert!(screen.ends_with("exit 0"), "{screen}");
}

#[test]
fn ctrl_c_at_a_prompt_interrupts_the_run_which_can_be_resumed() {
    let fixture = Fixture::new();
    fixture.script_note();
    let screen = run_at_terminal(&fixture, &["ask", "note it"], &json!([["etails", "\u{3}"]]));
    assert!(screen.contains("hint: toolyard runs resume RUN") && screen.ends_with("exit 130"), "{screen}");
    assert!(fixture.notes().is_empty());
    let list = fixture.run(&["runs", "list"]);
    assert!(!list.contains("cancelled"), "{list}");
    let run = fixture.last_run();
    let screen = run_at_terminal(&fixture, &["runs", "resume", &run], &json!([["etails", "y\n"]]));
    assert!(screen.contains("I wrote it down.") && screen.ends_with("exit 0"), "{screen}");
    assert_eq!(fixture.notes().len(), 1);
}

#[test]
fn ctrl_c_lets_the_call_in_flight_end_and_resuming_does_not_repeat_it() {
    let fixture = Fixture::new();
    fixture.script_two_notes();
    // After a second, the program certainly runs.
    let answers = json!([["brief_note  skill:notebook  {", ""], [" 1 s", "\u{3}"]]);
    let screen = run_at_terminal(&fixture, &["ask", "--yes", "two notes"], &answers);
    for expected in
        ["interrupting: waiting for calls in flight to end", "error: the run is interrupted", "exit 130"]
    {
        assert!(screen.contains(expected), "{expected}: {screen}");
    }
    assert_eq!(fixture.notes(), [r#"{"text":"one"}"#], "the call in flight ended: {screen}");
    let resumed = fixture.run(&["runs", "resume", "--yes", &fixture.last_run()]);
    assert!(resumed.contains("Both are written."), "{resumed}");
    assert_eq!(fixture.notes(), [r#"{"text":"one"}"#, r#"{"text":"two"}"#], "no step is repeated");
}

#[test]
fn keystrokes_before_the_prompt_are_discarded() {
    let fixture = Fixture::new();
    fixture.script_two_notes();
    fixture.append_settings("[approvals]\nallow = [\"brief_note\"]\n");
    let screen = run_at_terminal(
        &fixture,
        &["ask", "two notes"],
        &json!([["brief_note", "y\na\ny\n"], ["etails", "n\n"]]),
    );
    assert!(screen.contains("- second write_note skill:notebook denied by"), "{screen}");
    assert_eq!(fixture.notes(), [r#"{"text":"one"}"#]);
}

#[test]
fn the_end_of_long_arguments_is_shown_at_the_prompt() {
    let fixture = Fixture::new();
    let long = format!("harmless {} THE-END", "x".repeat(5_000));
    fixture.model.script_plan(
        "much",
        &json!([{"id": "write", "tool_type": "write_note", "arguments": {"text": long}}]),
    );
    fixture.model.script_answer("much", "Done.");
    let screen =
        run_at_terminal(&fixture, &["ask", "much"], &json!([["THE-END", "d\n"], ["THE-END", "n\n"]]));
    assert!(screen.contains("- write write_note skill:notebook denied by"), "{screen}");
    assert!(fixture.notes().is_empty());
}

#[test]
fn a_server_elicits_input_at_the_terminal() {
    let fixture = Fixture::new();
    fixture.script_signature();
    let answers = json!([["answer?", "y\n"], ["Your name", "\n"], ["Your name", "Ada\n"], ["sure", "y\n"]]);
    let screen = run_at_terminal(&fixture, &["ask", "sign it"], &answers);
    assert!(screen.contains("The signer says: signed."), "{screen}");
    assert_eq!(
        fixture.elicitation_responses(),
        "{\"action\": \"accept\", \"content\": {\"name\": \"Ada\", \"sure\": true}}\n"
    );
    let screen = run_at_terminal(&fixture, &["ask", "sign it"], &json!([["answer?", "n\n"]]));
    assert!(fixture.elicitation_responses().ends_with("{\"action\": \"decline\"}\n"), "{screen}");
}

#[test]
fn with_yes_servers_cannot_elicit_input() {
    let fixture = Fixture::new();
    fixture.script_signature();
    let screen = run_at_terminal(&fixture, &["ask", "--yes", "sign it"], &json!([]));
    let refused = || fixture.elicitation_responses().matches("does not support elicitation").count();
    assert!(!screen.contains("answer?") && refused() == 1, "{screen}\n{}", fixture.elicitation_responses());
    let answers = json!([["> ", "sign it\n"], ["The signer says: signed.", ""], ["> ", "\u{4}"]]);
    let screen = run_at_terminal(&fixture, &["chat", "--yes"], &answers);
    assert!(!screen.contains("answer?") && refused() == 2, "{screen}\n{}", fixture.elicitation_responses());
}

#[test]
fn a_long_prompt_is_shortened_to_one_line() {
    let fixture = Fixture::new();
    fixture.script_signature_with_title(40);
    let answers = json!([["answer?", "y\n"], ["Your name", "Ada\n"], ["sure", "y\n"]]);
    let written = terminal_output(&fixture, &["ask", "sign it"], &answers);
    assert!(fixture.elicitation_responses().contains("Ada"), "{written}");
    let line = written.split(['\n', '\u{1b}']).find(|line| line.contains("Your name")).unwrap();
    assert!(line.chars().count() < 100 && line.contains('…') && line.contains("more: Ada"), "{line}");
}
