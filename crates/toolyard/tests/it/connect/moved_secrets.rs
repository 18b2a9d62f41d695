//! Secrets move with their server, so that a client that the desktop starts, without variables of a shell, can use it.

use std::os::unix::fs::PermissionsExt as _;

use super::{CLAUDE, SETTINGS, home_with_clients, read_file, run};
use crate::test_home::TestHome;

#[test]
fn secrets_move_to_a_private_file_and_work_without_variables() {
    let home = home_with_clients();
    let secrets = home.path("data/toolyard/secrets.json");
    assert_eq!(secrets.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!std::fs::read_to_string(&secrets).unwrap().contains("canary"), "encrypted");
    let stored = run(&home, &["secrets", "list"]);
    assert!(stored.contains("GITHUB_TOKEN  stored  github"), "{stored}");
    assert!(stored.contains("TIME_API_KEY  stored  time"), "{stored}");
    let settings = read_file(&home, SETTINGS);
    assert!(settings.contains("Bearer ${secret:GITHUB_TOKEN}") && !settings.contains("canary"), "{settings}");
    run(&home, &["servers", "remove", "github"]);
    assert!(!run(&home, &["secrets", "list"]).contains("GITHUB_TOKEN"), "a secret goes with its server");
}

/// The record of what `connect` removed holds the secrets of the client's file.
#[test]
fn undo_records_are_encrypted_and_survive_a_new_key() {
    let home = home_with_clients();
    run(&home, &["connect", "claude", "--yes"]);
    let record = home.path("data/toolyard/connect/claude-code.json");
    let text = || std::fs::read_to_string(&record).unwrap();
    let before = text();
    assert!(!before.contains("canary") && !before.contains("mcpServers"), "{before}");
    assert_eq!(record.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    insta::assert_snapshot!(run(&home, &["secrets", "rotate-key"]), @r"
    --- stderr
    encrypted 2 secrets and 1 undo record with a new key in a private file
    ");
    assert_ne!(text(), before);
    let keys = std::fs::read_dir(home.path("data/toolyard/secret-keys")).unwrap().count();
    assert_eq!(keys, 1, "the old key is gone");
    run(&home, &["connect", "claude", "--undo", "--yes"]);
    assert_eq!(std::fs::read_to_string(home.path(".claude.json")).unwrap(), CLAUDE);
}

#[test]
fn a_plain_record_of_an_earlier_version_can_be_undone() {
    let home = home_with_clients();
    run(&home, &["connect", "claude", "--yes"]);
    let connected = std::fs::read_to_string(home.path(".claude.json")).unwrap();
    // As an earlier version wrote it: the file is restored from its servers, because the difference is not known.
    let github = serde_json::json!({"type": "http", "url": "https://api.example.com/mcp",
        "headers": {"Authorization": "Bearer canary-in-a-header-1234567"}});
    let record = serde_json::json!({"version": 1, "file": home.path(".claude.json").canonicalize().unwrap(),
        "existed": true, "moved": {"github": github}, "patch": null});
    home.write("data/toolyard/connect/claude-code.json", &record.to_string());
    run(&home, &["connect", "claude", "--undo", "--dry-run"]);
    let text = std::fs::read_to_string(home.path("data/toolyard/connect/claude-code.json")).unwrap();
    assert!(!text.contains("canary"), "encrypted when it was read: {text}");
    assert_eq!(std::fs::read_to_string(home.path(".claude.json")).unwrap(), connected);
    run(&home, &["connect", "claude", "--undo", "--yes"]);
    let restored = std::fs::read_to_string(home.path(".claude.json")).unwrap();
    assert!(restored.contains("Bearer canary-in-a-header-1234567"), "{restored}");
}

#[test]
fn variables_of_an_environment_file_move_with_their_server() {
    let home = TestHome::new();
    home.write("notes/.env", "# keys\nexport NOTES_TOKEN=\"canary-in-a-file-1234567\"\nREGION=eu # west\n");
    let text = r#"{"servers": {"notes": {"command": "notes", "envFile": "${userHome}/notes/.env", "env": {"REGION": "us"}},
        "gone": {"command": "gone", "envFile": "/nowhere/.env"}}}"#;
    home.write(".config/Code/User/mcp.json", text);
    insta::assert_snapshot!(run(&home, &["import", "--yes"]), @r"
    + notes  stdio  notes  NOTES_TOKEN = ${secret:NOTES_TOKEN}  REGION = us   (VS Code)
        note: read from `envFile`: `NOTES_TOKEN`, `REGION`; later changes of that file have no effect
        note: the secret in env.NOTES_TOKEN is kept as `${secret:NOTES_TOKEN}`
    + gone   stdio  gone   (VS Code)
        note: `envFile` could not be read: its variables are missing
    --- stderr
    Found 1 configuration
      VS Code                    2 servers   HOME/.config/Code/User/mcp.json
    Wrote 2 servers to HOME/config/toolyard/toolyard.toml
    Stored 1 secret, encrypted with a key in a private file: NOTES_TOKEN
      hint: check them with `toolyard doctor`, start each once with `toolyard servers test`
    ");
    insta::assert_snapshot!(read_file(&home, SETTINGS), @r#"
    [servers.notes]
    command = "notes"

    [servers.notes.env]
    NOTES_TOKEN = "${secret:NOTES_TOKEN}"
    REGION = "us"

    [servers.gone]
    command = "gone"
    "#);
    let output = run(&home, &["connect", "vscode", "--yes"]);
    assert!(output.contains("in place of 2 servers (notes, gone)"), "{output}");
    home.write("notes/.env", "NOTES_TOKEN=canary-of-another-account-1234567\n");
    run(&home, &["connect", "vscode", "--undo", "--yes"]);
    let output = run(&home, &["connect", "vscode", "--yes"]);
    assert!(output.contains("left in place, not in your settings: notes"), "{output}");
}

#[test]
fn codex_passes_on_the_variables_that_its_servers_need() {
    let home = TestHome::new();
    home.write(
        ".codex/config.toml",
        "[mcp_servers.docs]\nurl = \"https://docs.example.com/mcp\"\nbearer_token_env_var = \"DOCS_TOKEN\"\n",
    );
    home.run(&["import", "--yes"]);
    let mut command = home.command(&["connect", "codex", "--yes"]);
    let output = home.output_text(&command.env("DOCS_TOKEN", "canary").output().unwrap());
    assert!(output.contains("needed in the environment of Codex: DOCS_TOKEN"), "{output}");
    assert!(read_file(&home, ".codex/config.toml").contains("env_vars = [\"DOCS_TOKEN\"]"));
}
