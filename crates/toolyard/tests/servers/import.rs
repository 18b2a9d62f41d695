//! `toolyard import`: what is found, what would be written, and what is never taken.

use serde_json::{Value, json};

use crate::place::Place;

/// A home with three clients, and a project with a file of its own.
fn clients() -> Place {
    let place = Place::new();
    let excel = json!({"command": "uvx", "args": ["excel-mcp-server", "stdio"]});
    let github = json!({"type": "http", "url": "https://api.example.com/mcp",
        "headers": {"Authorization": "Bearer canary-in-a-header-1234567"}});
    let time = json!({"command": "uvx", "args": ["mcp-server-time", "--api-key", "canary-in-an-argument-1234567"],
        "env": {"TIME_API_KEY": "canary-in-a-variable-1234567"}});
    let own = json!({"command": "toolyard", "args": ["serve", "--stdio"]});
    place.write(
        ".claude.json",
        &json!({"mcpServers": {"excel": excel, "github": github, "toolyard": own}}).to_string(),
    );
    place.write(".cursor/mcp.json", &json!({"mcpServers": {"Excel": excel, "time": time}}).to_string());
    place.write(".codex/config.toml", "[mcp_servers.docs]\nurl = \"https://docs.example.com/mcp\"\n");
    place.write(
        "project/.vscode/mcp.json",
        &json!({"servers": {"local": {"command": "./run.sh"}}}).to_string(),
    );
    place
}

