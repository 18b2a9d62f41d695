//! A scripted person with 19 servers in six editors (26 entries): import, test, connect, work in each editor, undo.
//!
//! The person has no variables in the shell, and the editors are started from the desktop. Each editor's tools are listed and
//! called by an independent MCP client (rmcp) that starts exactly the command, or connects to exactly the URL, that is written
//! in the editor's file.

mod editors;
mod gateway;
mod stored_secrets;

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};

use self::{
    editors::{EDITORS, Editor},
    gateway::{Client, HttpGateway},
};

const TOOL_LISTS: &str = include_str!("tool_lists.json");
/// The secret in Claude Code's file, and the one in the environment file of VS Code's server.
const SECRETS: [&str; 2] =
    ["ghp_canary0123456789abcdefghijklmnopqrst", "nts_canary9876543210zyxwvutsrqponmlkjih"];

struct Person {
    home: tempfile::TempDir,
}

impl Person {
    fn new() -> Self {
        let person = Self { home: tempfile::tempdir().unwrap() };
        person.write("replay/replay_server.py", include_str!("replay_server.py"));
        person.write("replay/tool_lists.json", TOOL_LISTS);
        person.write("replay/calls", "");
        person.write("data/plan.txt", "the plan in data");
        person.write("docs/plan.txt", "the plan in docs");
        person.write("notes/.env", &format!("# keys\nexport NOTES_TOKEN=\"{}\"\n", SECRETS[1]));
        for editor in &EDITORS {
            person.write(editor.file, &person.text_of(editor));
        }
        person
    }

