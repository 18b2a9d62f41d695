//! Made-up secrets (canaries) are removed from every context, and ordinary text stays unchanged.

use std::{borrow::Cow, collections::HashSet};

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

use super::{
    marker::is_kind_byte,
    rules::{Format, RULES},
    *,
};
use crate::RawJson;

/// A made-up secret and the text around it that makes it one.
#[derive(Debug, Clone)]
struct Canary {
    kind: &'static str,
    text: String,
    secret: String,
    /// Whether the secret is recognized without context.
    stands_alone: bool,
}

fn canary(format: &'static Format) -> Canary {
    let secret = format.example.secret.concat();
    let text = format!("{}{secret}{}", format.example.left, format.example.right);
    Canary { kind: &format.kind, stands_alone: text == secret, text, secret }
}

fn canaries() -> Vec<Canary> {
    RULES.formats.iter().map(canary).collect()
}

fn lone_canaries() -> Vec<Canary> {
    canaries().into_iter().filter(|canary| canary.stands_alone).collect()
}

/// Parts of a secret that must not appear: the whole, and the end of each line.
fn traces(secret: &str) -> Vec<String> {
    let tail = |line: &str| line.chars().skip(line.chars().count().saturating_sub(8)).collect::<String>();
    let lines = secret.lines().filter(|line| line.len() > 6 && !line.starts_with("-----"));
    lines.map(tail).chain([secret.to_owned()]).collect()
}

#[track_caller]
fn assert_removed(canary: &Canary, context: &str, output: &str) {
    for trace in traces(&canary.secret) {
        assert!(!output.contains(&trace), "{} in {context}: {trace:?} is left in {output}", canary.kind);
    }
    assert!(output.contains("[redacted:"), "{} in {context}: {output}", canary.kind);
}

