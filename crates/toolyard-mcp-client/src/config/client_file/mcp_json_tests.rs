//! Real-world files: valid servers are used, invalid ones reported, and no secret is displayed.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;
use crate::config::MAX_FILE_BYTES;

fn read(text: &str) -> FileServers {
    read_mcp_json(text, Path::new("/home/ann/project")).unwrap()
}

fn describe(file: &FileServers) -> String {
    let mut text = String::new();
    for server in &file.servers {
        let _ = writeln!(text, "{} {:?}", server.config.id, server.config.transport);
        server.notes.iter().for_each(|note| writeln!(text, "  {note}").unwrap());
    }
    file.invalid.iter().for_each(|problem| writeln!(text, "{problem}").unwrap());
    text
}

#[test]
fn valid_servers_are_used_and_invalid_ones_reported() {
    let file = read(
        r#"{
            // what a person wrote
            "mcpServers": {
                "Excel Files": {"command": "uvx", "args": ["excel-mcp-server", 1, true], "env": {"PORT": 8000}},
                "github": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer swordfish"}},
                "sse": {"type": "sse", "url": "https://example.org/sse", "env": {"A": "b"}, "autoApprove": ["x"]},
                "both": {"command": "a", "url": "https://example.org"},
                "neither": {"args": []},
                "wrong": {"command": {"swordfish": 1}},
                "list": [1],
                "ws": {"type": "ws", "url": "wss://example.org"},
                "github2": {"url": "ftp://swordfish.example.org"},
                "off": {"command": "a", "disabled": true, "colour": "blue", "evil\u001b[31m": 1},
                "twice": {"command": "a"},
                "twice": {"command": "b"},
                "excel-files": {"command": "other"},
                "home": {"command": "${workspaceFolder}/bin/x", "args": ["${HOME}", "${input:api-key}"]},
            },
        }"#,
    );
    let description = describe(&file);
    assert!(!description.contains("swordfish") && !format!("{file:?}").contains("swordfish"));
    insta::assert_snapshot!(description, @r#"
    excel-files-2 Stdio { command: "uvx", args: 3, env: {"PORT"}, inherit: [], cwd: None }
      renamed from `Excel Files`
    github Http { url: https://example.org/…, headers: {"Authorization"}, kind: Streamable }
      server `github`: headers.Authorization looks like a secret: write `${GITHUB_TOKEN}` instead and set that variable
    sse Http { url: https://example.org/…, headers: {}, kind: Sse }
      `autoApprove` was ignored: set `trusted = true` instead
      `env` was ignored: not applicable to a URL
    both Http { url: https://example.org/…, headers: {}, kind: Auto }
    off Stdio { command: "a", args: 0, env: {}, inherit: [], cwd: None }
      ignored unknown fields: `colour`, `evil�[31m`
    twice Stdio { command: "b", args: 0, env: {}, inherit: [], cwd: None }
    excel-files Stdio { command: "other", args: 0, env: {}, inherit: [], cwd: None }
    home Stdio { command: "/home/ann/project/bin/x", args: 2, env: {}, inherit: [], cwd: None }
      VS Code prompts for this value: set the environment variable `API_KEY`
    `neither` is skipped: server `neither` has neither `command` nor `url`: set the program to start or the URL
    `wrong` is skipped: `command` must be a text, not a table
    `list` is skipped: the entry must be a table, not a list
    `ws` is skipped: WebSocket is not an MCP transport; use an `http` URL
    `github2` is skipped: server `github2`: `url` must start with `http://` or `https://`
    `twice` is skipped: a later entry has the same name
    "#);
}

#[test]
fn the_format_of_the_specification_is_read() {
    let file = read(
        r#"{"servers": [
            {"id": "excel", "name": "Excel", "transport": "stdio", "command": "uvx", "args": ["excel-mcp-server"],
             "is_active": true, "cached_tools": [{"name": "read_data_from_excel", "inputSchema": {"minimum": 1}}]},
            {"id": "search", "name": "Search", "transport_type": "SSE", "is_active": false,
             "http_config": {"url": "https://example.org/sse", "headers": {"A": "b"}}},
            {"id": "local", "transport_type": "STDIO", "stdio_config": {"command": "x", "args": ["y"], "env_vars": {"A": "b"}}},
            {"name": "Nothing"}
        ]}"#,
    );
    insta::assert_snapshot!(describe(&file), @r#"
    excel Stdio { command: "uvx", args: 1, env: {}, inherit: [], cwd: None }
    search Http { url: https://example.org/…, headers: {"A"}, kind: Sse }
    local Stdio { command: "x", args: 1, env: {"A"}, inherit: [], cwd: None }
    `Nothing` is skipped: server `nothing` has neither `command` nor `url`: set the program to start or the URL
    "#);
    assert_eq!(
        file.servers[0].config.cached_tools[0].get(),
        r#"{"name":"read_data_from_excel","inputSchema":{"minimum":1}}"#
    );
    assert!(file.servers[0].config.enabled && !file.servers[1].config.enabled);
}

#[test]
fn no_field_grants_trust() {
    let file = read(r#"{"mcpServers": {"a": {"command": "a", "trust": true, "trusted": true}}}"#);
    assert!(!file.servers[0].config.trusted);
}

#[test]
fn ten_thousand_servers_and_ten_megabytes_are_read() {
    let servers: Vec<String> =
        (0..10_000).map(|number| format!("\"s{number}\": {{\"command\": \"c{number}\"}}")).collect();
    assert_eq!(read(&format!("{{\"mcpServers\": {{{}}}}}", servers.join(","))).servers.len(), 10_000);
    let long = "x".repeat(10 << 20);
    let file =
        read(&format!("{{\"mcpServers\": {{\"a\": {{\"command\": \"a\", \"args\": [\"{long}\"]}}}}}}"));
    assert_eq!(file.invalid[0].to_string(), "`a` is skipped: server `a`: args[0] is longer than 128 KiB");
    let same = "\"a\": {\"command\": \"a\"},".repeat(10_000);
    let file = read(&format!("{{\"mcpServers\": {{{same}}}}}"));
    assert_eq!((file.servers.len(), file.invalid.len()), (1, 9_999));
}

#[test]
fn the_maximum_nesting_depth_is_read() {
    let (open, close) = ("[".repeat(500), "]".repeat(500));
    let file = read(&format!(
        "{{\"servers\": [{{\"id\": \"a\", \"command\": \"b\", \"cached_tools\": {open}{close}}}]}}"
    ));
    assert_eq!(file.servers[0].config.cached_tools.len(), 1);
}

#[test]
fn files_without_servers_are_rejected() {
    let message = |text: &str| read_mcp_json(text, Path::new("/")).unwrap_err().to_string();
    for text in ["", "{}", "1", "{\"mcpServers\": 1}", "null"] {
        assert_eq!(
            message(text),
            "the file contains no servers: a table `mcpServers` or `servers` is missing",
            "{text}"
        );
    }
    assert_eq!(message(&" ".repeat(MAX_FILE_BYTES + 1)), "the file is larger than 16 MiB");
    assert!(read_mcp_json("{\"mcpServers\": {}}", Path::new("/")).is_ok());
}

/// Any JSON, often with the names of known fields.
fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let name = prop_oneof![
        "command", "args", "env", "url", "headers", "type", "oauth", "scopes", "disabled", ".{0,6}"
    ];
    let text =
        prop_oneof!["stdio", "http", "https://[a-z]{1,5}/.{0,9}", "[$][{][a-zA-Z:-]{0,9}[}]?", ".{0,12}"];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        text.prop_map(serde_json::Value::from)
    ];
    leaf.prop_recursive(4, 40, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            proptest::collection::btree_map(name.clone(), inner, 0..8)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn arbitrary_json_is_handled(servers in proptest::collection::btree_map(".{0,9}", any_json(), 0..4)) {
        let text = serde_json::json!({ "mcpServers": servers }).to_string();
        let file = read(&text);
        prop_assert_eq!(file.servers.len() + file.invalid.len(), servers.len());
        let names: std::collections::HashSet<_> = file.servers.iter().map(|server| server.config.id.clone()).collect();
        prop_assert_eq!(names.len(), file.servers.len());
    }
}

#[test]
fn isolation_and_headers_of_the_caller_are_read() {
    let file = read(
        r#"{"mcpServers": {
            "browser": {"command": "browser", "isolation": "session"},
            "crm": {"url": "https://example.org/mcp", "headers": {"X-User": "${caller:subject}"}},
            "wrong": {"command": "a", "isolation": "user"}
        }}"#,
    );
    let isolation: Vec<_> = file.servers.iter().map(|server| server.config.isolation).collect();
    assert_eq!(isolation, [Some(crate::config::IsolationSetting::Session), None]);
    let resolved = file.servers.last().unwrap().config.resolve(|_| None).unwrap();
    assert_eq!(resolved.caller_headers.len(), 1);
    assert_eq!(
        file.invalid.first().unwrap().to_string(),
        r#"`wrong` is skipped: `isolation` must be "shared", "caller" or "session""#
    );
}
