//! Import of a documented example file of every client.

use std::fmt::Write as _;

use super::*;

/// A secret that is recognized only by the name of its field.
pub(super) const CANARY: &str = "Swordfish-canary";

pub(super) fn import_file(client: Client, text: &str) -> ImportedFile {
    import_servers(
        client,
        text,
        FileContext { workspace: Some("/home/ann/project"), ..FileContext::default() },
    )
    .unwrap()
}

/// The imported servers as TOML, with notes as comments.
pub(super) fn describe(imported: &ImportedFile) -> String {
    let mut text = String::new();
    for server in &imported.servers {
        let _ = writeln!(text, "[{}]", server.name);
        server.notes.iter().for_each(|note| writeln!(text, "# {note}").unwrap());
        let _ = writeln!(text, "{}", toml::to_string(&server.settings).unwrap());
    }
    imported.invalid.iter().for_each(|problem| writeln!(text, "{problem}").unwrap());
    assert!(!text.contains(CANARY) && !format!("{imported:?}").contains(CANARY), "{text}\n{imported:?}");
    text
}

#[test]
fn claude_desktop_files_are_imported() {
    let imported = import_file(
        Client::ClaudeDesktop,
        r#"{
          "globalShortcut": "",
          "mcpServers": {
            "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/ann/Documents"]},
            "brave-search": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-brave-search"],
                             "env": {"BRAVE_API_KEY": "Swordfish-canary"}}
          }
        }"#,
    );
    insta::assert_snapshot!(describe(&imported), @r#"
    [filesystem]
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-filesystem", "/home/ann/Documents"]

    [brave-search]
    # the secret in env.BRAVE_API_KEY was not copied: set the environment variable `BRAVE_API_KEY`
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-brave-search"]

    [env]
    BRAVE_API_KEY = "${BRAVE_API_KEY}"
    "#);
}

#[test]
fn claude_code_files_are_imported_with_servers_of_single_projects() {
    let imported = import_file(
        Client::ClaudeCode,
        r#"{
          "numStartups": 42,
          "mcpServers": {
            "github": {"type": "http", "url": "https://api.example.org/mcp/", "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"}},
            "legacy": {"type": "sse", "url": "${BASE:-https://example.org}/sse", "headersHelper": "make-headers.sh"},
            "figma": {"type": "http", "url": "https://mcp.example.org/mcp", "oauth": {"clientId": "toolyard", "callbackPort": 8123, "scopes": "read write"}},
            "socket": {"type": "ws", "url": "wss://example.org"}
          },
          "projects": {
            "/home/ann/shop": {"allowedTools": [], "history": [{"display": "x"}],
              "mcpServers": {"postgres": {"type": "stdio", "command": "uvx", "args": ["postgres-mcp"],
                "env": {"DATABASE_URL": "postgresql://ann:Swordfish-canary@localhost/shop"}}}},
            "/home/ann/blog": {"mcpServers": {"github": {"command": "docker", "args": ["run", "-i", "--rm", "-e", "GITHUB_TOKEN=Swordfish-canary", "image"]}}}
          }
        }"#,
    );
    insta::assert_snapshot!(describe(&imported), @r#"
    [github]
    url = "https://api.example.org/mcp/"
    transport = "http"

    [headers]
    Authorization = "Bearer ${GITHUB_TOKEN}"

    [legacy]
    # `headersHelper` was ignored: header programs are not supported; use `${VAR}` in `headers`
    url = "${BASE:-https://example.org}/sse"
    transport = "sse"

    [figma]
    url = "https://mcp.example.org/mcp"
    transport = "http"

    [oauth]
    client_id = "toolyard"
    scopes = ["read", "write"]
    callback_port = 8123

    [postgres]
    # configured only for the project /home/ann/shop
    # the secret in env.DATABASE_URL was not copied: set the environment variable `DATABASE_URL`
    command = "uvx"
    args = ["postgres-mcp"]

    [env]
    DATABASE_URL = "${DATABASE_URL}"

    [github-2]
    # configured only for the project /home/ann/blog
    # the secret in args[4] was not copied: set the environment variable `GITHUB_2_GITHUB_TOKEN`
    command = "docker"
    args = ["run", "-i", "--rm", "-e", "GITHUB_TOKEN=${GITHUB_2_GITHUB_TOKEN}", "image"]

    `socket` is skipped: WebSocket is not an MCP transport; use an `http` URL
    "#);
}

