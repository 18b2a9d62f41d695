//! Agents: ask, chat, approve, resume; at the command line, over HTTP and over MCP.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::needless_pass_by_value,
    reason = "a test helper fails its test"
)]

#[path = "../serve/client.rs"]
#[expect(dead_code, reason = "only a part of it is needed here")]
mod client;
mod model_server;
#[path = "../servers/test_home.rs"]
#[expect(dead_code, reason = "only a part of it is needed here")]
mod test_home;

mod ask;
mod ask_agent_tool;
mod chat;
mod completions;
mod killed_runs;
mod models;
mod resume;
mod runs_api;
mod shutdown;
mod terminal;

use std::os::unix::fs::PermissionsExt as _;

use model_server::ModelServer;
use serde_json::json;
use test_home::TestHome;

/// A home with a scripted model and a skill that writes notes.
pub(crate) struct Fixture {
    pub(crate) home: TestHome,
    pub(crate) model: ModelServer,
}

/// A skill program that describes itself and does `work`.
fn program(name: &str, work: &str) -> String {
    let describes = json!({
        "name": name,
        "description": "Write a note into the notebook",
        "inputSchema": {"type": "object", "properties": {"text": {}}, "required": ["text"]},
    });
    format!("#!/bin/sh\nif [ \"$1\" = --describe ]; then echo '{describes}'; exit 0; fi\n{work}\n")
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let (home, model) = (TestHome::new(), ModelServer::start());
        let settings = format!(
            "[models.local]\nurl = \"{}\"\nmodel = \"scripted\"\ntool_calling = \"schema\"\nattempts = 1\n",
            model.address()
        );
        home.write("config/toolyard/toolyard.toml", &settings);
        let skill = "config/toolyard/skills/notebook";
        home.write(&format!("{skill}/SKILL.md"), "---\nname: notebook\ndescription: Notes\n---\nNotes.\n");
        let write = "cat >> \"$HOME/notes.txt\"; echo >> \"$HOME/notes.txt\"; echo '{\"written\":true}'";
        let slow = "touch \"$HOME/begun\"; sleep 20; echo '{}'";
        let fixture = Self { home, model };
        fixture.has_program("write_note", write);
        fixture.has_program("slow_note", slow);
        fixture
    }

    /// Adds a program to the skill.
    pub(crate) fn has_program(&self, name: &str, work: &str) {
        let path = format!("config/toolyard/skills/notebook/{name}");
        self.home.write(&path, &program(name, work));
        std::fs::set_permissions(self.home.path(&path), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A plan with a two-second call, and a dependent call that needs approval.
    pub(crate) fn plans_two_notes(&self) {
        let append = r#"cat >> "$HOME/notes.txt"; echo >> "$HOME/notes.txt""#;
        let work = format!(r#"touch "$HOME/begun"; sleep 2; {append}; echo '{{"written":true}}'"#);
        self.has_program("brief_note", &work);
        self.model.plans(
            "two notes",
            &json!([
                {"id": "first", "tool_type": "brief_note", "arguments": {"text": "one"}},
                {"id": "second", "tool_type": "write_note", "arguments": {"text": "two"}, "dependencies": ["first"]},
            ]),
        );
        self.model.answers("two notes", "Both are written.");
    }

    /// Appends settings.
    pub(crate) fn set(&self, more: &str) {
        let file = self.home.path("config/toolyard/toolyard.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, format!("{text}\n{more}")).unwrap();
    }

    /// A plan that computes a value and writes it down.
    pub(crate) fn plans_to_note(&self) {
        self.model.plans(
            "note it",
            &json!([
                {"id": "power", "tool_type": "calculate", "arguments": {"expression": "2^10"}, "description": "two to the tenth"},
                {"id": "write", "tool_type": "write_note", "arguments": {"text": "$power"}, "description": "note it down"},
            ]),
        );
        self.model.answers("note it", "I wrote it down.");
    }

    /// A server whose tool elicits input, and a plan that uses it.
    pub(crate) fn plans_to_sign(&self) {
        self.plans_to_sign_with_title(0);
    }

    /// Like [`Self::plans_to_sign`], with this many additional words in the title of the form.
    pub(crate) fn plans_to_sign_with_title(&self, more: usize) {
        self.home.write("signer.py", include_str!("eliciting_server.py"));
        let path = |name: &str| self.home.path(name).to_str().unwrap().to_owned();
        self.set(&format!(
            "[servers.signer]\ncommand = \"python3\"\nargs = [{:?}, {:?}, \"{more}\"]\ntrusted = true\n",
            path("signer.py"),
            path("signed.txt")
        ));
        self.model.plans(
            "sign it",
            &json!([{"id": "sign", "tool_type": "sign_paper", "arguments": {"paper": "lease"}}]),
        );
        self.model.answers("sign it", "It is signed.");
    }

    /// The responses that the server received.
    pub(crate) fn signed(&self) -> String {
        std::fs::read_to_string(self.home.path("signed.txt")).unwrap_or_default()
    }

    /// The output of a command, with run ids and spacing normalized.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        tidy(&self.home.run(words))
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.home.path("notes.txt")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The id of the last run.
    pub(crate) fn last_run(&self) -> String {
        let output = self.home.command(&["runs", "list", "--json"]).output().unwrap();
        let runs: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        runs[0]["id"].as_str().unwrap().to_owned()
    }
}

/// Normalizes run ids and spacing.
pub(crate) fn tidy(text: &str) -> String {
    let is_run = |word: &str| {
        word.len() == 26 && word.starts_with("01") && word.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let line = |line: &str| {
        let indent: String = line.chars().take_while(|letter| *letter == ' ').collect();
        let words = line.split_whitespace().map(|word| if is_run(word) { "RUN" } else { word });
        format!("{indent}{}", words.collect::<Vec<_>>().join(" "))
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
