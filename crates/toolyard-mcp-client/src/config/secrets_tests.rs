//! Secrets of many formats in every field are replaced; ordinary values stay.

use serde_json::Value;

use super::*;
use crate::config::{IssuerClientSettings, OauthSettings};

/// The example secrets of the redaction rules that are recognized without context.
fn canaries() -> Vec<String> {
    let rules: Value =
        serde_json::from_str(include_str!("../../../toolyard-core/src/redact/rules.json")).unwrap();
    let example = |format: &Value| {
        let is_alone = format["example"].get("left").is_none() && format["example"].get("right").is_none();
        let parts = format["example"]["secret"].as_array()?;
        is_alone.then(|| parts.iter().filter_map(Value::as_str).collect::<String>())
    };
    rules["formats"].as_array().unwrap().iter().filter_map(example).collect()
}

fn extract(mut settings: ServerSettings) -> (String, Vec<ExtractedSecret>) {
    let found = extract_secrets(&mut settings, "github");
    (toml::to_string(&settings).unwrap(), found)
}

fn program(args: &[&str]) -> ServerSettings {
    ServerSettings {
        command: Some("npx".to_owned()),
        args: args.iter().map(|&text| text.to_owned()).collect(),
        ..ServerSettings::default()
    }
}

/// Settings with the secret in each possible field.
fn settings_with(secret: &str) -> Vec<ServerSettings> {
    let escaped = Template::escape(secret);
    let http = |url: &str, headers: &[(&str, String)]| ServerSettings {
        url: Some(url.to_owned()),
        headers: headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        ..ServerSettings::default()
    };
    let env =
        |name: &str, value: String| ServerSettings { env: [(name.to_owned(), value)].into(), ..program(&[]) };
    vec![
        env("VALUE", escaped.clone()),
        env("API_KEY", escaped.clone()),
        env("VALUE", format!("${{TOKEN:-{escaped}}}")),
        env("VALUE", format!("${{A}} {escaped} ${{B}}")),
        http("https://example.org/mcp", &[("Authorization", format!("Bearer {escaped}"))]),
        http("https://example.org/mcp", &[("X-Custom", escaped.clone())]),
        http(&format!("https://example.org/mcp?key={escaped}&x=1"), &[]),
        http(&format!("https://example.org/mcp/{escaped}/sse"), &[]),
        http(&format!("https://ann:{escaped}@example.org/mcp"), &[]),
        program(&["-y", "server", "--api-key", &escaped]),
        program(&["-y", "server", &format!("--api-key={escaped}")]),
        program(&["run", "-e", &format!("VALUE={escaped}"), "image"]),
        program(&[
            "mcp-remote",
            "https://example.org",
            "--header",
            &format!("Authorization: Bearer {escaped}"),
        ]),
        program(&["mcp-remote", "https://example.org", "--header", &format!("X-Thing:{escaped}")]),
        program(&["server", &escaped]),
        program(&["-c", &format!("export VALUE={escaped}; exec server")]),
        ServerSettings {
            oauth: Some(OauthSettings { client_secret: Some(escaped.clone()), ..OauthSettings::default() }),
            ..http("https://example.org", &[])
        },
        ServerSettings {
            oauth: Some(OauthSettings {
                id_jag: Some(IssuerClientSettings {
                    client_id: "gateway".to_owned(),
                    client_secret: Some(escaped),
                }),
                ..OauthSettings::default()
            }),
            ..http("https://example.org", &[])
        },
    ]
}

#[test]
fn no_secret_remains_in_any_field() {
    let canaries = canaries();
    assert!(canaries.len() >= 50, "{}", canaries.len());
    for secret in canaries.iter().filter(|secret| !secret.contains('}')) {
        let longest_line: String =
            secret.lines().max_by_key(|line| line.len()).unwrap_or_default().to_owned();
        for (index, settings) in settings_with(secret).into_iter().enumerate() {
            let debug = format!("{settings:?} {:?}", settings.warnings("github"));
            let (text, found) = extract(settings);
            let all = format!("{text}{found:?}{debug}");
            assert!(!all.contains(&longest_line), "{index}: {longest_line} is left in {all}");
            assert!(!found.is_empty(), "{index}: {secret}");
            let again: ServerSettings = toml::from_str(&text).unwrap();
            assert_eq!(extract(again).1, [], "{index}: {text}");
        }
    }
}