#[test]
fn cursor_files_are_imported() {
    let imported = import_file(
        Client::Cursor,
        r#"{"mcpServers": {
            "Local Server": {"command": "${workspaceFolder}/.venv/bin/python", "args": ["${userHome}/server.py"],
                "env": {"API_KEY": "${env:API_KEY}"}, "envFile": "${workspaceFolder}/.env"},
            "remote": {"url": "https://example.org/mcp?api_key=Swordfish-canary&mode=all",
                "auth": {"CLIENT_ID": "abc", "CLIENT_SECRET": "Swordfish-canary", "scopes": ["read"]}},
            "zapier": {"url": "https://actions.example.org/mcp/sk-ak-Zq9x8w7v6u5t4s3r2q1p0/sse"}
        }}"#,
    );
    assert!(!describe(&imported).contains("Zq9x8w7v6u5t4s3r2q1p0"));
    insta::assert_snapshot!(describe(&imported), @r#"
    [local-server]
    # `envFile` was ignored: set its variables in `env`
    command = "/home/ann/project/.venv/bin/python"
    args = ["${HOME}/server.py"]

    [env]
    API_KEY = "${API_KEY}"

    [remote]
    # the secret in oauth.client_secret was not copied: set the environment variable `REMOTE_CLIENT_SECRET`
    # the secret in url was not copied: set the environment variable `REMOTE_API_KEY`
    url = "https://example.org/mcp?api_key=${REMOTE_API_KEY}&mode=all"

    [oauth]
    client_id = "abc"
    client_secret = "${REMOTE_CLIENT_SECRET}"
    scopes = ["read"]

    [zapier]
    # the secret in url was not copied: set the environment variable `ZAPIER_TOKEN`
    url = "https://actions.example.org/mcp/${ZAPIER_TOKEN}/sse"
    "#);
}

