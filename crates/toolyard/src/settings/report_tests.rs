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
        session_keys = ["{secret}"]
        [models.main]
        model = "m"
        key = "{secret}"
        headers = {{ X-Team = "{secret}" }}
        extra_body = {{ password = "{secret}" }}
        [servers.one]
        command = "npx"
        args = ["server", "--api-key", "{secret}"]
        env = {{ "A B" = "{secret}", TOKEN = "${{TOKEN:-{secret}}}" }}
        [servers.two]
        url = "https://user:{secret}@example.com/mcp?token={secret}"
        headers = {{ Authorization = "Bearer {secret}" }}
        oauth = {{ client_id = "id", client_secret = "{secret}" }}
        "#
    );
    let report = report(&[("/user.toml", &text)]);
    let shown = serde_json::to_string(&report).unwrap();
    assert!(!shown.contains(secret) && !shown.contains("hunter2"), "{shown}");
    for key in ["store", "servers.one.args", "servers.one.env.\"A B\"", "servers.two.url", "models.main.key"]
    {
        let value = value(&report, key);
        assert!(value.secret && value.value.is_null(), "{value:?}");
    }
    let token = value(&report, "serve.token");
    assert_eq!((token.secret, &token.value), (true, &json!("${TOOLYARD_TOKEN}")), "a reference is no secret");
    assert_eq!(value(&report, "servers.one.command").value, "npx");
}
