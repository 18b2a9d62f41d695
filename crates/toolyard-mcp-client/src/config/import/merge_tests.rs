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
            format!("{} {:?} {:?}", merged.server.name, merged.found_in, merged.server.settings.env)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    excel ["Claude Code", "Cursor"] {}
    git ["Claude Code", "Cursor"] {}
    hub ["Claude Code", "VS Code"] {"TOKEN": "${TOKEN}"}
    git-2 ["Cursor"] {}
    hub-2 ["Cursor"] {"TOKEN": "${HUB_2_TOKEN}"}
    "#);
    assert!(!format!("{merged:?}").contains(CANARY));
    let notes = merged.last().unwrap().server.notes.join("\n");
    insta::assert_snapshot!(notes, @"the secret in env.TOKEN was not copied: set the environment variable `HUB_2_TOKEN`");
}
