//! A file of every client as its documentation has it, what comes of it, and files made to do harm.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// A made-up secret without looks of its own, for places that are for secrets.
const CANARY: &str = "Swordfish-canary";

fn taken(client: Client, text: &str) -> Imported {
    read(client, text, Place { workspace: Some("/home/ann/project") }).unwrap()
}

/// What was taken over, as it would be written, with notes as comments.
fn told(imported: &Imported) -> String {
    let mut text = String::new();
    for server in &imported.servers {
        let _ = writeln!(text, "[{}]", server.name);
        server.notes.iter().for_each(|note| writeln!(text, "# {note}").unwrap());
        let _ = writeln!(text, "{}", toml::to_string(&server.settings).unwrap());
    }
    imported.problems.iter().for_each(|problem| writeln!(text, "{problem}").unwrap());
    assert!(!text.contains(CANARY) && !format!("{imported:?}").contains(CANARY), "{text}\n{imported:?}");
    text
}

#[test]
fn claude_desktop() {
    let imported = taken(
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
    insta::assert_snapshot!(told(&imported), @r#"
    [filesystem]
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-filesystem", "/home/ann/Documents"]

    [brave-search]
    # the value of env.BRAVE_API_KEY was not copied: set the environment variable `BRAVE_API_KEY` to it
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-brave-search"]

    [env]
    BRAVE_API_KEY = "${BRAVE_API_KEY}"
    "#);
}

#[test]
fn claude_code_with_servers_of_single_projects() {
    let imported = taken(
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
    insta::assert_snapshot!(told(&imported), @r#"
    [github]
    url = "https://api.example.org/mcp/"
    transport = "http"

    [headers]
    Authorization = "Bearer ${GITHUB_TOKEN}"

    [legacy]
    # `headersHelper` was left out: programs that make headers are not run; use `${VAR}` in `headers`
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
    # it was only for the project /home/ann/shop
    # the value of env.DATABASE_URL was not copied: set the environment variable `DATABASE_URL` to it
    command = "uvx"
    args = ["postgres-mcp"]

    [env]
    DATABASE_URL = "${DATABASE_URL}"

    [github-2]
    # it was called `github`
    # it was only for the project /home/ann/blog
    # the value of args[4] was not copied: set the environment variable `GITHUB_2_E` to it
    command = "docker"
    args = ["run", "-i", "--rm", "-e", "${GITHUB_2_E}", "image"]

    `socket` is left out: WebSocket is no transport of the protocol; ask for an `http` address
    "#);
}

#[test]
fn cursor() {
    let imported = taken(
        Client::Cursor,
        r#"{"mcpServers": {
            "Local Server": {"command": "${workspaceFolder}/.venv/bin/python", "args": ["${userHome}/server.py"],
                "env": {"API_KEY": "${env:API_KEY}"}, "envFile": "${workspaceFolder}/.env"},
            "remote": {"url": "https://example.org/mcp?api_key=Swordfish-canary&mode=all",
                "auth": {"CLIENT_ID": "abc", "CLIENT_SECRET": "Swordfish-canary", "scopes": ["read"]}},
            "zapier": {"url": "https://actions.example.org/mcp/sk-ak-Zq9x8w7v6u5t4s3r2q1p0/sse"}
        }}"#,
    );
    assert!(!told(&imported).contains("Zq9x8w7v6u5t4s3r2q1p0"));
    insta::assert_snapshot!(told(&imported), @r#"
    [local-server]
    # it was called `Local Server`
    # `envFile` was left out: files with variables are not read; set the variables themselves
    command = "/home/ann/project/.venv/bin/python"
    args = ["${HOME}/server.py"]

    [env]
    API_KEY = "${API_KEY}"

    [remote]
    # the value of oauth.client_secret was not copied: set the environment variable `REMOTE_CLIENT_SECRET` to it
    # the value of url was not copied: set the environment variable `REMOTE_API_KEY` to it
    url = "https://example.org/mcp?api_key=${REMOTE_API_KEY}&mode=all"

    [oauth]
    client_id = "abc"
    client_secret = "${REMOTE_CLIENT_SECRET}"
    scopes = ["read"]

    [zapier]
    # the value of url was not copied: set the environment variable `ZAPIER_TOKEN` to it
    url = "https://actions.example.org/mcp/${ZAPIER_TOKEN}/sse"
    "#);
}

#[test]
fn vs_code() {
    let imported = taken(
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
    insta::assert_snapshot!(told(&imported), @r#"
    [perplexity]
    # `sandboxEnabled` was left out: servers are confined here by rules of our own
    # VS Code asks for a value here: set the environment variable `PERPLEXITY_KEY`
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

    `socket` is left out: server `socket`: `url` must begin with `http://` or `https://`
    "#);
    for older in
        [r#"{"mcp": {"servers": {"a": {"command": "b"}}}}"#, r#"{"mcp.servers": {"a": {"command": "b"}}}"#]
    {
        assert_eq!(taken(Client::VsCode, older).servers.len(), 1, "{older}");
    }
}

#[test]
fn codex() {
    let imported = taken(
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
    insta::assert_snapshot!(told(&imported), @r#"
    [docs]
    # `required` was left out: a server that is down never stops the others here
    # the value of env.SECRET_KEY was not copied: set the environment variable `SECRET_KEY` to it
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
    # the value of headers.X-Api-Key was not copied: set the environment variable `FIGMA_X_API_KEY` to it
    url = "https://mcp.example.org/mcp"

    [headers]
    Authorization = "Bearer ${FIGMA_OAUTH_TOKEN}"
    X-Api-Key = "${FIGMA_X_API_KEY}"
    X-Figma-Region = "us-east-1"
    X-Team = "${FIGMA_TEAM}"

    [oauth]
    scopes = ["files:read"]

    [old]
    # the value of headers.Authorization was not copied: set the environment variable `OLD_TOKEN` to it
    url = "https://old.example.org/mcp"
    startup_timeout = "1s 500ms"

    [headers]
    Authorization = "Bearer ${OLD_TOKEN}"

    `bad` is left out: a header comes from something that is no environment variable
    "#);
}

#[test]
fn gemini() {
    let imported = taken(
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
    insta::assert_snapshot!(told(&imported), @r#"
    [python]
    # `trust` was left out: trust is decided here: `trusted = true`
    command = "python"
    args = ["-m", "server", "--port", "8080"]
    cwd = "./tools"
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
    # the value of headers.Authorization was not copied: set the environment variable `HTTP_TOKEN` to it
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
fn registry_of_today() {
    let imported = taken(
        Client::Registry,
        r#"{"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
          "servers": [
          {"server": {"name": "io.github.ann/brave-search", "version": "1.0.2",
            "packages": [{"registryType": "npm", "identifier": "@ann/brave-search", "version": "1.0.2", "transport": {"type": "stdio"},
              "runtimeArguments": [{"type": "named", "name": "--registry", "value": "https://registry.example.org"}],
              "packageArguments": [{"type": "positional", "valueHint": "root folder", "isRequired": true},
                {"type": "named", "name": "--mode", "default": "fast"}, {"type": "named", "name": "--verbose"},
                {"type": "named", "name": "--read-only", "format": "boolean", "value": "true"},
                {"type": "named", "name": "--key", "isSecret": true, "value": "Swordfish-canary"}],
              "environmentVariables": [{"name": "BRAVE_API_KEY", "description": "your key", "isRequired": true, "isSecret": true},
                {"name": "REGION", "default": "eu"}, {"name": "EXTRA"}]}],
            "remotes": [{"type": "sse", "url": "https://example.org/sse"}]}},
          {"server": {"name": "org.example/weather",
            "packages": [{"registryType": "mcpb", "identifier": "https://example.org/x.mcpb", "transport": {"type": "stdio"}}],
            "remotes": [{"type": "streamable-http", "url": "https://{tenant}.example.org/mcp",
              "variables": {"tenant": {"isRequired": true}},
              "headers": [{"name": "Authorization", "value": "Bearer {token}", "variables": {"token": {"isSecret": true, "isRequired": true}}},
                          {"name": "X-Key", "isSecret": true, "isRequired": true}]}]}},
          {"server": {"name": "org.example/image",
            "packages": [{"registryType": "oci", "identifier": "docker.io/ann/image:1.0", "transport": {"type": "stdio"},
              "runtimeHint": "rm -rf", "environmentVariables": [{"name": "TOKEN", "isSecret": true}]}]}},
          {"server": {"name": "org.example/web", "packages": [{"registryType": "pypi", "identifier": "web",
             "transport": {"type": "streamable-http", "url": "http://localhost:8080"}}]}},
          {"server": {"name": "org.example/evil", "packages": [{"registryType": "npm", "identifier": "--call=x"}]}},
          {"server": {"name": "org.example/none"}}
        ]}"#,
    );
    insta::assert_snapshot!(told(&imported), @r#"
    [brave-search]
    # set the environment variable `BRAVE_API_KEY` (your key)
    # `EXTRA` may be set as well
    # set the environment variable `BRAVE_SEARCH_ROOT_FOLDER`
    # set the environment variable `BRAVE_SEARCH_KEY`
    # the registry offers 2 ways to reach it; this is the first that fits
    command = "npx"
    args = ["-y", "--registry", "https://registry.example.org", "@ann/brave-search@1.0.2", "${BRAVE_SEARCH_ROOT_FOLDER}", "--mode", "fast", "--read-only", "--key", "${BRAVE_SEARCH_KEY}"]

    [env]
    BRAVE_API_KEY = "${BRAVE_API_KEY}"
    REGION = "eu"

    [weather]
    # set the environment variable `WEATHER_TOKEN`
    # set the environment variable `WEATHER_X_KEY`
    # set the environment variable `WEATHER_TENANT`
    # the registry offers 2 ways to reach it; this is the first that fits
    url = "https://${WEATHER_TENANT}.example.org/mcp"
    transport = "http"

    [headers]
    Authorization = "Bearer ${WEATHER_TOKEN}"
    X-Key = "${WEATHER_X_KEY}"

    [image]
    # set the environment variable `TOKEN`
    command = "docker"
    args = ["run", "-i", "--rm", "-e", "TOKEN", "docker.io/ann/image:1.0"]

    [env]
    TOKEN = "${TOKEN}"

    `web` is left out: its package opens an address of its own; start it and add its `url`
    `evil` is left out: its package has no usable name
    `none` is left out: it has neither a package nor an address
    "#);
}

#[test]
fn registry_in_snake_case() {
    let imported = taken(
        Client::Registry,
        r#"{"name": "io.github.ann/excel", "version_detail": {"version": "0.1.8"},
          "packages": [{"registry_name": "pypi", "name": "excel-mcp-server", "version": "0.1.8", "runtime_hint": "uvx",
            "package_arguments": [{"type": "positional", "value": "stdio"}],
            "environment_variables": [{"name": "EXCEL_FILES_PATH", "is_required": true}]}]}"#,
    );
    insta::assert_snapshot!(told(&imported), @r#"
    [excel]
    # set the environment variable `EXCEL_FILES_PATH`
    command = "uvx"
    args = ["excel-mcp-server@0.1.8", "stdio"]

    [env]
    EXCEL_FILES_PATH = "${EXCEL_FILES_PATH}"
    "#);
}

#[test]
fn every_client_has_a_place_on_every_system() {
    for client in Client::ALL {
        for system in [System::Linux, System::MacOs, System::Windows] {
            assert!(client.candidates_on(system).count() > 0, "{client:?} {system:?}");
        }
        assert!(client.candidates().iter().all(|candidate| !candidate.path.starts_with(['/', '~'])));
    }
}

#[test]
fn one_variable_never_stands_for_two_secrets() {
    let imported = taken(
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
    insta::assert_snapshot!(told(&imported), @"");
}

#[test]
fn equal_servers_are_one_and_others_are_told_apart() {
    let file = |text: &str| taken(Client::Cursor, text).servers;
    let merged = merge([
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
        .map(|merged| format!("{} {:?} {:?}", merged.server.name, merged.from, merged.server.settings.env))
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
    insta::assert_snapshot!(notes, @"the value of env.TOKEN was not copied: set the environment variable `HUB_2_TOKEN` to it");
}

#[test]
fn hostile_files_end_in_words() {
    let deep = format!("{{\"mcpServers\": {}", "{\"a\":".repeat(100_000));
    let large = format!("{{\"mcpServers\": {{\"a\": {{\"command\": \"{}\"}}}}}}", CANARY.repeat(700_000));
    let wrong = format!(
        "{{\"mcpServers\": {{\"a\": {{\"command\": 1, \"env\": \"{CANARY}\"}}, \"b\": {{\"command\": \"x\", \
         \"env\": {{\"A\": [\"{CANARY}\"]}}}}, \"c\": \"{CANARY}\", \"d\": {{\"url\": \"{CANARY}\"}}}}}}"
    );
    for client in Client::ALL {
        let read = |text: &str| read(client, text, Place::default());
        assert!(read(&deep).is_err(), "{client:?}");
        let outcomes = [
            read(&large),
            read(&wrong),
            read(""),
            read("{}"),
            read("[]"),
            read("null"),
            read("mcp_servers = 1"),
        ];
        for outcome in outcomes {
            let message = outcome.as_ref().map_or_else(ToString::to_string, |imported| {
                imported.problems.iter().map(|problem| format!("{problem}\n")).collect()
            });
            assert!(!message.contains(CANARY), "{client:?}: {message}");
            assert!(!format!("{outcome:?}").contains(&CANARY.repeat(8)), "{client:?}");
        }
    }
}

fn any_node() -> impl Strategy<Value = serde_json::Value> {
    let name = prop_oneof![
        "command|args|env|url|httpUrl|headers|type|oauth|timeout|env_vars|packages|remotes|name|value|variables",
        "registryType|identifier|packageArguments|environmentVariables|default|isSecret|isRequired|transport",
        ".{0,6}"
    ];
    let text = prop_oneof![
        "stdio|http|npm|pypi|oci|named",
        "https://[a-z]{1,5}/.{0,9}",
        "[$][{]?[a-zA-Z:-]{0,9}[}]?",
        ".{0,12}"
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        text.prop_map(serde_json::Value::from)
    ];
    leaf.prop_recursive(5, 48, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            proptest::collection::btree_map(name.clone(), inner, 0..8)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_text_breaks_a_reader(text in "([\\[\\]{}\",:=]|mcpServers|command|.){0,60}") {
        for client in Client::ALL {
            let _ = read(client, &text, Place::default());
        }
    }

    #[test]
    fn whatever_is_taken_over_can_be_used(servers in proptest::collection::btree_map(".{0,9}", any_node(), 0..4)) {
        let list: Vec<_> = servers.values().collect();
        let texts = [
            serde_json::json!({"mcpServers": servers, "projects": {"/p": {"mcpServers": servers}}}).to_string(),
            serde_json::json!({ "servers": servers }).to_string(),
            serde_json::json!({ "servers": list }).to_string(),
            toml::to_string(&serde_json::json!({ "mcp_servers": servers })).unwrap_or_default(),
        ];
        for client in Client::ALL {
            for text in &texts {
                let Ok(imported) = read(client, text, Place::default()) else { continue };
                for server in &imported.servers {
                    let config = server.settings.clone().into_config(&server.name, std::path::Path::new("/"));
                    prop_assert!(config.is_ok(), "{config:?} from {text}");
                    let written = toml::to_string(&server.settings).unwrap();
                    prop_assert_eq!(&toml::from_str::<ServerSettings>(&written).unwrap(), &server.settings);
                }
                let merged = merge([("a".to_owned(), imported.servers.clone()), ("b".to_owned(), imported.servers)]);
                let plan = crate::config::plan_import("", &merged, crate::config::OnDifference::Keep);
                prop_assert!(plan.is_ok());
            }
        }
    }
}
