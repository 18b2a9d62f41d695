//! Import plans, and edits that preserve formatting.

use proptest::prelude::*;

use super::*;
use crate::config::{
    FileContext, add_server,
    import::{Client, import_servers, merge_servers},
    remove_server,
};

const FILE: &str = r#"# my servers
store = "toolyard.db"  # local

[servers.excel]   # sheets
command = "uvx"
args = ["excel-mcp-server", "stdio"]  # over stdio
trusted = true

# the old one
[servers.jira]
url = "https://jira.example.org/mcp"
[servers.jira.headers]
Authorization = "Bearer Swordfish-canary"

[routing]
prefer = "mcp-first" # really
"#;

fn cursor_servers(text: &str) -> Vec<MergedServer> {
    merge_servers([(
        "Cursor".to_owned(),
        import_servers(Client::Cursor, text, FileContext::default()).unwrap().servers,
    )])
}

fn servers() -> Vec<MergedServer> {
    cursor_servers(
        r#"{"mcpServers": {
            "sheets": {"command": "uvx", "args": ["excel-mcp-server", "stdio"]},
            "jira": {"url": "https://jira.example.org/v2/mcp", "headers": {"Authorization": "Bearer Swordfish-canary-2"}},
            "github": {"url": "https://github.example.org/mcp", "headers": {"Authorization": "Bearer Swordfish-canary-3"}},
            "yard": {"command": "/usr/bin/toolyard", "args": ["serve", "--stdio"]}
        }}"#,
    )
}