fn json_string(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn contexts(text: &str) -> Vec<(&'static str, String)> {
    let nested = json_string(&format!("{{\"note\":{}}}", json_string(text)));
    vec![
        ("nothing", text.to_owned()),
        ("a sentence", format!("please use {text} today")),
        ("the end of a sentence", format!("it was {text}.")),
        ("a JSON string", format!("{{\"note\":{},\"next\":1}}", json_string(text))),
        ("JSON in a JSON string", format!("{{\"note\":{nested},\"next\":1}}")),
        ("JSON in JSON in a JSON string", format!("{{\"note\":{}}}", json_string(&nested))),
        ("an escaped line", format!("first\\n{text}\\nlast")),
        ("a URL", format!("https://example.org/find?q={text}&page=2")),
        ("an encoded URL", format!("https://example.org/find?q%3D{text}%26page%3D2")),
        ("a header", format!("Accept: */*\r\nX-Custom: {text}\r\nHost: example.org")),
        ("an environment", format!("OTHER=1\nVALUE={text}\nLAST=2")),
        ("quotes in an environment", format!("export VALUE=\"{text}\"")),
        ("YAML", format!("tool:\n  value: {text}\n  other: 1")),
        ("a log line", format!("2026-01-01T00:00:00Z WARN call{{tool=\"x\"}}: failed: \"{text}\" (retry 1)")),
        ("lines", format!("first\n{text}\nlast")),
        ("brackets", format!("f({text}) [{text}] <{text}>")),
        ("Markdown", format!("- `{text}`\n- **{text}**")),
        ("Chinese", format!("请使用{text}，谢谢")),
        ("colours", format!("\u{1b}[31m{text}\u{1b}[0m")),
    ]
}

#[test]
fn the_rules_parse_and_compile() {
    assert!(RULES.formats.len() >= 60);
    assert!(RULES.words.secret.len() > 20);
    assert!(assignment::patterns_compile());
    for format in &RULES.formats {
        assert!(format.regex().is_some(), "{format:?}");
        assert!(format.kind.bytes().all(is_kind_byte), "{}", format.kind);
    }
}

#[test]
fn there_are_many_formats() {
    let examples: HashSet<String> = canaries().into_iter().map(|canary| canary.secret).collect();
    let kinds: HashSet<&str> = RULES.formats.iter().map(|format| format.kind.as_str()).collect();
    assert!(examples.len() >= 120, "{}", examples.len());
    assert!(kinds.len() >= 100, "{}", kinds.len());
}

#[test]
fn every_rule_redacts_its_example() {
    for canary in canaries() {
        let expected = canary.text.replace(&canary.secret, &format!("[redacted:{}]", canary.kind));
        assert_eq!(redact(&canary.text), expected, "{}", canary.kind);
    }
}

#[test]
fn canaries_are_removed_in_every_context() {
    for canary in canaries() {
        for (context, text) in contexts(&canary.text) {
            let output = redact(&text);
            assert_removed(&canary, context, &output);
            assert_eq!(redact(&output), output, "{} in {context}", canary.kind);
        }
    }
}

#[test]
fn canaries_are_removed_in_json() {
    for canary in canaries() {
        for (context, text) in contexts(&canary.text) {
            let json = json!({"before": [1.0, {"note": text}], "after": "kept"});
            let (output, changed) = redact_json(&json.into());
            assert!(changed);
            assert_removed(&canary, context, output.get());
            assert_eq!(output.to_value()["after"], "kept");
        }
        let (output, changed) = redact_json(&json!({ canary.text.clone(): 1 }).into());
        assert!(changed);
        assert_removed(&canary, "a key", output.get());
    }
}

#[test]
fn lines_around_a_canary_stay() {
    for canary in canaries() {
        let output = redact(&format!("first line\nthen {}\nlast line", canary.text)).into_owned();
        assert!(output.starts_with("first line\nthen ") && output.ends_with("\nlast line"), "{output}");
    }
}

/// Values that are secret because of their key: text before and after.
const ASSIGNED: &[(&str, &str)] = &[
    ("password=hunter2 next", "password=* next"),
    ("PASSWORD=hunter2", "PASSWORD=*"),
    ("export DB_PASSWORD=a,b&c next", "export DB_PASSWORD=* next"),
    ("password = hunter2", "password = *"),
    ("password: hunter2", "password: *"),
    ("db:\n  password: swordfish\n  user: ann", "db:\n  password: *\n  user: ann"),
    ("password := \"hunter2\"", "password := \"*\""),
    ("password => 'hunter2',", "password => '*',"),
    ("{\"password\":\"hunter2\",\"user\":\"ann\"}", "{\"password\":\"*\",\"user\":\"ann\"}"),
    ("{\"password\": \"hun\\\"ter2\", \"a\": 1}", "{\"password\": \"*\", \"a\": 1}"),
    ("{\\\"password\\\":\\\"hunter2\\\",\\\"a\\\":1}", "{\\\"password\\\":\\\"*\\\",\\\"a\\\":1}"),
    ("\\\\\\\"password\\\\\\\":\\\\\\\"hunter2\\\\\\\",", "\\\\\\\"password\\\\\\\":\\\\\\\"*\\\\\\\","),
    ("{'password': 'hunter2'}", "{'password': '*'}"),
    ("{password: hunter2, user: ann}", "{password: *, user: ann}"),
    ("dbPassword=hunter2;", "dbPassword=*;"),
    ("client_secret=hunter2&x=1", "client_secret=*&x=1"),
    ("https://example.org/?access_token=hunter2&x=1#end", "https://example.org/?access_token=*&x=1#end"),
    ("https%3A%2F%2Fexample.org%3Ftoken%3Dhunter2", "https%3A%2F%2Fexample.org%3Ftoken%3D*"),
    (
        "https:\\u002f\\u002fexample.org\\u003ftoken\\u003dhunter2",
        "https:\\u002f\\u002fexample.org\\u003ftoken\\u003d*",
    ),
    ("x-api-key: 12ab34cd", "x-api-key: *"),
    ("X-Auth-Token: swordfish", "X-Auth-Token: *"),
    ("api_key=swordfish", "api_key=*"),
    ("apiKey: \"correct horse battery staple\"", "apiKey: \"*\""),
    ("Your API key: 12ab34cd56ef", "Your API key: *"),
    ("the token: 12ab34cd56ef was used", "the token: * was used"),
    ("run --password hunter2 now", "run --password * now"),
    ("run --password=hunter2 now", "run --password=* now"),
    ("run --api-key 'hunter2' now", "run --api-key '*' now"),
    ("run -token swordfish now", "run -token * now"),
    ("[\"--password\", \"hunter2\", \"x\"]", "[\"--password\", \"*\", \"x\"]"),
    ("(password=hunter2)", "(password=*)"),
    ("password=hun(ter)2!$%^", "password=*"),
    ("PGPASSWORD=hunter2 psql", "PGPASSWORD=* psql"),
    ("wrong password: swordfish", "wrong password: *"),
    ("curl -H 'Authorization: Bearer swordfish' x", "curl -H 'Authorization: Bearer *' x"),
    ("password -> hunter2", "password -> *"),
    ("f(a[password=hunter2]))", "f(a[password=*]))"),
    ("the password=hunter2.", "the password=*."),
    ("password=pa\\ss%w0rd next", "password=* next"),
    ("log: password=hunter2\\nnext", "log: password=*\\nnext"),
    ("\\npassword=hunter2", "\\npassword=*"),
    ("const TOKEN: &str = \"hunter2\";", "const TOKEN: &str = \"*\";"),
    ("password: str = \"hunter2\"", "password: str = \"*\""),
    ("config['password'] = 'hunter2'", "config['password'] = '*'"),
    ("<password>hunter2</password>", "<password>*</password>"),
    ("<ns:apiKey kind=\"x\">hunter2</ns:apiKey>", "<ns:apiKey kind=\"x\">*</ns:apiKey>"),
    ("**Password:** hunter2", "**Password:** *"),
    ("spring.datasource.password=hunter2", "spring.datasource.password=*"),
    ("//registry.npmjs.org/:_authToken=swordfish", "//registry.npmjs.org/:_authToken=*"),
    ("{\"auth\":\"YW5uOmh1bnRlcjI=\"}", "{\"auth\":\"*\"}"),
    ("{\"smtp\":{\"user\":\"ann\",\"pass\":\"hunter2\"}}", "{\"smtp\":{\"user\":\"ann\",\"pass\":\"*\"}}"),
    ("密码：hunter2，谢谢", "密码：*"),
    ("Authorization: Token swordfish", "Authorization: Token *"),
    ("\"Authorization\": \"Bearer abc\"", "\"Authorization\": \"Bearer *\""),
    ("Proxy-Authorization: Basic YWJj", "Proxy-Authorization: Basic *"),
];

#[test]
fn values_of_secret_keys_are_redacted() {
    for (text, expected) in ASSIGNED {
        let output = redact(text);
        let plain =
            RULES.formats.iter().fold(output.replace("[redacted:assignment]", "*"), |output, format| {
                output.replace(&format!("[redacted:{}]", format.kind), "*")
            });
        assert_eq!(&plain, expected, "{text}");
        assert_eq!(redact(&output), output);
    }
}

/// Texts without a secret, which must stay unchanged.
const ORDINARY: &[&str] = &[
    "",
    "The token is 32 characters long; keep your password safe.",
    "password: string (required)",
    "Args:\n    token: The API token to use\n    password: Optional password of the user",
    "api_key (str): Your API key. Get one at https://example.org/keys",
    "Enter the password: it must be at least 8 characters.",
    "token: 32-character string that identifies the caller",
    "Use `--token` to pass the token, or --password for a password.",
    "Unexpected token: found `}` at line 3",
    "invalid password: too short",
    "max_tokens=4096, prompt_tokens: 812, token_count=17, total_tokens: 99120",
    "{\"usage\":{\"input_tokens\":812,\"output_tokens\":77},\"token_type\":\"bearer\"}",
    "nextPageToken: CAUQAA and progressToken=abc123def",
    "token_url = https://example.org/oauth/token",
    "password_policy: strict12, secret_name: db-credentials-2",
    "password=<your password>, token=${TOKEN}, api_key=$API_KEY, secret={{ secret }}",
    "Authorization: Bearer <token>",
    "Authorization: Bearer ${TOKEN}",
    "Authorization: Bearer YOUR_API_KEY",
    "let token = self.next_token();",
    "password = os.environ[\"PASSWORD\"]",
    "const apiKey = process.env.API_KEY;",
    "fn login(user: &str, password: &str) -> Result<Token, Error>",
    "struct Login { user: String, password: String, token: Option<String> }",
    "interface Login { password: string; token?: string }",
    "if token == null { return }",
    "use syn::token::Comma; TokenStream::new(); pub eq_token: Token![=], pub cookie: u32,",
    "pub const TOKEN_SIZE: usize = 12; const COOKIE: u32 = 0x1f;",
    "connect(user=user, password=password, token=token)",
    "postgres://user:password@localhost/db",
    "postgres://localhost:5432/db and https://example.org:8443/a@b",
    "mailto:ann@example.org ssh://git@example.org/repo.git",
    "commit 9516a65c0f1f3d1a7be2c4f1e5d6a7b8c9d0e1f2 by ann",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "request 550e8400-e29b-41d4-a716-446655440000 took 12ms",
    "disk-550e8400e29b41d4a716446655440000 task-abcdefghijklmnopqrstuvwxyz",
    "cursor eyJpZCI6MTAwfQ and eyJhIjoxfQ== are cursors",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "This site sets a cookie: it remembers your theme. Cookies are small files.",
    "The key: value pairs are sorted; primary key=id, key: 12",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0example0public0key0only ann@example.org",
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
    concat!("The file starts with `-----BEGIN ", "PRIVATE KEY-----`."),
    "密码：必填，令牌由系统生成。请妥善保管您的密钥。",
    "搜索关键词，返回结果列表，包括标题、链接、摘要和ID。",
    "He said: \"secret\" is a \"token\" of trust.",
    "tests pass: 12, fail: 0; auth: oauth2; signature: sha256",
    "mysql -u root -p shop and curl -s https://example.org",
    "SKU AC-1200, SKILL.md, ACCESS granted, 1/2 cup, AIzawa, hf_dataset",
    "[redacted:github-token] and password=[redacted:assignment]",
];

#[test]
fn ordinary_text_is_borrowed() {
    for text in ORDINARY {
        assert!(
            matches!(redact(text), Cow::Borrowed(same) if same == *text),
            "{text:?} became {:?}",
            redact(text)
        );
    }
}

#[test]
fn a_made_up_marker_does_not_hide_a_secret() {
    assert_eq!(redact("password=[redacted:hunter2]"), "password=[redacted:assignment]");
}

#[test]
fn a_truncated_key_is_redacted() {
    let body = "Fake0Canary1Body2".repeat(4);
    let text = format!("-----BEGIN EC {}-----\n{body}\n{body}", "PRIVATE KEY");
    assert_eq!(redact(&text), "[redacted:private-key]");
    assert_eq!(redact(&json_string(&text)), "\"[redacted:private-key]\"");
}

#[track_caller]
fn assert_json(before: &str, after: &str) {
    let json = RawJson::parse(before.to_owned()).unwrap();
    let (output, changed) = redact_json(&json);
    assert_eq!(output.get(), after);
    assert_eq!(changed, before != after);
    let (again, changed) = redact_json(&output);
    assert_eq!(again, output);
    assert!(!changed);
}

#[test]
fn values_of_secret_keys_in_json_are_redacted_whole() {
    let marker = "\"[redacted:assignment]\"";
    for key in [
        "password",
        "PASSWORD",
        "dbPassword",
        "db-password",
        "DB_PASSWORD",
        "password2",
        "api_key",
        "apiKey",
        "APIKey",
        "X-Api-Key",
        "AWSSecretAccessKey",
        "authorization",
        "Set-Cookie",
        "refresh_token",
        "clientSecret",
        "private_key",
        "用户密码",
    ] {
        for value in ["\"x\"", "12345678", "[\"a\", 1]", "{\"a\":{\"b\":\"}\"}}"] {
            assert_json(
                &format!("{{\"a\": 1.0, \"{key}\" : {value}, \"z\":1e400}}"),
                &format!("{{\"a\": 1.0, \"{key}\" : {marker}, \"z\":1e400}}"),
            );
        }
    }
}

#[test]
fn ordinary_json_stays_unchanged() {
    for same in [
        r#"{"max_tokens":4096,"token_count":5,"tokenType":"bearer","nextPageToken":"abc","progressToken":7}"#,
        r#"{"password":null,"token":true,"secret":"","cookies":[ ],"credentials":{}}"#,
        r#"{"secretary":"Ann","tokenizer":"x","authorizationUrl":"https://example.org/a","keyboard":"q1w2e3r4"}"#,
        r#"{"type":"object","properties":{"password":{"type":"string","description":"Your password"},"a":{}}}"#,
        r#"{"properties":{"token":{"anyOf":[{"type":"string"},{"type":"null"}],"title":"Token"}}}"#,
        r#"["--verbose","x","--max-tokens","5"]"#,
        r#"{"lone":"\ud800 and \u00e9","a":-1.50E+3}"#,
        r#""[redacted:jwt]""#,
        "[1 , 2]",
    ] {
        assert_json(same, same);
    }
}

#[test]
fn names_and_schemas_decide_about_json_values() {
    assert_json(
        r#"{"properties":{"password":{"type":"string","default":"hunter2","examples":["a"],"value":"b"}}}"#,
        r#"{"properties":{"password":{"type":"string","default":"[redacted:assignment]","examples":"[redacted:assignment]","value":"[redacted:assignment]"}}}"#,
    );
    assert_json(
        r#"{"args":["run","--password","hunter2","x"]}"#,
        r#"{"args":["run","--password","[redacted:assignment]","x"]}"#,
    );
    assert_json(
        r#"{"env":[{"name":"API_KEY","value":"hunter2"},{"name":"HOME","value":"/root"}]}"#,
        r#"{"env":[{"name":"API_KEY","value":"[redacted:assignment]"},{"name":"HOME","value":"/root"}]}"#,
    );
    assert_json(r#"{"auth":"YW5uOmh1bnRlcjI="}"#, r#"{"auth":"[redacted:assignment]"}"#);
    assert_json(
        r#"{"a":"say \"password=hunter2\" \ud800"}"#,
        "{\"a\":\"say \\\"password=[redacted:assignment]\\\" \u{fffd}\"}",
    );
    assert_json("{\"password\\u0032\":\"x\"}", "{\"password\\u0032\":\"[redacted:assignment]\"}");
}

#[test]
fn json_of_any_depth_is_redacted() {
    let deep = format!("{}{{\"token\":\"x1\"}}{}", "[".repeat(200_000), "]".repeat(200_000));
    let (output, changed) = redact_json(&RawJson::parse(deep).unwrap());
    assert!(changed && !output.get().contains("x1"));
    let under = format!("{{\"token\":{}\"x1\"{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let (output, _) = redact_json(&RawJson::parse(under).unwrap());
    assert_eq!(output.get(), "{\"token\":\"[redacted:assignment]\"}");
}

#[test]
fn repeated_prefixes_are_scanned_once() {
    for beginning in [
        "eyJ",
        "eyJ-",
        "password: ",
        "密码：",
        "token:\"",
        concat!("-----BEGIN ", "PRIVATE KEY----- "),
        "://a:",
        "sig=",
        ")",
    ] {
        let text = format!("token=x{}", beginning.repeat(20_000));
        let output = redact(&text);
        assert_eq!(redact(&output), output);
    }
}

/// Text without any word of the rules.
fn ordinary_text() -> impl Strategy<Value = String> {
    "[a-jA-J ,.!?\n中文é]{0,60}"
}

/// Fragments that, joined, come close to every rule.
fn fragments() -> impl Strategy<Value = String> {
    let mut pieces: Vec<String> = canaries().into_iter().map(|canary| canary.text).collect();
    let signs = "= : \" ' ` \\ \\\" , ; & @ / < > ( ) [ ] { } -- %3D - _ . $ * x1 [redacted: [redacted:jwt] \
        [redacted:assignment] password token secret api key Bearer Basic Authorization Cookie a=b :// user hunter2 \
        密码 ： eyJ sk- ghp_ heroku mysql -p -----BEGIN -----END the string \u{1b}[0m";
    let signs: Vec<String> = signs.split(' ').chain([" ", " ", "\n", "\t"]).map(str::to_owned).collect();
    for _ in 0..6 {
        pieces.extend(signs.iter().cloned());
    }
    vec(prop_oneof![9 => select(pieces), 1 => "\\PC{0,6}"], 0..24).prop_map(|pieces| pieces.concat())
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        "[a-z]{0,5}",
        select(vec![
            "password",
            "token",
            "apiKey",
            "name",
            "value",
            "properties",
            "type",
            "max_tokens",
            "auth"
        ])
        .prop_map(str::to_owned),
        fragments(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        fragments().prop_map(Value::from),
        "--[a-z]{0,3}token".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((key.clone(), inner), 0..5).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, ..ProptestConfig::default() })]

    #[test]
    fn a_canary_in_any_text_is_removed(before in "\\PC{0,80}", canary in select(canaries()), after in "\\PC{0,80}") {
        let output = redact(&format!("{before} {} {after}", canary.text)).into_owned();
        assert_removed(&canary, "arbitrary text", &output);
    }

    #[test]
    fn only_the_canary_is_removed(before in ordinary_text(), canary in select(lone_canaries()), after in ordinary_text()) {
        let output = redact(&format!("{before} {} {after}", canary.text)).into_owned();
        prop_assert_eq!(output, format!("{before} [redacted:{}] {after}", canary.kind));
    }

    #[test]
    fn only_the_password_is_removed(before in ordinary_text(), secret in "[a-z]{2}[0-9][a-zA-Z0-9!#+^_.@~-]{3,20}z", after in ordinary_text()) {
        for (left, right) in [("password=", " "), ("\"token\": \"", "\" "), ("--api-key ", " ")] {
            let output = redact(&format!("{before} {left}{secret}{right}{after}")).into_owned();
            prop_assert_eq!(output, format!("{before} {left}[redacted:assignment]{right}{after}"));
        }
    }

    #[test]
    fn any_ordinary_text_is_borrowed(text in ordinary_text()) {
        prop_assert!(matches!(redact(&text), Cow::Borrowed(_)));
    }

    #[test]
    fn redacting_arbitrary_text_is_idempotent(text in "\\PC{0,200}") {
        let once = redact(&text);
        prop_assert_eq!(&redact(&once), &once);
    }

    #[test]
    fn redacting_fragments_is_idempotent(text in fragments()) {
        let once = redact(&text);
        prop_assert_eq!(&redact(&once), &once);
    }

    #[test]
    fn json_stays_valid_and_in_order(value in any_json()) {
        let json = RawJson::from_value(&value);
        let (output, changed) = redact_json(&json);
        let parsed: Value = serde_json::from_str(output.get()).unwrap();
        prop_assert_eq!(changed, output != json);
        prop_assert!(same_shape(&value, &parsed), "{} became {}", json.get(), output.get());
        let (again, _) = redact_json(&output);
        prop_assert_eq!(again, output);
    }
}

#[test]
fn what_remains_beside_a_redacted_part_is_judged_too() {
    let line = "Fake0Canary1Body2Not3A4Live5Key6Fake0Canary1Body2Not3A4Live5Zq9x";
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{line}\n{line}\n-----END RSA PRIVATE KEY-----");
    let json = RawJson::from_value(&serde_json::json!({"auth": format!("hunter2{key}")}));
    assert_eq!(redact_json(&json).0.get(), r#"{"auth":"[redacted:assignment]"}"#);
}

/// Whether two values have the same members in the same order, apart from redactions.
fn same_shape(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            // Keys that became the same are one member to this reader.
            let keys: HashSet<Cow<'_, str>> = before.keys().map(|key| redact(key)).collect();
            keys.len() < before.len()
                || before.len() == after.len()
                    && before
                        .iter()
                        .zip(after)
                        .all(|((old, left), (new, right))| redact(old) == *new && same_shape(left, right))
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len()
                && before.iter().zip(after).all(|(left, right)| same_shape(left, right))
        }
        (_, Value::String(after)) => before == after || after.contains("[redacted:"),
        _ => before == after,
    }
}
