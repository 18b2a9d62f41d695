//! Agents: ask, chat, approve, resume; at the command line, over HTTP and over MCP.

mod adopted_runs;
mod api_v1;
mod approval_arguments;
mod ask;
mod ask_agent_tool;
mod changed_agents;
mod chat;
mod completions;
mod conversations;
mod killed_runs;
mod learning;
mod models;
mod name_patterns;
mod open_world;
mod policy;
mod quotas;
mod resume;
mod runs_api;
mod shutdown;
mod synthesis;
mod terminal;

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::{model_server::ModelServer, test_home::TestHome};

/// A home with a scripted model and a skill that writes notes.
pub(crate) struct Fixture {
    pub(crate) home: TestHome,
    pub(crate) model: ModelServer,
}

/// A skill program that describes itself, or runs the shell commands `body`.
fn program(name: &str, body: &str) -> String {
    let definition = json!({
        "name": name,
        "description": "Write a note into the notebook",
        "inputSchema": {"type": "object", "properties": {"text": {}}, "required": ["text"]},
    });
    format!("#!/bin/sh\nif [ \"$1\" = --describe ]; then echo '{definition}'; exit 0; fi\n{body}\n")
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let (home, model) = (TestHome::new(), ModelServer::start());
        let settings = format!(
            "[models.local]\nurl = \"{}\"\nmodel = \"scripted\"\ntool_calling = \"schema\"\n",
            model.address()
        );
        home.write("config/toolyard/toolyard.toml", &settings);
        let skill = "config/toolyard/skills/notebook";
        home.write(&format!("{skill}/SKILL.md"), "---\nname: notebook\ndescription: Notes\n---\nNotes.\n");
        let write = "cat >> \"$HOME/notes.txt\"; echo >> \"$HOME/notes.txt\"; echo '{\"written\":true}'";
        let slow = "touch \"$HOME/call_started\"; sleep 20; echo '{}'";
        let fixture = Self { home, model };
        fixture.add_program("write_note", write);
        fixture.add_program("slow_note", slow);
        fixture
    }

    /// Adds a program to the skill.
    pub(crate) fn add_program(&self, name: &str, body: &str) {
        let path = format!("config/toolyard/skills/notebook/{name}");
        self.home.write(&path, &program(name, body));
        std::fs::set_permissions(self.home.path(&path), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Scripts a plan with a two-second call, and a dependent call that needs approval.
    pub(crate) fn script_two_notes(&self) {
        let append = r#"cat >> "$HOME/notes.txt"; echo >> "$HOME/notes.txt""#;
        let body = format!(r#"touch "$HOME/call_started"; sleep 2; {append}; echo '{{"written":true}}'"#);
        self.add_program("brief_note", &body);
        self.model.script_plan(
            "two notes",
            &json!([
                {"id": "first", "tool_type": "brief_note", "arguments": {"text": "one"}},
                {"id": "second", "tool_type": "write_note", "arguments": {"text": "two"}, "dependencies": ["first"]},
            ]),
        );
        self.model.script_answer("two notes", "Both are written.");
    }

    /// Appends to `toolyard.toml`.
    pub(crate) fn append_settings(&self, toml: &str) {
        let file = self.home.path("config/toolyard/toolyard.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, format!("{text}\n{toml}")).unwrap();
    }

    /// Scripts a plan that computes a value and writes it down, which needs approval.
    pub(crate) fn script_note(&self) {
        self.model.script_plan(
            "note it",
            &json!([
                {"id": "power", "tool_type": "calculate", "arguments": {"expression": "2^10"}, "description": "two to the tenth"},
                {"id": "write", "tool_type": "write_note", "arguments": {"text": "$power"}, "description": "note it down"},
            ]),
        );
        self.model.script_answer("note it", "I wrote it down.");
    }

    /// Adds a server whose tool elicits input, and scripts a plan that calls it.
    pub(crate) fn script_signature(&self) {
        self.script_signature_with_title(0);
    }

    /// Like [`Self::script_signature`], with this many additional words in the title of the form.
    pub(crate) fn script_signature_with_title(&self, extra_words: usize) {
        self.home.write("signer.py", include_str!("eliciting_server.py"));
        let path = |name: &str| self.home.path(name).to_str().unwrap().to_owned();
        self.append_settings(&format!(
            "[servers.signer]\ncommand = \"python3\"\nargs = [{:?}, {:?}, \"{extra_words}\"]\ntrusted = true\n",
            path("signer.py"),
            path("signed.txt")
        ));
        self.model.script_plan(
            "sign it",
            &json!([{"id": "sign", "tool_type": "sign_paper", "arguments": {"paper": "lease"}}]),
        );
        self.model.script_answer("sign it", "The signer says: signed.");
    }

    /// The responses to its elicitations that the server received, one per line.
    pub(crate) fn elicitation_responses(&self) -> String {
        std::fs::read_to_string(self.home.path("signed.txt")).unwrap_or_default()
    }

    /// The output of a command, with run ids and spacing normalized.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        normalize(&self.home.run(args))
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

/// Replaces ids of runs and traces, and sequences of spaces, which differ from run to run.
pub(crate) fn normalize(text: &str) -> String {
    let normalize_line = |line: &str| {
        let indent: String = line.chars().take_while(|letter| *letter == ' ').collect();
        let words: Vec<&str> = line.split_whitespace().map(without_id).collect();
        format!("{indent}{}", words.join(" "))
    };
    text.lines().map(normalize_line).collect::<Vec<_>>().join("\n")
}

/// A word, or what it is if it is an id.
fn without_id(word: &str) -> &str {
    let is_run_id =
        word.len() == 26 && word.starts_with("01") && word.bytes().all(|b| b.is_ascii_alphanumeric());
    let is_trace_id = word.len() == 32 && word.bytes().all(|b| b.is_ascii_hexdigit());
    match (is_run_id, is_trace_id) {
        (true, _) => "RUN",
        (_, true) => "TRACE",
        _ => word,
    }
}