#[test]
fn a_plan_lists_its_effects() {
    let plan = plan_import(FILE, &servers(), ConflictPolicy::Keep).unwrap();
    let names =
        |planned: &[PlannedServer]| planned.iter().map(|planned| planned.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&plan.added), ["github"]);
    assert_eq!(names(&plan.existing), ["excel"]);
    assert_eq!(plan.skipped[0].name, "yard");
    assert_eq!(plan.conflicting[0].server.name, "jira");
    let diff = plan.conflicting[0].diff.join("\n");
    assert!(!diff.contains("canary"));
    insta::assert_snapshot!(diff, @r#"
    - headers.Authorization = "Bearer [secret]"
    + headers.Authorization = "Bearer ${JIRA_TOKEN}"
    - url = "https://jira.example.org/mcp"
    + url = "https://jira.example.org/v2/mcp"
    "#);
    insta::assert_snapshot!(plan.text, @r#"
    # my servers
    store = "toolyard.db"  # local

    [servers.excel]   # sheets
    command = "uvx"
    args = ["excel-mcp-server", "stdio"]  # over stdio
    trusted = true

    # the old one
    [servers.jira]
    url = "https://jira.example.org/mcp"
    [servers.jira.headers]
    Authorization = "Bearer Swordfish-canary"

    [servers.github]
    url = "https://github.example.org/mcp"

    [servers.github.headers]
    Authorization = "Bearer ${GITHUB_TOKEN}"

    [routing]
    prefer = "mcp-first" # really
    "#);
}

#[test]
fn conflicting_servers_are_replaced_on_request() {
    let plan = plan_import(FILE, &servers(), ConflictPolicy::Replace).unwrap();
    insta::assert_snapshot!(plan.text, @r#"
    # my servers
    store = "toolyard.db"  # local

    [servers.excel]   # sheets
    command = "uvx"
    args = ["excel-mcp-server", "stdio"]  # over stdio
    trusted = true

    # the old one
    [servers.jira]
    url = "https://jira.example.org/v2/mcp"
    [servers.jira.headers]
    Authorization = "Bearer ${JIRA_TOKEN}"

    [servers.github]
    url = "https://github.example.org/mcp"

    [servers.github.headers]
    Authorization = "Bearer ${GITHUB_TOKEN}"

    [routing]
    prefer = "mcp-first" # really
    "#);
}

#[test]
fn a_second_import_changes_nothing() {
    for file in ["", FILE] {
        let first = plan_import(file, &servers(), ConflictPolicy::Replace).unwrap();
        let second = plan_import(&first.text, &servers(), ConflictPolicy::Replace).unwrap();
        assert_eq!(second.text, first.text);
        assert_eq!((second.added.len(), second.conflicting.len(), second.existing.len()), (0, 0, 3));
    }
}

#[test]
fn a_replaced_server_loses_trust() {
    let file = "[servers.a]\ncommand = \"good\"\ntrusted = true\nenabled = false\n";
    let plan = plan_import(
        file,
        &cursor_servers(r#"{"mcpServers": {"a": {"command": "other"}}}"#),
        ConflictPolicy::Replace,
    )
    .unwrap();
    assert_eq!(plan.text, "[servers.a]\ncommand = \"other\"\nenabled = false\n");
}

#[test]
fn servers_are_added_and_removed_in_place() {
    let settings: ServerSettings =
        toml::from_str("command = 'npx'\nargs = ['-y', 'x']\nenv = {A = '${A}'}").unwrap();
    let added = add_server(FILE, "new", &settings).unwrap();
    let expected = FILE.replace(
        "\n[routing]",
        "\n[servers.new]\ncommand = \"npx\"\nargs = [\"-y\", \"x\"]\n\n[servers.new.env]\nA = \"${A}\"\n\n[routing]",
    );
    assert_eq!(added, expected);
    assert_eq!(remove_server(&added, "new").unwrap().as_deref(), Some(FILE));
    assert_eq!(remove_server(FILE, "nobody").unwrap(), None);
    assert_eq!(add_server(FILE, "excel", &settings).unwrap_err(), EditError::NameTaken("excel".to_owned()));
    insta::assert_snapshot!(add_server(FILE, "Bad Name", &settings).unwrap_err(), @"`Bad Name` is not a valid server name: only `a` to `z`, digits, `-` and `_` are allowed, starting with a letter or digit; try `bad-name`");
    insta::assert_snapshot!(add_server("servers = 1", "new", &settings).unwrap_err(), @"`servers` is not a table: write `[servers.NAME]`");
    insta::assert_snapshot!(add_server("a = Swordfish", "new", &settings).unwrap_err(), @"the file is not TOML: string values must be quoted, expected literal string (line 1)");
    assert_eq!(
        add_server("servers = {}\n", "new", &settings).unwrap(),
        "servers = { new = { command = \"npx\", args = [\"-y\", \"x\"], env = { A = \"${A}\" } } }\n"
    );
    assert_eq!(add_server("", "new", &settings).unwrap().lines().next(), Some("[servers.new]"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn edits_never_panic(servers in Just(servers()), text in "(\\[servers|\\.|[a-c]|[\\[\\]={}\"\n#' ]|1){0,40}") {
        let settings = ServerSettings { command: Some("x".to_owned()), ..ServerSettings::default() };
        let _ = plan_import(&text, &servers, ConflictPolicy::Replace);
        if let Ok(added) = add_server(&text, "fresh", &settings) {
            let table: toml::Table = toml::from_str(&added).unwrap();
            prop_assert!(table["servers"]["fresh"]["command"].as_str() == Some("x"), "{added}");
            let without = remove_server(&added, "fresh").unwrap().unwrap();
            prop_assert!(toml::from_str::<toml::Table>(&without).is_ok(), "{without}");
        }
    }

    #[test]
    fn added_servers_round_trip(args in proptest::collection::vec(".{0,12}", 0..4), value in ".{0,12}") {
        let settings = ServerSettings {
            command: Some("x".to_owned()),
            args: args.iter().map(|text| crate::config::Template::escape(text)).collect(),
            env: [("A".to_owned(), crate::config::Template::escape(&value))].into(),
            ..ServerSettings::default()
        };
        let text = add_server(FILE, "new", &settings).unwrap();
        let table: toml::Table = toml::from_str(&text).unwrap();
        prop_assert_eq!(table["servers"]["new"].clone().try_into::<ServerSettings>().unwrap(), settings);
        prop_assert_eq!(remove_server(&text, "new").unwrap().unwrap(), FILE);
    }
}
