//! Every command line that a hint, a help text or the guide mentions exists, with its flags; so do the documented kinds of failed calls.

use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use toolyard_core::{ErrorKind, ToolError};

use super::Cli;
use crate::error::CliError;

/// Texts that begin like a command line and are none.
const OTHER_TEXTS: [&str; 4] = ["mcp session", "mcp state", "tool definition", "guard"];

pub(super) fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

/// The command lines that a text mentions: after a quote, backtick, colon, prompt or example indentation.
fn command_lines(text: &str) -> Vec<&str> {
    let starts = text.match_indices("toolyard ").filter(|(at, _)| {
        let before = text.get(..*at).unwrap();
        let is_separated = before.ends_with([' ', '`', '"', '\n', '(']);
        is_separated && before.trim_end_matches(' ').ends_with(['`', '"', ':', '·', '$', '\n', '(', '|', ';'])
    });
    let rest = starts.filter_map(|(at, start)| text.get(at + start.len()..));
    let end = |rest: &str| {
        rest.find(['`', '"', '\\', '·', ';', ')', ',', '\n', '\'', '>', '<']).unwrap_or(rest.len())
    };
    rest.map(|rest| rest.get(..end(rest)).unwrap())
        .filter(|line| !OTHER_TEXTS.iter().any(|other| line.starts_with(other)))
        .collect()
}

/// What is wrong with a command line, as far as its subcommands and long flags are spelled out.
fn problem(line: &str) -> Option<String> {
    let root = Cli::command();
    let mut command = &root;
    let mut is_path = true;
    for word in line.split_whitespace() {
        if word == "--" {
            break;
        }
        if let Some(flag) = word.strip_prefix("--").filter(|flag| !flag.is_empty()) {
            let flag: String =
                flag.chars().take_while(|letter| letter.is_ascii_lowercase() || *letter == '-').collect();
            let has_flag = |command: &clap::Command| {
                command.get_arguments().any(|argument| argument.get_long() == Some(&flag))
            };
            let is_built_in = ["help", "version"].contains(&flag.as_str());
            if !is_built_in && !has_flag(command) && !has_flag(&root) {
                return Some(format!("no flag --{flag} in `toolyard {line}`"));
            }
            continue;
        }
        let alternatives: Vec<&str> = word.split('|').collect();
        let is_word = |word: &&str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        };
        if !is_path || !command.has_subcommands() || !alternatives.iter().all(is_word) {
            is_path &= command.has_subcommands() && word.starts_with('-');
            continue;
        }
        let found: Vec<_> = alternatives.iter().map(|name| command.find_subcommand(name)).collect();
        match found.as_slice() {
            [Some(only)] => command = only,
            all if all.iter().all(Option::is_some) => is_path = false,
            _ => return Some(format!("no command `{word}` in `toolyard {line}`")),
        }
    }
    None
}

#[test]
fn every_mentioned_command_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = Vec::new();
    files(&root.join("crates"), "rs", &mut sources);
    files(&root.join("docs/guide"), "md", &mut sources);
    files(&root.join("docs/reference"), "md", &mut sources);
    sources.extend([root.join("README.md"), root.join("README.zh.md"), root.join("SECURITY.md")]);
    let mut mentioned = 0;
    let mut problems = Vec::new();
    for source in sources {
        let text = std::fs::read_to_string(&source).unwrap();
        for line in command_lines(&text) {
            mentioned += 1;
            problems.extend(problem(line).map(|problem| format!("{}: {problem}", source.display())));
        }
    }
    assert!(mentioned > 200, "{mentioned} command lines were found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn wrong_commands_and_flags_are_noticed() {
    for wrong in ["servers frobnicate", "servers show x --frobnicate", "frobnicate", "runs approve|frob RUN"]
    {
        assert!(problem(wrong).is_some(), "{wrong}");
    }
    for right in
        ["servers show NAME", "runs approve|deny RUN", "call x --args y --json", "serve --http", "ask"]
    {
        assert_eq!(problem(right), None, "{right}");
    }
}

#[test]
fn the_page_of_error_codes_has_every_kind_with_its_exit_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/errors.md");
    let page = std::fs::read_to_string(path).unwrap();
    let table = page.split("\n## ").find(|part| part.starts_with("Failed tool calls")).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').map(|cell| cell.trim_matches([' ', '`'])).collect())
        .collect();
    let documented: Vec<&str> = rows.iter().map(|row| row[1]).collect();
    // The message of serde names all kinds: "unknown variant ``, expected one of `unknown_tool`, …".
    let message = serde_json::from_str::<ErrorKind>("\"\"").unwrap_err().to_string();
    let kinds: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
    assert_eq!(documented, kinds);
    for row in rows {
        let kind: ErrorKind = serde_json::from_value(row[1].into()).unwrap();
        let status = CliError::from(ToolError::new(kind, "message")).status();
        assert_eq!(row[4], (status as u8).to_string(), "{kind:?}");
    }
}
