//! Agents as people and programs meet them: asked, talked with, approved, gone on with, over HTTP and over MCP.

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
mod model;
#[path = "../servers/place.rs"]
#[expect(dead_code, reason = "only a part of it is needed here")]
mod place;

mod asking;
mod chatting;
mod completions;
mod delegating;
mod going_on;
mod killed;
mod models;
mod running;
mod stopping;
mod terminal;

use std::os::unix::fs::PermissionsExt as _;

use model::ModelServer;
use place::Place;
use serde_json::json;

/// A yard with a model that says what it was told to, and a notebook that can be written into.
pub(crate) struct Yard {
    pub(crate) place: Place,
    pub(crate) model: ModelServer,
}

/// A program of a skill: describes itself, and notes what it is given.
fn program(name: &str, work: &str) -> String {
    let describes = json!({
        "name": name,
        "description": "Write a note into the notebook",
        "inputSchema": {"type": "object", "properties": {"text": {}}, "required": ["text"]},
    });
    format!("#!/bin/sh\nif [ \"$1\" = --describe ]; then echo '{describes}'; exit 0; fi\n{work}\n")
}

impl Yard {
    pub(crate) fn new() -> Self {
        let (place, model) = (Place::new(), ModelServer::start());
        let settings = format!(
            "[models.local]\nurl = \"{}\"\nmodel = \"scripted\"\ntool_calling = \"schema\"\nattempts = 1\n",
            model.address()
        );
        place.write("config/toolyard/toolyard.toml", &settings);
        let skill = "config/toolyard/skills/notebook";
        place.write(&format!("{skill}/SKILL.md"), "---\nname: notebook\ndescription: Notes\n---\nNotes.\n");
        let write = "cat >> \"$HOME/notes.txt\"; echo >> \"$HOME/notes.txt\"; echo '{\"written\":true}'";
        let slow = "touch \"$HOME/begun\"; sleep 20; echo '{}'";
        let yard = Self { place, model };
        yard.has_program("write_note", write);
        yard.has_program("slow_note", slow);
        yard
    }

    /// A program more in the notebook.
    pub(crate) fn has_program(&self, name: &str, work: &str) {
        let path = format!("config/toolyard/skills/notebook/{name}");
        self.place.write(&path, &program(name, work));
        std::fs::set_permissions(self.place.path(&path), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A call that takes two seconds and may be made, and one behind it that must be asked about.
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

    /// More settings.
    pub(crate) fn set(&self, more: &str) {
        let file = self.place.path("config/toolyard/toolyard.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, format!("{text}\n{more}")).unwrap();
    }

    /// A plan that computes and notes what came of it.
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

    /// A server whose tool asks who signs, and a plan that uses it.
    pub(crate) fn plans_to_sign(&self) {
        self.plans_to_sign_with_title(0);
    }

    /// The same; what it asks for has a title with so many words more.
    pub(crate) fn plans_to_sign_with_title(&self, more: usize) {
        self.place.write("signer.py", include_str!("asking_server.py"));
        let path = |name: &str| self.place.path(name).to_str().unwrap().to_owned();
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

    /// What the server was told.
    pub(crate) fn signed(&self) -> String {
        std::fs::read_to_string(self.place.path("signed.txt")).unwrap_or_default()
    }

    /// What a person sees, without what differs from run to run.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        tidy(&self.place.run(words))
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.place.path("notes.txt")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The last run.
    pub(crate) fn last_run(&self) -> String {
        let output = self.place.command(&["runs", "list", "--json"]).output().unwrap();
        let runs: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        runs[0]["id"].as_str().unwrap().to_owned()
    }
}

/// Names of runs and gaps differ.
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
