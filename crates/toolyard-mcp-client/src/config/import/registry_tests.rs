//! Import of registry files.

use super::{
    tests::{describe, import_file},
    *,
};

#[test]
fn the_current_schema_is_read() {
    let imported = import_file(
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
    insta::assert_snapshot!(describe(&imported), @r#"
    [brave-search]
    # set the environment variable `BRAVE_API_KEY` (your key)
    # `EXTRA` is optional
    # the file passes options to `npx`: review them
    # set the environment variable `BRAVE_SEARCH_ROOT_FOLDER`
    # set the environment variable `BRAVE_SEARCH_KEY`
    # the registry offers 2 transports; this is the first supported one
    command = "npx"
    args = ["-y", "--registry", "https://registry.example.org", "@ann/brave-search@1.0.2", "${BRAVE_SEARCH_ROOT_FOLDER}", "--mode", "fast", "--read-only", "--key", "${BRAVE_SEARCH_KEY}"]

    [env]
    BRAVE_API_KEY = "${BRAVE_API_KEY}"
    REGION = "eu"

    [weather]
    # set the environment variable `WEATHER_TOKEN`
    # set the environment variable `WEATHER_X_KEY`
    # set the environment variable `WEATHER_TENANT`
    # the registry offers 2 transports; this is the first supported one
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

    `web` is skipped: the package serves HTTP; start it and add its `url`
    `evil` is skipped: the package has no valid name
    `none` is skipped: no package and no remote
    "#);
}

#[test]
fn snake_case_is_read() {
    let imported = import_file(
        Client::Registry,
        r#"{"name": "io.github.ann/excel", "version_detail": {"version": "0.1.8"},
          "packages": [{"registry_name": "pypi", "name": "excel-mcp-server", "version": "0.1.8", "runtime_hint": "uvx",
            "package_arguments": [{"type": "positional", "value": "stdio"}],
            "environment_variables": [{"name": "EXCEL_FILES_PATH", "is_required": true}]}]}"#,
    );
    insta::assert_snapshot!(describe(&imported), @r#"
    [excel]
    # set the environment variable `EXCEL_FILES_PATH`
    command = "uvx"
    args = ["excel-mcp-server@0.1.8", "stdio"]

    [env]
    EXCEL_FILES_PATH = "${EXCEL_FILES_PATH}"
    "#);
}

#[test]
fn resolved_inputs_are_not_expanded_again() {
    let imported = import_file(
        Client::Registry,
        r#"{"name": "a/evil", "remotes": [{"type": "sse", "url": "https://example.org/{a}/${HOME}/{c}/{nobody}",
          "variables": {"a": {"isRequired": true}, "EVIL_A": {"default": "{AWS_SECRET}"}, "HOME": {"default": "{b}"},
            "c": {"default": "${AWS_SECRET}"}}}]}"#,
    );
    let url = imported.servers[0].settings.url.as_deref();
    assert_eq!(url, Some("https://example.org/${EVIL_A}/$${b}/$${AWS_SECRET}/{nobody}"));
    assert_eq!(imported.servers[0].settings.variables().into_iter().collect::<Vec<_>>(), ["EVIL_A"]);
}
