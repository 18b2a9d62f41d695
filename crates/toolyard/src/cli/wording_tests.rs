//! Wordings that a person at the terminal could not make sense of do not come back.

use std::path::Path;

use clap::CommandFactory as _;

use super::{Cli, command_reference_tests::files};

/// Wordings that were replaced, and do not occur in any source.
const REPLACED: [&str; 16] = [
    concat!("to be gone ", "on with"),
    concat!("allowed: write, ", "which"),
    concat!("waits for ", "a person"),
    concat!("left out, because ", "it could not be used"),
    concat!("stays there, ", "because"),
    concat!("seen for the first ", "time and in service"),
    concat!("could not be used ", "42"),
    concat!("nobody ", "spoke of it"),
    concat!("whoever works ", "on it"),
    concat!("go on ", "with them"),
    concat!("in place of ", "the servers it has"),
    concat!("Let everybody ", "in"),
    concat!("Let it think ", "with"),
    concat!("looked for ", "again soon"),
    concat!("how they ", "are\n"),
    concat!("say whose ", "file it is"),
];

fn help(command: &mut clap::Command, text: &mut String) {
    text.push_str(&command.render_long_help().to_string());
    command.get_subcommands_mut().for_each(|subcommand| help(subcommand, text));
}

#[test]
fn help_texts_say_what_commands_and_flags_do() {
    let mut text = String::new();
    help(&mut Cli::command(), &mut text);
    for expected in [
        "List, show, resume, approve and cancel agent runs",
        "Point Claude, Cursor, VS Code, Codex or Gemini at Toolyard",
        "Disable authentication (loopback addresses only)",
        "Use this model",
        "Output file",
        "Input file",
        "List servers and their status, without starting any",
        "Searching uses no language model and starts no server",
        "0 all servers answered · 1 some failed · 3 all failed",
    ] {
        assert!(text.contains(expected), "{expected}");
    }
}

#[test]
fn replaced_wordings_do_not_come_back() {
    let mut sources = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), "rs", &mut sources);
    for source in sources {
        let text = std::fs::read_to_string(&source).unwrap();
        for wording in REPLACED {
            assert!(!text.contains(wording), "{}: {wording}", source.display());
        }
    }
}
