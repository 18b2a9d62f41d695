//! A connected client gets the servers and tools that it had.

use super::{SETTINGS, home_with_clients, read_file, run};
use crate::test_home::TestHome;

const RESTRICTED_CODEX: &str = r#"[mcp_servers.old_files]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "/data"]
enabled_tools = ["read_text_file", "list_directory"]

[mcp_servers.notes]
command = "notes"
disabled_tools = ["delete_note"]

[mcp_servers.off]
command = "off"
enabled = false
"#;

/// Codex with restrictions, and Gemini with two of the same servers and other restrictions.
fn home_with_restrictions() -> TestHome {
    let home = TestHome::new();
    home.write(".codex/config.toml", RESTRICTED_CODEX);
    let gemini = r#"{"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"], "excludeTools": ["move_file(source)"]},
        "off": {"command": "off"}
    }}"#;
    home.write(".gemini/settings.json", gemini);
    home
}

#[test]
fn import_reports_merges_names_and_what_a_client_may_not_use() {
    let home = home_with_restrictions();
    insta::assert_snapshot!(run(&home, &["import", "--yes"]), @r"
    + notes      stdio  notes   (Codex)
        Codex may not use delete_note
    + off        stdio  off   (Codex; Gemini CLI)
        disabled in Codex
    + old_files  stdio  npx -y @modelcontextprotocol/server-filesystem /data   (Codex; Gemini CLI as `files`)
        Codex may use only read_text_file, list_directory
        Gemini CLI may not use move_file
    --- stderr
    Found 2 configurations
      Codex                      3 servers   HOME/.codex/config.toml
      Gemini CLI                 2 servers   HOME/.gemini/settings.json
      merged 2 duplicate servers
    Wrote 3 servers to HOME/config/toolyard/toolyard.toml
      hint: check them with `toolyard doctor`, start each once with `toolyard servers test`
    ");
    insta::assert_snapshot!(read_file(&home, SETTINGS), @r#"
    [servers.notes]
    command = "notes"
    without_tools = ["delete_note"]

    [servers.off]
    command = "off"

    [servers.old_files]
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-filesystem", "/data"]
    without_tools = ["move_file"]
    "#);
}

#[test]
fn a_connected_client_gets_what_it_had() {
    let home = home_with_restrictions();
    run(&home, &["import", "--yes"]);
    let before = read_file(&home, SETTINGS);
    insta::assert_snapshot!(run(&home, &["connect", "codex", "--yes"]), @r"
    --- stderr
    Codex now starts `toolyard serve --stdio` in place of 2 servers (notes, old_files). Undo: toolyard connect codex --undo
      Codex may use the profile `codex`; for all tools: --all
      left in place, disabled: off
    ");
    insta::assert_snapshot!(read_file(&home, ".codex/config.toml"), @r#"
    [mcp_servers.off]
    command = "off"
    enabled = false

    [mcp_servers.toolyard]
    command = "/bin/toolyard"
    args = ["serve", "--stdio", "--profile", "codex"]
    "#);
    run(&home, &["connect", "gemini", "--yes"]);
    let settings = read_file(&home, SETTINGS);
    insta::assert_snapshot!(settings.strip_prefix(&before).unwrap_or(&settings), @r#"
    [serve.profiles.codex]
    servers = ["notes", "old_files"]
    tools = ["*@notes", "read_text_file@old_files", "list_directory@old_files"]
    deny = ["delete_note@notes"]

    [serve.profiles.gemini]
    servers = ["off", "old_files"]
    deny = ["move_file@old_files"]
    "#);

    // A server that is added later extends the profile.
    let added = "[mcp_servers.more]\ncommand = \"more\"\n";
    let text = std::fs::read_to_string(home.path(".codex/config.toml")).unwrap();
    home.write(".codex/config.toml", &format!("{text}\n{added}"));
    run(&home, &["import", "--yes"]);
    run(&home, &["connect", "codex", "--yes"]);
    let settings = read_file(&home, SETTINGS);
    assert!(settings.contains(r#""list_directory@old_files", "*@more"]"#), "{settings}");
    let again = run(&home, &["connect", "codex", "--yes"]);
    assert!(again.contains("already starts"), "{again}");

    let widened = run(&home, &["connect", "codex", "--all", "--yes"]);
    assert!(widened.contains("Codex may use all tools of all servers"), "{widened}");
    assert!(!read_file(&home, ".codex/config.toml").contains("--profile"));
    run(&home, &["connect", "codex", "--undo", "--yes"]);
    run(&home, &["connect", "gemini", "--undo", "--yes"]);
    let restored = read_file(&home, ".codex/config.toml");
    for server in ["old_files", "notes", "off", "more"] {
        assert!(restored.contains(&format!("[mcp_servers.{server}]")), "{restored}");
    }
    assert!(restored.contains("enabled_tools") && !restored.contains("toolyard"), "{restored}");
    assert!(!read_file(&home, SETTINGS).contains("[serve."), "{}", read_file(&home, SETTINGS));
}

#[test]
fn tools_that_claude_code_denies_stay_denied() {
    let home = home_with_clients();
    home.write(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__github__delete_repo", "mcp__Excel"]}}"#,
    );
    run(&home, &["connect", "claude", "--yes"]);
    let settings = read_file(&home, SETTINGS);
    assert!(settings.contains(r#"deny = ["*@excel", "delete_repo@github"]"#), "{settings}");
}

#[test]
fn a_profile_that_the_operator_wrote_is_used_as_it_is() {
    let home = home_with_restrictions();
    run(&home, &["import", "--yes"]);
    let settings = format!("{}\n[serve.profiles.codex]\nservers = [\"notes\"]\n", read_file(&home, SETTINGS));
    home.write(SETTINGS, &settings);
    run(&home, &["connect", "codex", "--yes"]);
    run(&home, &["connect", "codex", "--undo", "--yes"]);
    assert_eq!(read_file(&home, SETTINGS), settings);
}