    fn path(&self, path: &str) -> PathBuf {
        self.home.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        std::fs::write(self.path(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    /// The text of an editor's file before anything was changed.
    fn text_of(&self, editor: &Editor) -> String {
        editor.text.replace('@', self.path("").to_str().unwrap().trim_end_matches('/'))
    }

    /// The environment of a program that the desktop starts.
    fn environment(&self) -> [(&'static str, PathBuf); 3] {
        [("HOME", self.path("")), ("PATH", "/usr/local/bin:/usr/bin:/bin".into()), ("DISPLAY", ":0".into())]
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolyard"));
        command
            .args(args)
            .env_clear()
            .envs(self.environment())
            .current_dir(self.path("notes"))
            .stdin(Stdio::null());
        command
    }

    /// Runs a command; what it prints must not contain a secret.
    fn run(&self, args: &[&str]) -> (String, Output) {
        let output = self.command(args).output().unwrap();
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        for secret in SECRETS {
            assert!(!text.contains(secret), "{args:?} prints a secret: {text}");
        }
        (text, output)
    }

    fn run_successfully(&self, args: &[&str]) -> String {
        let (text, output) = self.run(args);
        assert!(output.status.success(), "{args:?}: {text}");
        text
    }

    /// The entry that `connect` wrote into an editor's file.
    fn entry_of(&self, editor: &Editor) -> Value {
        let text = self.read(editor.file);
        let document: Value = match editor.name {
            "codex" => toml::from_str(&text).unwrap(),
            // Cursor's file has comments, VS Code's CR LF.
            _ => jsonc(&text),
        };
        let table = match editor.name {
            "codex" => "mcp_servers",
            "vscode" => "servers",
            _ => "mcpServers",
        };
        document[table]["toolyard"].clone()
    }

    /// Starts what an editor's file says, as the editor does.
    async fn open(&self, editor: &Editor, token: Option<&str>) -> Client {
        let entry = self.entry_of(editor);
        if let Some(url) = entry["url"].as_str() {
            let header = entry["headers"]["Authorization"].as_str().unwrap();
            assert_eq!(header, "Bearer ${input:toolyard-token}", "VS Code asks for the token");
            return gateway::connect(url, token.unwrap()).await;
        }
        let mut command = tokio::process::Command::new(entry["command"].as_str().unwrap());
        let args = entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
        command.args(args).env_clear().envs(self.environment()).current_dir("/");
        gateway::start(command).await
    }

    fn calls(&self) -> Vec<String> {
        self.read("replay/calls").lines().map(str::to_owned).collect()
    }

    /// Asserts that no file of Toolyard contains a secret.
    fn assert_no_plain_secrets(&self, secrets: &[&str]) {
        let mut folders = vec![self.path(".config/toolyard"), self.path(".local/share/toolyard")];
        let mut files = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                    continue;
                }
                let bytes = std::fs::read(entry.path()).unwrap();
                let has_secret =
                    |secret: &str| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
                assert!(!secrets.iter().any(|secret| has_secret(secret)), "{entry:?} contains a secret");
                files += 1;
            }
        }
        assert!(files > 3, "settings, secrets, key and store were searched");
    }
}

/// JSON with comments and trailing commas.
fn jsonc(text: &str) -> Value {
    let without_comment = |line: &str| line.split(" //").next()?.split("/*").next().map(str::to_owned);
    let lines: Vec<String> = text.lines().filter_map(without_comment).collect();
    let compact: String = lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    serde_json::from_str(&compact.replace(", }", " }")).unwrap()
}

async fn call(client: &Client, tool: &str, arguments: Value) -> Result<String, String> {
    let mut request = CallToolRequestParams::new(tool.to_owned());
    request.arguments = arguments.as_object().cloned();
    let result = client.call_tool(request).await.map_err(|error| error.to_string())?;
    let result = serde_json::to_value(result).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    if result["isError"] == true { Err(text) } else { Ok(text) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_with_nineteen_servers_in_six_editors() {
    let person = Person::new();
    let tool_lists: Value = serde_json::from_str(TOOL_LISTS).unwrap();

    // Import: 26 entries, 19 servers. Merges, other names and restrictions are reported.
    let imported = person.run_successfully(&["import", "--yes"]);
    assert!(
        imported.contains("merged 7 duplicate servers") && imported.contains("Wrote 19 servers"),
        "{imported}"
    );
    for line in [
        "(Claude Code; Claude Desktop; Codex as `old_files`)",
        "(Claude Code; Cursor; Codex as `Sheets`)",
        "Codex may use only read_text_file, list_directory",
        "Gemini CLI may not use delete_entities",
        "Cursor may not use send_mail",
        "disabled in Cursor",
        "the secret in env.GITHUB_TOKEN is kept as `${secret:GITHUB_TOKEN}`",
        "the secret in env.NOTES_TOKEN is kept as `${secret:NOTES_TOKEN}`",
    ] {
        assert!(imported.contains(line), "{line} is missing: {imported}");
    }

    // Test: all but the hanging one and the missing one start.
    let (tested, output) = person.run(&["servers", "test"]);
    assert_eq!(output.status.code(), Some(1), "some failed, not all: {tested}");
    assert!(tested.contains("2 of 19 servers failed: ghost, slowpoke"), "{tested}");
    assert_eq!(tested.matches("ready in").count(), 17, "{tested}");

    // Connect: VS Code to a running hub, the others start one.
    let hub = HttpGateway::start(person.command(&["serve", "--http", "127.0.0.1:0"]));
    let settings = person.read(".config/toolyard/toolyard.toml");
    for editor in &EDITORS {
        let mut args = vec!["connect", editor.name, "--yes"];
        if editor.name == "vscode" {
            args.extend(["--http", hub.url.as_str()]);
        }
        let connected = person.run_successfully(&args);
        assert!(!connected.contains("left in place, not in your settings"), "{connected}");
    }
    hub.wait_for("settings reloaded");

    // Every editor has what it had: no more, no less.
    let token = person.read(".local/share/toolyard/serve/token");
    let mut clients = Vec::new();
    for editor in &EDITORS {
        let client = person.open(editor, Some(token.trim())).await;
        let listed = client.list_all_tools().await.unwrap();
        let mut offered: Vec<String> = listed.iter().map(|tool| tool.name.to_string()).collect();
        offered.retain(|name| name != "read_result");
        offered.sort();
        let mut expected = editor.tools(&tool_lists);
        expected.sort();
        assert_eq!(offered, expected, "{}", editor.name);
        clients.push(client);
    }
    let [claude, desktop, cursor, vscode, codex, gemini] = clients.try_into().ok().unwrap();
    work(&person, [&claude, &desktop, &cursor, &vscode, &codex, &gemini]).await;
    assert_restrictions(&person, [&cursor, &codex, &gemini]).await;
    for client in [claude, desktop, cursor, vscode, codex, gemini] {
        client.cancel().await.unwrap();
    }
    person.assert_no_plain_secrets(&SECRETS);

    // Undo: every byte is as before.
    for editor in &EDITORS {
        person.run_successfully(&["connect", editor.name, "--undo", "--yes"]);
        assert_eq!(person.read(editor.file), person.text_of(editor), "{}", editor.name);
    }
    assert_eq!(person.read(".config/toolyard/toolyard.toml"), settings, "the profiles are gone");
    hub.stop();
}

/// Calls from each editor's view. Two editors have a server of the same program with another folder.
async fn work(person: &Person, [claude, desktop, cursor, vscode, codex, gemini]: [&Client; 6]) {
    let file = |folder: &str| json!({"path": person.path(&format!("{folder}/plan.txt"))});
    for client in [claude, desktop, codex] {
        assert_eq!(call(client, "read_text_file", file("data")).await.as_deref(), Ok("the plan in data"));
    }
    assert_eq!(call(vscode, "read_text_file", file("docs")).await.as_deref(), Ok("the plan in docs"));
    let denied = call(vscode, "read_text_file", file("data")).await.unwrap_err();
    assert!(denied.contains("Access denied"), "the server of the editor answers: {denied}");
    // The secrets reach their servers, without a variable of a shell.
    for (client, secret) in [(claude, SECRETS[0]), (vscode, SECRETS[1])] {
        assert_eq!(call(client, "whoami", json!({})).await.unwrap(), format!("token {}", short_hash(secret)));
    }
    for (client, tool) in [
        (claude, "git_log"),
        (claude, "fetch"),
        (claude, "read_data_from_excel"),
        (desktop, "delete_entities"),
        (desktop, "create_event"),
        (cursor, "read_mail"),
        (cursor, "add_todo"),
        (cursor, "get_current_time"),
        (vscode, "get_forecast"),
        (codex, "read_data_from_excel"),
        (gemini, "search_nodes"),
        (gemini, "echo"),
    ] {
        let answer = call(client, tool, json!({})).await.unwrap();
        assert!(answer.ends_with(&format!("did {tool}")), "{answer}");
    }
}

/// What an editor may not use reaches no server: neither a tool that is disabled there, nor a server of another editor.
async fn assert_restrictions(person: &Person, [cursor, codex, gemini]: [&Client; 3]) {
    let before = person.calls();
    for (client, tool) in [
        (cursor, "send_mail"),
        (cursor, "mail.send_mail"),
        (cursor, "read_data_from_excel"),
        (cursor, "read_text_file"),
        (codex, "write_file"),
        (codex, "filesystem.write_file"),
        (codex, "git_log"),
        (codex, "whoami"),
        (gemini, "delete_entities"),
        (gemini, "memory.delete_entities"),
    ] {
        let direct = call(client, tool, json!({"path": "/tmp/x"})).await;
        let through_search = call(client, "call_tool", json!({"name": tool, "arguments": {}})).await;
        assert!(direct.is_err() && through_search.is_err(), "{tool}: {direct:?} {through_search:?}");
    }
    assert_eq!(person.calls(), before, "no server received any of these calls");
}

/// As the replayed server shows a token.
fn short_hash(secret: &str) -> String {
    let output = Command::new("python3")
        .args([
            "-c",
            "import hashlib, sys; print(hashlib.sha256(sys.argv[1].encode()).hexdigest()[:8])",
            secret,
        ])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn the_editors_have_26_entries_of_19_servers() {
    let person = Person::new();
    let plan = person.run_successfully(&["import", "--dry-run", "--json"]);
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let entries: u64 =
        plan["found"].as_array().unwrap().iter().map(|file| file["servers"].as_u64().unwrap()).sum();
    assert_eq!((entries, plan["added"].as_array().unwrap().len()), (26, 19));
    assert!(!Path::exists(&person.path(".config/toolyard/toolyard.toml")), "a dry run writes nothing");
}