#[test]
fn values_of_secret_keys_are_extracted() {
    let settings = ServerSettings {
        env: [
            ("DB_PASSWORD", "secret"),
            ("GITHUB_TOKEN", "<your token>"),
            ("PLAIN", "value"),
            ("MODEL", "claude-3-5-sonnet-20241022"),
            ("AUTH_TOKEN_ENABLED", "true"),
            ("REGION", "eu-central-1"),
            ("DEPLOYMENT", "a8f5f167f44f4964e6c998dee827110c"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        ..program(&[
            "-y",
            "@scope/server-name@1.2.3",
            "--port",
            "8080",
            "--token",
            "${TOKEN}",
            "--password",
            "swordfish",
            "/nix/store/9k2mz8x7v6b5n4m3l2k1j0h9g8f7d6s5-server/bin",
        ])
    };
    let (text, found) = extract(settings);
    insta::assert_snapshot!(text, @r#"
    command = "npx"
    args = ["-y", "@scope/server-name@1.2.3", "--port", "8080", "--token", "${TOKEN}", "--password", "${GITHUB_PASSWORD}", "/nix/store/9k2mz8x7v6b5n4m3l2k1j0h9g8f7d6s5-server/bin"]

    [env]
    AUTH_TOKEN_ENABLED = "true"
    DB_PASSWORD = "${DB_PASSWORD}"
    DEPLOYMENT = "${DEPLOYMENT}"
    GITHUB_TOKEN = "${GITHUB_TOKEN}"
    MODEL = "claude-3-5-sonnet-20241022"
    PLAIN = "value"
    REGION = "eu-central-1"
    "#);
    insta::assert_snapshot!(format!("{found:#?}"), @r#"
    [
        ExtractedSecret {
            field: "env.DB_PASSWORD",
            variable: "DB_PASSWORD",
            ..
        },
        ExtractedSecret {
            field: "env.DEPLOYMENT",
            variable: "DEPLOYMENT",
            ..
        },
        ExtractedSecret {
            field: "env.GITHUB_TOKEN",
            variable: "GITHUB_TOKEN",
            ..
        },
        ExtractedSecret {
            field: "args[7]",
            variable: "GITHUB_PASSWORD",
            ..
        },
    ]
    "#);
}

#[test]
fn schemes_and_references_are_kept() {
    let extracted_header = |name: &str, value: &str| {
        let headers = [(name.to_owned(), value.to_owned())].into();
        let url = Some("https://example.org/v1/mcp?toolset=all&page=2".to_owned());
        let mut settings = ServerSettings { url, headers, ..ServerSettings::default() };
        extract_secrets(&mut settings, "github");
        assert_eq!(settings.url.as_deref(), Some("https://example.org/v1/mcp?toolset=all&page=2"));
        settings.headers.into_values().next().unwrap()
    };
    assert_eq!(extracted_header("Authorization", "Bearer swordfish"), "Bearer ${GITHUB_TOKEN}");
    assert_eq!(extracted_header("Authorization", "Bearer ${MINE}"), "Bearer ${MINE}");
    assert_eq!(extracted_header("Authorization", "${MINE}"), "${MINE}");
    assert_eq!(extracted_header("Authorization", "Bearer ${MINE:-swordfish}"), "Bearer ${MINE}");
    assert_eq!(extracted_header("X-Api-Key", "swordfish"), "${GITHUB_X_API_KEY}");
    assert_eq!(extracted_header("Accept", "application/json"), "application/json");
    assert_eq!(extracted_header("X-MCP-Toolsets", "repos,issues"), "repos,issues");
}

#[test]
fn values_that_results_may_contain_are_no_secrets() {
    let token = "a1b2c3d4e5f6a7b8c9d0";
    for (key, value) in [
        ("MODE", "production"),
        ("DATA", "/srv/a1b2c3d4e5f6a7b8c9d0"),
        ("PROJECT_ID", token),
        ("SITE", "https://example.org/a1b2c3d4e5f6a7b8c9d0"),
        ("DEBUG_TOKENS", "true"),
    ] {
        assert_eq!(secret_part(key, value), None, "{key}");
    }
    for (key, value, secret) in [
        ("API_KEY", "zebra crossing", "zebra crossing"),
        ("Authorization", "Bearer zebra-crossing", "zebra-crossing"),
        ("ACCESS", token, token),
        ("password", "swordfish", "swordfish"),
    ] {
        assert_eq!(secret_part(key, value), Some(secret), "{key}");
    }
}

#[test]
fn options_headers_and_parts_of_urls_have_names() {
    let settings = |toml: &str| -> Vec<(String, String)> {
        let settings: ServerSettings = toml::from_str(toml).unwrap();
        let config = settings.into_config("s", std::path::Path::new("/")).unwrap();
        config.named_values(|name| (name == "VAR").then(|| "resolved".to_owned()))
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let values =
        settings("command = 'x'\nargs = ['--api-key', 'one', '--flag=two', 'plain']\nenv = { E = '${VAR}' }");
    assert_eq!(values, [pair("api-key", "one"), pair("flag", "two"), pair("E", "resolved")]);
    let values = settings("url = 'https://u:word@h/mcp?token=three'\nheaders = { X = 'four' }");
    assert_eq!(values, [pair("X", "four"), pair("password", "word"), pair("token", "three")]);
}