#[test]
fn vs_code_files_are_imported() {
    let imported = import_file(
        Client::VsCode,
        r#"{
          // asked once
          "inputs": [{"type": "promptString", "id": "perplexity-key", "description": "API key", "password": true}],
          "servers": {
            "perplexity": {"type": "stdio", "command": "npx", "args": ["-y", "server-perplexity-ask"],
              "env": {"PERPLEXITY_API_KEY": "${input:perplexity-key}"}, "sandboxEnabled": true},
            "github": {"type": "http", "url": "https://api.example.org/mcp/", "oauth": {"clientId": "id"}},
            "socket": {"type": "http", "url": "unix:///run/server.sock#/mcp"},
            "dev": {"command": "node", "args": ["build${/}index.js"], "cwd": "${workspaceFolder}", "dev": {"watch": "x"},},
          },
        }"#,
    );
    insta::assert_snapshot!(describe(&imported), @r#"
    [perplexity]
    # `sandboxEnabled` was ignored: sandboxing is configured separately
    # VS Code prompts for this value: set the environment variable `PERPLEXITY_KEY`
    command = "npx"
    args = ["-y", "server-perplexity-ask"]

    [env]
    PERPLEXITY_API_KEY = "${PERPLEXITY_KEY}"

    [github]
    url = "https://api.example.org/mcp/"

    [oauth]
    client_id = "id"

    [dev]
    command = "node"
    args = ["build/index.js"]
    cwd = "/home/ann/project"

    `socket` is skipped: server `socket`: `url` must start with `http://` or `https://`
    "#);
    for older in
        [r#"{"mcp": {"servers": {"a": {"command": "b"}}}}"#, r#"{"mcp.servers": {"a": {"command": "b"}}}"#]
    {
        assert_eq!(import_file(Client::VsCode, older).servers.len(), 1, "{older}");
    }
}

#[test]
fn codex_files_are_imported() {
    let imported = import_file(
        Client::Codex,
        r#"
        model = "x"
        [mcp_servers.docs]
        command = "npx"
        args = ["-y", "docs-mcp", "${HOME}"]
        env_vars = ["LOCAL_TOKEN", { name = "REMOTE_TOKEN", source = "remote" }]
        startup_timeout_sec = 20
        tool_timeout_sec = 45.5
        enabled = false
        required = true
        enabled_tools = ["open"]
        disabled_tools = ["shot"]
        [mcp_servers.docs.env]
        SECRET_KEY = "Swordfish-canary"
        [mcp_servers.figma]
        url = "https://mcp.example.org/mcp"
        bearer_token_env_var = "FIGMA_OAUTH_TOKEN"
        http_headers = { "X-Figma-Region" = "us-east-1", "X-Api-Key" = "Swordfish-canary" }
        env_http_headers = { "X-Team" = "FIGMA_TEAM" }
        scopes = ["files:read"]
        [mcp_servers.bad]
        url = "https://mcp.example.org/mcp"
        bearer_token_env_var = "not a name"
        [mcp_servers.old]
        url = "https://old.example.org/mcp"
        bearer_token = "Swordfish-canary"
        startup_timeout_ms = 1500
        "#,
    );
    insta::assert_snapshot!(describe(&imported), @r#"
    [docs]
    # `required` was ignored: failures are isolated per server
    # the secret in env.SECRET_KEY was not copied: set the environment variable `SECRET_KEY`
    command = "npx"
    args = ["-y", "docs-mcp", "$${HOME}"]
    inherit = ["LOCAL_TOKEN", "REMOTE_TOKEN"]
    enabled = false
    startup_timeout = "20s"
    call_timeout = "45s 500ms"
    tools = ["open"]
    without_tools = ["shot"]

    [env]
    SECRET_KEY = "${SECRET_KEY}"

    [figma]
    # the secret in headers.X-Api-Key was not copied: set the environment variable `FIGMA_X_API_KEY`
    url = "https://mcp.example.org/mcp"

    [headers]
    Authorization = "Bearer ${FIGMA_OAUTH_TOKEN}"
    X-Api-Key = "${FIGMA_X_API_KEY}"
    X-Figma-Region = "us-east-1"
    X-Team = "${FIGMA_TEAM}"

    [oauth]
    scopes = ["files:read"]

    [old]
    # the secret in headers.Authorization was not copied: set the environment variable `OLD_TOKEN`
    url = "https://old.example.org/mcp"
    startup_timeout = "1s 500ms"

    [headers]
    Authorization = "Bearer ${OLD_TOKEN}"

    `bad` is skipped: a header refers to an invalid environment variable name
    "#);
}

#[test]
fn gemini_files_are_imported() {
    let imported = import_file(
        Client::Gemini,
        r#"{
          "mcp": {"excluded": ["off"]},
          "mcpServers": {
            "python": {"command": "python", "args": ["-m", "server", "--port", "8080"], "cwd": "./tools",
              "env": {"DATABASE_URL": "$DB_CONNECTION_STRING", "API_KEY": "${EXTERNAL_API_KEY}"}, "timeout": 15000, "trust": true,
              "includeTools": ["safe"], "excludeTools": ["rm"]},
            "sse": {"url": "http://localhost:8080/sse"},
            "http": {"httpUrl": "http://localhost:3000/mcp", "headers": {"Authorization": "Bearer Swordfish-canary"}},
            "typed": {"url": "http://localhost:3000/mcp", "type": "http"},
            "off": {"command": "x"}
          }
        }"#,
    );
    assert!(imported.servers.iter().all(|server| !server.settings.trusted));
    insta::assert_snapshot!(describe(&imported), @r#"
    [python]
    # `trust` was ignored: set `trusted = true` instead
    command = "python"
    args = ["-m", "server", "--port", "8080"]
    cwd = "/home/ann/project/tools"
    call_timeout = "15s"
    tools = ["safe"]
    without_tools = ["rm"]

    [env]
    API_KEY = "${EXTERNAL_API_KEY}"
    DATABASE_URL = "${DB_CONNECTION_STRING}"

    [sse]
    url = "http://localhost:8080/sse"
    transport = "sse"

    [http]
    # the secret in headers.Authorization was not copied: set the environment variable `HTTP_TOKEN`
    url = "http://localhost:3000/mcp"
    transport = "http"

    [headers]
    Authorization = "Bearer ${HTTP_TOKEN}"

    [typed]
    url = "http://localhost:3000/mcp"
    transport = "http"

    [off]
    command = "x"
    enabled = false
    "#);
}

#[test]
fn a_file_does_not_decide_whether_callers_share_a_server() {
    let imported = import_file(
        Client::Cursor,
        r#"{"mcpServers": {"a": {"command": "x", "isolation": "shared"}, "b": {"command": "x", "isolation": "session"}}}"#,
    );
    insta::assert_snapshot!(describe(&imported), @r#"
    [a]
    # `isolation` was ignored: set it in your settings instead
    command = "x"

    [b]
    # `isolation` was ignored: set it in your settings instead
    command = "x"
    "#);
}

#[test]
fn every_client_has_a_path_on_every_system() {
    for client in Client::ALL {
        for system in [OperatingSystem::Linux, OperatingSystem::MacOs, OperatingSystem::Windows] {
            assert!(client.config_paths_on(system).count() > 0, "{client:?} {system:?}");
        }
        assert!(client.config_paths().iter().all(|path| !path.path.starts_with(['/', '~'])));
    }
}
