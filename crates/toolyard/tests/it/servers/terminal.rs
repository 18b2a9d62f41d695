//! What a tool sends does not control the terminal.

use std::process::Command;

use serde_json::{Value, json};

use crate::test_home::{TestHome, greet_tool, named_tool};

/// A terminal escape, its 8-bit form, a title, an override, tags, a zero-width space and a selector after an ideograph.
const HIDDEN: &str = "\u{1b}[2J\u{9b}2J\u{1b}]0;t\u{7}\u{202e}\u{e0041}\u{200b}中\u{e0100}\u{61c}\r!";

/// The output of a command at a pseudo-terminal, without its exit code and carriage returns before line feeds.
fn output_at_terminal(home: &TestHome, args: &[&str]) -> String {
    let text = written_at_terminal(home, args);
    assert!(text.ends_with("\nexit 0\n"), "{text:?}");
    text.trim_end_matches("\nexit 0\n").to_owned()
}

/// Everything that a command writes at a pseudo-terminal of 40 lines and 100 columns, and its exit code.
fn written_at_terminal(home: &TestHome, args: &[&str]) -> String {
    typed_at_terminal(home, args, &json!([]))
}

/// The same with answers that are typed: a list of `[expected, answer]`.
pub(crate) fn typed_at_terminal(home: &TestHome, args: &[&str], answers: &Value) -> String {
    let program = home.command(args);
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/agents/terminal.py");
    let mut command = Command::new("python3");
    command.arg(driver).arg(answers.to_string()).arg(program.get_program()).args(program.get_args());
    command.current_dir(program.get_current_dir().unwrap()).env_clear().env("TERM", "xterm");
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap());
    }
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n")
}

/// The lines that stay on the screen: those that were drawn over are gone.
fn screen(written: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut rest = without_styles(written);
    while let Some(character) = rest.chars().next() {
        if let Some((sequence, after)) =
            rest.strip_prefix("\u{1b}[").and_then(|rest| rest.split_once("\r\u{1b}[J"))
        {
            let up: usize = sequence.trim_end_matches('A').parse().unwrap();
            lines.truncate(lines.len() - up);
            *lines.last_mut().unwrap() = String::new();
            rest = after.to_owned();
            continue;
        }
        match character {
            '\n' => lines.push(String::new()),
            other => lines.last_mut().unwrap().push(other),
        }
        rest = rest.chars().skip(1).collect();
    }
    lines
}

/// Colours of Toolyard itself are fine.
fn without_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('m') {
            Some((style, rest)) if style.bytes().all(|byte| byte.is_ascii_digit() || byte == b';') => {
                plain.push_str(rest);
            }
            _ => plain.extend(["\u{1b}[", part]),
        }
    }
    plain
}

#[test]
fn no_form_of_a_result_controls_the_terminal() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    let arguments = json!({ "name": HIDDEN }).to_string();
    for flags in [&[][..], &["--json"], &["--raw"]] {
        let output = output_at_terminal(&home, &[&["call", "greet", "--args", &arguments], flags].concat());
        assert!(output.contains("Hello, "), "{flags:?}: {output:?}");
        let is_unsafe = |character: char| {
            character.is_control() && character != '\n'
                || matches!(character, '\u{202e}' | '\u{200b}' | '\u{61c}' | '\u{e0000}'..='\u{e0fff}')
        };
        assert!(!without_styles(&output).chars().any(is_unsafe), "{flags:?}: {output:?}");
        if flags == ["--json"] {
            let value: Value = serde_json::from_str(&output).unwrap();
            assert!(
                value.to_string().contains(&json!(format!("Hello, {HIDDEN}!")).to_string()),
                "the same value: {value}"
            );
        }
    }
    // Into a file or pipe, it stays as it is.
    let output = home.command(&["call", "greet", "--args", &arguments, "--json"]).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains('\u{202e}'));
}

#[test]
fn tables_fit_the_terminal_and_are_whole_in_a_pipe() {
    let home = TestHome::new();
    let description = "Greets somebody ".repeat(20);
    home.add_server("fake", &[]);
    home.set_tools("fake", &[greet_tool(description.trim())]);
    let long_path = "x".repeat(200);
    home.run(&["servers", "add", "long", "--", "no-such-program", &long_path]);
    home.run(&["servers", "test"]);
    for args in [&["servers", "list"][..], &["tools", "list"]] {
        let written = written_at_terminal(&home, args);
        for line in without_styles(&written).lines().filter(|line| !line.starts_with("note:")) {
            assert!(line.chars().count() <= 100, "{line:?}");
        }
        assert!(written.contains('…'), "{written}");
        let longest = home.run(args).lines().map(str::len).max();
        assert!(longest > Some(300), "{}", home.run(args));
    }
    assert!(home.run(&["tools", "list"]).contains(description.trim()));
}

#[test]
fn progress_is_never_mixed_with_output() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    home.run(&["servers", "add", "slowpoke", "--", "sh", "-c", "sleep 2.5; echo done for >&2; exit 1"]);
    let written = written_at_terminal(&home, &["servers", "test"]);
    assert!(written.contains("waiting for slowpoke … 1 s"), "only servers that did not answer: {written:?}");
    let screen = screen(&written);
    for line in &screen {
        assert!(!line.contains("waiting for"), "{screen:#?}");
    }
    let starts = |word: &str| screen.iter().filter(|line| line.starts_with(word)).count();
    assert_eq!((starts("fake   ready in"), starts("slowpoke   failed after")), (1, 1), "{screen:#?}");
}

#[test]
fn a_result_longer_than_the_screen_says_how_much_more_there_is() {
    let home = TestHome::new();
    home.set_tools("fake", &[named_tool("write_much"), named_tool("picture")]);
    let [program, script, file] = home.server_command("fake");
    home.run(&["servers", "add", "fake", "--", &program, &script, &file]);
    let args = ["call", "write_much", r#"{"words":2000}"#];
    let written = written_at_terminal(&home, &args);
    assert!(written.contains("note: 62 more lines above, 10,000 characters in all"), "{written}");
    let piped = home.run(&args);
    assert!(piped.starts_with(&"word ".repeat(2000)) && !piped.contains("more lines"), "{piped}");
    assert!(!written_at_terminal(&home, &["call", "write_much", r#"{"words":20}"#]).contains("more line"));
    let limited = home.run(&["call", "write_much", r#"{"words":2000}"#, "--limit", "100"]);
    assert!(limited.len() < 400, "{limited}");
    let picture = home.run(&["call", "picture"]);
    assert!(picture.contains("note: 1 image or file not shown; save it with --output FILE"), "{picture}");
    home.run(&["call", "picture", "--output", "chart.png"]);
    assert_eq!(std::fs::read(home.path("project/chart.png")).unwrap(), b"\x89PNG\r\n\x1a\n");
}