#[test]
fn a_dry_run_shows_everything_and_writes_nothing() {
    let place = clients();
    let seen = place.run(&["import", "--dry-run"]);
    assert!(!seen.contains("canary"), "{seen}");
    insta::assert_snapshot!(seen, @r#"
    + excel   stdio  uvx excel-mcp-server stdio   (Claude Code; Cursor)
    + github  http   https://api.example.com/mcp  Authorization: Bearer ${GITHUB_TOKEN}   (Claude Code)
        note: the secret in headers.Authorization was not copied: set the environment variable `GITHUB_TOKEN` to it
    + time    stdio  uvx mcp-server-time --api-key ${TIME_API_KEY_2}  TIME_API_KEY = ${TIME_API_KEY}   (Cursor)
        note: the secret in env.TIME_API_KEY was not copied: set the environment variable `TIME_API_KEY` to it
        note: the secret in args[2] was not copied: set the environment variable `TIME_API_KEY_2` to it
    + local   stdio  HOME/project/run.sh   (VS Code, this project)
    + docs    http   https://docs.example.com/mcp   (Codex)
    - toolyard  not taken over: it is Toolyard itself, which would ask itself for ever
    + [servers.excel]
    + command = "uvx"
    + args = ["excel-mcp-server", "stdio"]
    + 
    + [servers.github]
    + url = "https://api.example.com/mcp"
    + transport = "http"
    + 
    + [servers.github.headers]
    + Authorization = "Bearer ${GITHUB_TOKEN}"
    + 
    + [servers.time]
    + command = "uvx"
    + args = ["mcp-server-time", "--api-key", "${TIME_API_KEY_2}"]
    + 
    + [servers.time.env]
    + TIME_API_KEY = "${TIME_API_KEY}"
    + 
    + [servers.local]
    + command = "HOME/project/run.sh"
    + 
    + [servers.docs]
    + url = "https://docs.example.com/mcp"
    --- stderr
    Found 4 configurations
      Claude Code                3 servers   HOME/.claude.json
      Cursor                     2 servers   HOME/.cursor/mcp.json
      VS Code, this project      1 server    HOME/project/.vscode/mcp.json
      Codex                      1 server    HOME/.codex/config.toml
      1 server there more than once, merged
    HOME/config/toolyard/toolyard.toml would change:
    "#);
    assert!(!place.path("config/toolyard/toolyard.toml").exists());
}

#[test]
fn what_nobody_looked_at_is_not_taken() {
    let place = clients();
    let asked = place.run(&["import"]);
    assert!(asked.contains("nothing was imported: nobody can be asked here"), "{asked}");
    assert!(asked.ends_with("--- exit 4"), "{asked}");
    let taken = place.run(&["import", "--yes"]);
    assert!(taken.contains("Wrote 4 servers to HOME/config/toolyard/toolyard.toml"), "{taken}");
    let written = std::fs::read_to_string(place.path("config/toolyard/toolyard.toml")).unwrap();
    assert!(!written.contains("canary") && !written.contains("trusted"), "{written}");
    assert!(!written.contains("run.sh"), "a project's file is not taken without a look at it: {written}");
    place.run(&["import", ".vscode/mcp.json", "--yes"]);
    let written = std::fs::read_to_string(place.path("config/toolyard/toolyard.toml")).unwrap();
    assert!(written.contains("/project/run.sh"), "one that was named is: {written}");
}

#[test]
fn a_second_import_changes_nothing_and_a_different_server_is_shown() {
    let place = clients();
    place.run(&["import", "--yes"]);
    let file = place.path("config/toolyard/toolyard.toml");
    let first = std::fs::read_to_string(&file).unwrap();
    assert!(place.run(&["import", "--yes"]).contains("Nothing to write"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), first);

    place.write(".codex/config.toml", "[mcp_servers.docs]\nurl = \"https://docs.example.org/mcp\"\n");
    insta::assert_snapshot!(place.run(&["import", "--from", "codex", "--yes"]), @r#"
    ~ docs  is there for something else: kept   (Codex)
        - url = "https://docs.example.com/mcp"
        + url = "https://docs.example.org/mcp"
    --- stderr
    Found 1 configuration
      Codex                      1 server    HOME/.codex/config.toml
      hint: --replace takes the imported one instead
    Nothing to write
    "#);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), first, "what is there stays");
    insta::assert_snapshot!(place.run(&["import", "--from", "codex", "--replace", "--dry-run"]), @r#"
    ~ docs  is there for something else: replaced   (Codex)
        - url = "https://docs.example.com/mcp"
        + url = "https://docs.example.org/mcp"
    - url = …
    + url = "https://docs.example.org/mcp"
    --- stderr
    Found 1 configuration
      Codex                      1 server    HOME/.codex/config.toml
    HOME/config/toolyard/toolyard.toml would change:
    "#);
    place.run(&["import", "--from", "codex", "--replace", "--yes"]);
    assert!(std::fs::read_to_string(&file).unwrap().contains("docs.example.org"));
}

#[test]
fn the_same_facts_as_json() {
    let place = clients();
    let seen = place.run(&["import", "--json", "--dry-run"]);
    assert!(!seen.contains("canary"), "{seen}");
    let facts: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(facts["added"].as_array().unwrap().len(), 5);
    assert_eq!(facts["found"].as_array().unwrap().len(), 4);
    assert_eq!((&facts["written"], &facts["skipped"][0]["name"]), (&json!(false), &json!("toolyard")));
}

#[test]
fn a_broken_file_is_named_and_the_others_count() {
    let place = clients();
    place.write(".cursor/mcp.json", "{\"mcpServers\": {\"x\": ");
    let seen = place.run(&["import", "--yes"]);
    assert!(seen.contains("note: the file is not JSON") && seen.contains("Wrote 3 servers"), "{seen}");
    insta::assert_snapshot!(place.run(&["import", "HOME/nope.json"]), @r"
    --- stderr
    error: failed to read HOME/nope.json: No such file or directory (os error 2)
    --- exit 2
    ");
    insta::assert_snapshot!(place.run(&["import", "--from", "emacs"]), @r"
    --- stderr
    error: no client is called `emacs`
      hint: there are claude-code, claude-desktop, cursor, vscode, codex, gemini, registry
    --- exit 2
    ");
}
