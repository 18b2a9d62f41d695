//! Merging of servers and secrets from several files.

use super::{
    tests::{CANARY, describe, import_file},
    *,
};

#[test]
fn one_variable_never_stands_for_two_secrets() {
    let imported = import_file(
        Client::Cursor,
        r#"{"mcpServers": {
            "work": {"command": "x", "env": {"API_KEY": "Swordfish-canary-1"}},
            "home": {"command": "x", "env": {"API_KEY": "Swordfish-canary-2"}},
            "same": {"command": "y", "env": {"API_KEY": "Swordfish-canary-1"}},
            "twice": {"command": "z", "args": ["--token", "Swordfish-canary-3", "--token", "Swordfish-canary-4"]},
            "mixed": {"command": "w", "args": ["--a", "${OTHER_KEY}"], "env": {"OTHER_KEY": "Swordfish-canary-5"}},
            "refers": {"command": "v", "env": {"THIRD_KEY": "${THIRD_KEY}"}},
            "holds": {"command": "u", "env": {"THIRD_KEY": "Swordfish-canary-6"}}
        }}"#,
    );
    insta::assert_snapshot!(describe(&imported), @r#"
    [work]
    # the secret in env.API_KEY was not copied: set the environment variable `API_KEY`
    command = "x"

    [env]
    API_KEY = "${API_KEY}"

    [home]
    # the secret in env.API_KEY was not copied: set the environment variable `HOME_API_KEY`
    command = "x"

    [env]
    API_KEY = "${HOME_API_KEY}"

    [same]
    # the secret in env.API_KEY was not copied: set the environment variable `API_KEY`
    command = "y"

    [env]
    API_KEY = "${API_KEY}"

    [twice]
    # the secret in args[1] was not copied: set the environment variable `TWICE_TOKEN`
    # the secret in args[3] was not copied: set the environment variable `TWICE_TOKEN_2`
    command = "z"
    args = ["--token", "${TWICE_TOKEN}", "--token", "${TWICE_TOKEN_2}"]

    [mixed]
    # the secret in env.OTHER_KEY was not copied: set the environment variable `OTHER_KEY_2`
    command = "w"
    args = ["--a", "${OTHER_KEY}"]

    [env]
    OTHER_KEY = "${OTHER_KEY_2}"

    [refers]
    command = "v"

    [env]
    THIRD_KEY = "${THIRD_KEY}"

    [holds]
    # the secret in env.THIRD_KEY was not copied: set the environment variable `HOLDS_THIRD_KEY`
    command = "u"

    [env]
    THIRD_KEY = "${HOLDS_THIRD_KEY}"
    "#);
}

#[test]
fn equal_servers_are_merged_and_others_renamed() {
    let file = |text: &str| import_file(Client::Cursor, text).servers;
    let merged = merge_servers([
        (
            "Claude Code".to_owned(),
            file(
                r#"{"mcpServers": {"excel": {"command": "uvx", "args": ["excel"]}, "git": {"url": "https://a.example/mcp/"},
                "hub": {"command": "h", "env": {"TOKEN": "Swordfish-canary-1"}}}}"#,
            ),
        ),
        (
            "Cursor".to_owned(),
            file(
                r#"{"mcpServers": {"Excel": {"command": "uvx", "args": ["excel"]}, "git": {"url": "https://b.example/mcp"},
                "github": {"url": "https://a.example/mcp"},
                "hub": {"command": "h", "env": {"TOKEN": "Swordfish-canary-2"}}}}"#,
            ),
        ),
        (
            "VS Code".to_owned(),
            file(r#"{"mcpServers": {"hub": {"command": "h", "env": {"TOKEN": "Swordfish-canary-1"}}}}"#),
        ),
    ]);
    let lines: Vec<String> = merged
        .iter()
        .map(|merged| {
            let found_in: Vec<_> =
                merged.found_in.iter().map(|origin| (&origin.file, &origin.name)).collect();
            format!("{} {found_in:?} {:?}", merged.server.name, merged.server.settings.env)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    excel [("Claude Code", "excel"), ("Cursor", "Excel")] {}
    git [("Claude Code", "git"), ("Cursor", "github")] {}
    hub [("Claude Code", "hub"), ("VS Code", "hub")] {"TOKEN": "${TOKEN}"}
    git-2 [("Cursor", "git")] {}
    hub-2 [("Cursor", "hub")] {"TOKEN": "${HUB_2_TOKEN}"}
    "#);
    assert!(!format!("{merged:?}").contains(CANARY));
    let notes = merged.last().unwrap().server.notes.join("\n");
    insta::assert_snapshot!(notes, @"the secret in env.TOKEN was not copied: set the environment variable `HUB_2_TOKEN`");
}

#[test]
fn a_merged_server_offers_what_any_client_may_use_and_each_client_keeps_its_limits() {
    let codex = import_file(
        Client::Codex,
        "[mcp_servers.files]\ncommand = 'f'\nenabled_tools = ['read', 'list']\n[mcp_servers.off]\ncommand = 'o'\nenabled = false\n\
         [mcp_servers.alone]\ncommand = 'a'\nenabled_tools = ['x']\ndisabled_tools = ['y']\n",
    );
    let gemini = import_file(
        Client::Gemini,
        r#"{"mcpServers": {"files": {"command": "f", "excludeTools": ["write(path)", "read"]}, "off": {"command": "o", "includeTools": ["z"]}}}"#,
    );
    let copilot = import_file(
        Client::Cursor,
        r#"{"mcpServers": {"all": {"command": "l", "tools": ["*"]}, "none": {"command": "n", "disabledTools": ["*"]}}}"#,
    );
    let files = [("Codex", codex), ("Gemini", gemini), ("Copilot", copilot)];
    let merged = merge_servers(files.map(|(name, file)| (name.to_owned(), file.servers)));
    let mut text = String::new();
    for MergedServer { server, found_in } in &merged {
        use std::fmt::Write as _;
        let ServerSettings { enabled, tools, without_tools, .. } = &server.settings;
        let _ = writeln!(text, "{} enabled: {enabled} {tools:?} without {without_tools:?}", server.name);
        for origin in found_in {
            let (only, without) = (&origin.tools.only, &origin.tools.without);
            let _ =
                writeln!(text, "  {} enabled: {} {only:?} without {without:?}", origin.file, origin.enabled);
        }
    }
    insta::assert_snapshot!(text, @r#"
    alone enabled: true Some(["x"]) without []
      Codex enabled: true Some(["x"]) without ["y"]
    files enabled: true None without ["write"]
      Codex enabled: true Some(["read", "list"]) without []
      Gemini enabled: true None without ["write", "read"]
    off enabled: true Some(["z"]) without []
      Codex enabled: false None without []
      Gemini enabled: true Some(["z"]) without []
    all enabled: true None without []
      Copilot enabled: true None without []
    none enabled: true Some([]) without []
      Copilot enabled: true Some([]) without []
    "#);
}
