//! `toolyard servers edit`, `enable`, `disable`, `trust` and `untrust`.

use std::{
    io::Write as _,
    process::{Output, Stdio},
};

use super::stored_secrets::{fingerprint, sha256};
use crate::test_home::{TestHome, named_tool};

const SETTINGS: &str = "config/toolyard/toolyard.toml";

fn home_with_server() -> TestHome {
    let home = TestHome::new();
    home.add_server("fake", &["--env", "TOKEN=${TOKEN:-none}"]);
    let text = std::fs::read_to_string(home.path(SETTINGS)).unwrap();
    home.write(SETTINGS, &format!("# mine\n{text}\n[time]\nzone = \"Asia/Tokyo\" # home\n"));
    home
}

/// The settings, without the paths of this run.
fn settings(home: &TestHome) -> String {
    let text = std::fs::read_to_string(home.path(SETTINGS)).unwrap();
    text.replace(home.path("").canonicalize().unwrap().to_str().unwrap().trim_end_matches('/'), "HOME")
}

#[test]
fn a_server_is_changed_in_place() {
    let home = home_with_server();
    let set = [
        "servers",
        "edit",
        "fake",
        "--set",
        "call_timeout=30s",
        "--set",
        "env.MODE=1",
        "--unset",
        "env.TOKEN",
    ];
    insta::assert_snapshot!(home.run(&set), @r"
    --- stderr
    changed fake: HOME/config/toolyard/toolyard.toml
    ");
    insta::assert_snapshot!(settings(&home), @r#"
    # mine
    [servers.fake]
    command = "python3"
    args = ["HOME/server.py", "HOME/fake.json"]
    call_timeout = "30s"

    [servers.fake.env]
    MODE = "1"

    [time]
    zone = "Asia/Tokyo" # home
    "#);
    insta::assert_snapshot!(home.run(&["servers", "edit", "fake", "--set", "call_timeout=30"]), @r"
    --- stderr
    error: `call_timeout` cannot have this value: not a duration; write for example `30s`, `2m` or `500ms`
      hint: settings of a server: docs/guide/settings.md, `[servers.NAME]`
    --- exit 2
    ");
    insta::assert_snapshot!(home.run(&["servers", "edit", "fake", "--set", "headers.X=1"]), @r"
    --- stderr
    error: server `fake`: `headers` conflicts with `command`: remove one of them
    --- exit 2
    ");
    insta::assert_snapshot!(home.run(&["servers", "edit", "nobody", "--set", "trusted=true"]), @r"
    --- stderr
    error: HOME/config/toolyard/toolyard.toml has no server `nobody`
      hint: list servers: toolyard servers list
    --- exit 2
    ");
    assert!(home.run(&["servers", "edit", "fake"]).ends_with("--- exit 2"));
}

#[test]
fn a_server_is_disabled_and_enabled_again() {
    let home = home_with_server();
    let before = settings(&home);
    insta::assert_snapshot!(home.run(&["servers", "disable", "fake"]), @r"
    --- stderr
    disabled fake: HOME/config/toolyard/toolyard.toml
    ");
    let call = ["call", "greet", "--args", "{\"name\":\"Ada\"}"];
    assert!(home.run(&call).contains("--- exit 2"), "{}", home.run(&call));
    assert!(home.run(&["servers", "list"]).contains("disabled"));
    home.run(&["servers", "enable", "fake"]);
    assert!(home.run(&call).contains("Hello, Ada!"));
    assert_eq!(settings(&home), before);
}

#[test]
fn a_trusted_server_is_believed_until_it_is_not() {
    let home = home_with_server();
    home.run(&["servers", "test", "fake"]);
    let effect = || {
        let tools: serde_json::Value =
            serde_json::from_str(&home.run(&["tools", "show", "greet", "--json"])).unwrap();
        tools.to_string()
    };
    let before = effect();
    let refused = home.run(&["servers", "trust", "fake"]);
    assert!(refused.ends_with("--- exit 4"), "trust needs a decision: {refused}");
    assert_eq!(effect(), before);
    insta::assert_snapshot!(home.run(&["servers", "trust", "fake", "--yes"]), @r"
    --- stderr
    trusted fake: HOME/config/toolyard/toolyard.toml
    ");
    assert_ne!(effect(), before, "its read-only hint is believed");
    home.run(&["servers", "untrust", "fake"]);
    assert_eq!(effect(), before);
}

#[test]
fn a_secret_comes_from_a_variable_or_from_standard_input() {
    let home = home_with_server();
    let edit = ["servers", "edit", "fake", "--secret", "TOKEN"];
    home.set_tools("fake", &[named_tool("fingerprint")]);
    assert!(home.run(&edit).contains("the value of `TOKEN` is empty"));
    assert!(!home.path("data/toolyard/secrets.json").exists(), "nothing was changed");
    assert!(settings(&home).contains("${TOKEN:-none}"), "nothing was changed");
    let mut child = home
        .command(&edit)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"canary-1\n").unwrap();
    let output: Output = child.wait_with_output().unwrap();
    let text = home.output_text(&output);
    assert!(output.status.success() && !text.contains("canary"), "{text}");
    assert_eq!(fingerprint(&home, "TOKEN"), sha256("canary-1"));
    assert!(settings(&home).contains("TOKEN = \"${secret:TOKEN}\""), "{}", settings(&home));
    home.command(&edit).env("TOKEN", "canary-2").output().unwrap();
    assert_eq!(fingerprint(&home, "TOKEN"), sha256("canary-2"));
    let other = home.run(&["servers", "edit", "fake", "--secret", "OTHER"]);
    assert!(other.contains("no setting of server `fake` refers to `OTHER`"), "{other}");
}
