//! What a tool sends does not control the terminal.

use std::process::Command;

use serde_json::{Value, json};

use crate::test_home::TestHome;

/// A terminal escape, its 8-bit form, a title, an override, tags, a zero-width space and a selector after an ideograph.
const HIDDEN: &str = "\u{1b}[2J\u{9b}2J\u{1b}]0;t\u{7}\u{202e}\u{e0041}\u{200b}中\u{e0100}\u{61c}\r!";

/// The output of a command at a pseudo-terminal, without its exit code and carriage returns before line feeds.
fn output_at_terminal(home: &TestHome, args: &[&str]) -> String {
    let program = home.command(args);
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/terminal.py");
    let mut command = Command::new("python3");
    command.args([driver, "[]"]).arg(program.get_program()).args(program.get_args());
    command.current_dir(program.get_current_dir().unwrap()).env_clear().env("TERM", "xterm");
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap());
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n");
    assert!(text.ends_with("\nexit 0\n"), "{text:?}");
    text.trim_end_matches("\nexit 0\n").to_owned()
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
    for flags in [&[][..], &["--json"], &["--raw"], &["--full"]] {
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
