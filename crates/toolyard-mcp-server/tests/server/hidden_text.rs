//! No hidden text reaches a client: every path from a tool or server to a client, with every payload.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};
use toolyard_core::find_unsafe;

use crate::{
    client::{Client, next, stream},
    test_server::TestServer,
};

/// The paths that a tool of the test server can send a text on.
const TOOL_PATHS: [&str; 11] = [
    "result",
    "structured result",
    "raw result",
    "error",
    "unknown tool",
    "raw error result",
    "raw protocol error",
    "progress",
    "log",
    "elicitation",
    "forwarded elicitation",
];
/// Requests to the content service.
const CONTENT_REQUESTS: [(&str, &str, &str); 6] = [
    ("prompts/list", "", ""),
    ("resources/list", "", ""),
    ("resources/templates/list", "", ""),
    ("prompts/get", "name", "a"),
    ("resources/read", "uri", "test://one"),
    ("resources/read", "uri", "test://error"),
];

fn built_in_payloads() -> Vec<String> {
    let character = |block: u32, byte: u8| char::from_u32(block + u32::from(byte)).unwrap();
    let tags: String = "ignore".bytes().map(|byte| character(0xe0000, byte)).collect();
    let selectors = |base: &str| -> String {
        "hide".bytes().map(|byte| format!("{base}{}", character(0xe0100, byte))).collect()
    };
    let payloads = [
        "\u{1b}[31mred\u{1b}[0m",
        "\u{1b}]0;title\u{7}",
        "\u{1b}]8;;https://evil.example\u{1b}\\link",
        "\u{9b}2J",
        "\u{9d}0;title\u{9c}",
        "\u{85}\u{90}\u{7f}\u{8}\u{0}",
        "real\rfake",
        "\u{202e}gpj.exe\u{202c}",
        "\u{2066}\u{2067}\u{2068}\u{2069}",
        "\u{61c}\u{200e}\u{200f}",
        "\u{200b}\u{200c}\u{200d}\u{2060}\u{2062}\u{2063}\u{feff}\u{ad}\u{180e}",
        "\u{3164}\u{115f}\u{ffa0}",
    ];
    let mut payloads: Vec<String> = payloads.map(str::to_owned).to_vec();
    payloads.extend([
        tags,
        selectors("😀"),
        selectors("中"),
        selectors(""),
        "中\u{fe00}文\u{fe01}".to_owned(),
    ]);
    payloads
}

/// The texts of the security data that hide something; none if the data is not there.
fn collected_payloads() -> Vec<String> {
    let Some(folder) = std::env::var_os("TOOLYARD_DATA") else { return Vec::new() };
    let mut payloads = Vec::new();
    for entry in std::fs::read_dir(Path::new(&folder).join("security")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let text = row["text"].as_str().or(row["description"].as_str()).unwrap_or_default();
            if text.chars().any(is_hidden) {
                payloads.push(text.to_owned());
            }
        }
    }
    payloads
}

/// Characters that have no use in any of the payloads. Independent of the code under test.
fn is_hidden(letter: char) -> bool {
    matches!(letter, '\u{0}'..='\u{8}' | '\u{b}'..='\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}'
        | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

/// The strings and keys of a message.
fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            found.push(key);
            texts(value, found);
        }),
        _ => {}
    }
}

/// The number of payloads that passed, by path.
#[derive(Default)]
struct Passed(BTreeMap<String, usize>);

impl Passed {
    /// Checks that the visible part of a payload arrived, and nothing that is hidden.
    fn check(&mut self, path: &str, payload: &str, messages: &[Value]) {
        let mut found = Vec::new();
        messages.iter().for_each(|message| texts(message, &mut found));
        let payload = payload.escape_unicode();
        assert!(found.iter().any(|text| text.contains("begin ")), "{path}: {payload}: {messages:?}");
        let is_unsafe = |text: &&str| text.chars().any(is_hidden) || !find_unsafe(text).is_empty();
        *self.0.entry(path.to_owned()).or_default() += usize::from(found.iter().any(is_unsafe));
    }
}

#[tokio::test]
async fn no_hidden_text_reaches_a_client_on_any_path() {
    let server = TestServer::new().await;
    let modern = Client::new(&server.address);
    let capabilities = json!({"elicitation": {"form": {}}});
    let legacy = modern.clone().initialize("2025-11-25", json!({"elicitation": {}})).await;
    let payloads = [built_in_payloads(), collected_payloads()].concat();
    let mut passed = Passed::default();
    for payload in &payloads {
        let text = format!("begin {payload} end");
        for path in TOOL_PATHS {
            let params = json!({"name": "send_text", "arguments": {"path": path, "text": text},
                "_meta": {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"}});
            let answer = modern.request_modern(1, "tools/call", params.clone(), capabilities.clone()).await;
            passed.check(path, payload, &answer.messages);
            if path == "elicitation" {
                let mut messages = stream(legacy.send_legacy(2, "tools/call", params).await);
                let request = next(&mut messages).await;
                passed.check("legacy elicitation", payload, std::slice::from_ref(&request));
                legacy.reply(&request["id"], json!({"action": "accept", "content": {"value": "x"}})).await;
                next(&mut messages).await;
            } else if path != "forwarded elicitation" {
                let answer = legacy.request_legacy(2, "tools/call", params).await;
                passed.check(&format!("legacy {path}"), payload, &answer.messages);
            }
        }
        *server.content.text.lock() = Some(text);
        for (method, key, target) in CONTENT_REQUESTS {
            let params = match key {
                "" => json!({}),
                key => json!({ key: target }),
            };
            let answer = legacy.request_legacy(3, method, params).await;
            passed.check(method, payload, &answer.messages);
        }
    }
    let paths = TOOL_PATHS.len() + TOOL_PATHS.len() - 1 + CONTENT_REQUESTS.len() - 1;
    assert_eq!(passed.0.len(), paths, "two of the content requests have the same method");
    assert!(passed.0.values().all(|count| *count == 0), "of {} payloads: {:#?}", payloads.len(), passed.0);
    server.close().await;
}
