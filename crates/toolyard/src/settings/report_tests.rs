//! Origins of settings, and secrets that must not be shown.

use std::path::Path;

use serde_json::json;

use super::*;

fn report(layers: &[(&str, &str)]) -> SettingsReport {
    let layers: Vec<SettingsLayer> =
        layers.iter().map(|(path, text)| SettingsLayer::parse(text, Path::new(path)).unwrap()).collect();
    SettingsLayer::report(&layers).unwrap()
}

fn value<'r>(report: &'r SettingsReport, key: &str) -> &'r SettingValue {
    report
        .values
        .iter()
        .find(|value| value.key == key)
        .unwrap_or_else(|| panic!("{key} is missing: {report:?}"))
}

#[test]
fn every_value_has_the_file_that_decides_it() {
    let user = r#"
        audit = "required"
        [time]
        zone = "Asia/Shanghai"
        [serve]
        surface = "full"
        [approvals]
        deny = ["rm"]
        [servers.files]
        command = "npx"
        args = ["fs"]
    "#;
    let project = r#"
        audit = "best_effort"
        [time]
        zone = "Europe/Berlin"
        [approvals]
        deny = ["dd"]
        [servers.files]
        command = "uvx"
    "#;
    let report = report(&[("/user.toml", user), ("/project.toml", project)]);
    let found = |key: &str| {
        let value = value(&report, key);
        (value.value.clone(), value.origin, value.file.clone())
    };
    let (user, project) = (Some("/user.toml".to_owned()), Some("/project.toml".to_owned()));
    use SettingOrigin::{Default, File};
    assert_eq!(found("time.zone"), (json!("Europe/Berlin"), File, project.clone()));
    assert_eq!(found("serve.surface"), (json!("full"), File, user.clone()));
    assert_eq!(found("serve.remote_approval"), (json!(false), Default, None));
    assert_eq!(found("audit"), (json!("required"), File, user), "no layer above relaxes it");
    assert_eq!(found("approvals.deny"), (json!(["rm", "dd"]), File, project.clone()));
    assert_eq!(found("servers.files.command"), (json!("uvx"), File, project));
    assert_eq!(report.files, ["/user.toml", "/project.toml"]);
    assert!(report.values.is_sorted_by(|one, other| one.key < other.key), "each key once");
}

#[test]
fn no_literal_secret_is_shown() {
    let secret = "hunter2-correct-horse-9f8e7d6c5b4a";
    let text = format!(
        r#"
        store = "postgres://toolyard:{secret}@db/toolyard"
        [serve]
        token = "${{TOOLYARD_TOKEN}}"
        [cluster]
        nats = "nats://a:4222,nats://office:{secret}@b:4222"
        [models.main]
        model = "m"
        key = "{secret}"
        headers = {{ X-Team = "{secret}", X-Key = "${{MODEL_KEY}}" }}
        extra_body = {{ password = "{secret}" }}
        [servers.one]
        command = "npx"
        args = ["server", "--api-key", "{secret}"]
        env = {{ "A B" = "{secret}", TOKEN = "${{TOKEN:-{secret}}}" }}
        [servers.two]
        url = "https://user:{secret}@example.com/mcp?token={secret}"
        headers = {{ Authorization = "Bearer {secret}" }}
        oauth = {{ client_id = "id", client_secret = "{secret}", id_jag = {{ client_id = "id", client_secret = "{secret}" }} }}
        [telemetry]
        otlp_endpoint = "https://user:{secret}@otlp.example.com"
        "#
    );
    let report = report(&[("/user.toml", &text)]);
    let shown = serde_json::to_string(&report).unwrap();
    assert!(!shown.contains(secret) && !shown.contains("hunter2"), "{shown}");
    for key in [
        "store",
        "cluster.nats",
        "servers.one.args",
        "servers.one.env.\"A B\"",
        "servers.two.url",
        "models.main.key",
    ] {
        let value = value(&report, key);
        assert!(value.secret && value.value.is_null(), "{value:?}");
    }
    let token = value(&report, "serve.token");
    assert_eq!((token.secret, &token.value), (true, &json!("${TOOLYARD_TOKEN}")), "a reference is no secret");
    let header = value(&report, "models.main.headers.X-Key");
    assert_eq!((header.secret, &header.value), (true, &json!("${MODEL_KEY}")));
    assert_eq!(value(&report, "servers.one.command").value, "npx");
    let plain = self::report(&[("/user.toml", "[telemetry]\notlp_endpoint = \"http://127.0.0.1:4318\"")]);
    assert_eq!(value(&plain, "telemetry.otlp_endpoint").value, "http://127.0.0.1:4318");
}

/// Keys that look like secrets and are none, or are found by other rules ([`literal_secrets`]).
const EXCEPTIONS: [&str; 5] = [
    "agents.*.limits.tokens",
    // The path of a file.
    "cluster.client_key",
    "models.*.max_tokens",
    "servers.*.oauth.client_secret",
    "servers.*.oauth.id_jag.client_secret",
];

/// The keys of a schema, with `*` for names that the user chooses.
fn schema_keys(schema: &Value, root: &Value, path: &mut Vec<String>, keys: &mut Vec<Vec<String>>) {
    // Schemas may refer to themselves.
    if path.len() > 6 {
        return;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer)).unwrap();
        schema_keys(target, root, path, keys);
    }
    for part in ["anyOf", "oneOf", "allOf"].iter().filter_map(|part| schema[part].as_array()).flatten() {
        schema_keys(part, root, path, keys);
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    let properties = properties.map(|(key, schema)| (key.as_str(), schema));
    let others = schema.get("additionalProperties").filter(|other| other.is_object());
    for (key, schema) in properties.chain(others.map(|other| ("*", other))) {
        path.push(key.to_owned());
        keys.push(path.clone());
        schema_keys(schema, root, path, keys);
        path.pop();
    }
}

#[test]
fn every_setting_that_may_be_a_secret_is_classified() {
    let schema = Settings::json_schema();
    let mut keys = Vec::new();
    schema_keys(&schema, &schema, &mut Vec::new(), &mut keys);
    assert!(keys.iter().any(|key| key.join(".") == "models.*.headers"), "{keys:?}");
    let words = ["key", "token", "secret", "password", "headers", "credential"];
    let looks_secret = |key: &&Vec<String>| words.iter().any(|word| key.last().unwrap().contains(word));
    for key in keys.iter().filter(looks_secret) {
        let below = [key.as_slice(), &["x".to_owned()]].concat();
        let is_classified = is_secret(key) || is_secret(&below);
        assert!(is_classified || EXCEPTIONS.contains(&key.join(".").as_str()), "{key:?} may be a secret");
    }
}
