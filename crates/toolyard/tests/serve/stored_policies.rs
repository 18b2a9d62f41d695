//! Policies in the store: running gateways obey them, and changes are audited.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    client::{HttpGateway, modern_params, send},
    home_with_server,
    test_home::wait_until,
};

/// Gateways read the store every two seconds; the machine may be busy.
const DEADLINE: Duration = Duration::from_secs(20);

async fn calculate(gateway: &HttpGateway) -> String {
    let params = modern_params(json!({"name": "calculate", "arguments": {"expression": "6*7"}}));
    send(gateway.build_request("", "tools/call", &params)).await.body.to_string()
}

/// Calls until the answer contains the text.
async fn calculate_until(gateway: &HttpGateway, text: &str) -> String {
    let since = Instant::now();
    loop {
        let answer = calculate(gateway).await;
        if answer.contains(text) || since.elapsed() > DEADLINE {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_running_gateway_obeys_stored_policies_and_their_removal() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    assert!(calculate(&gateway).await.contains("42"));
    let policy = "@id(\"closed\") @reason(\"closed for the night\")\nforbid (principal, action, resource);\n";
    home.write("night.cedar", policy);
    let file = home.path("night.cedar");
    let set = home.run(&["policy", "set", "night", file.to_str().unwrap()]);
    assert!(set.contains("stored the policies `night`"), "{set}");
    let refused = calculate_until(&gateway, "closed for the night").await;
    assert!(refused.contains("closed for the night"), "{refused}");
    let own_call = home.command(&["call", "calculate", r#"{"expression": "1"}"#]).output().unwrap();
    assert_eq!(own_call.status.code(), Some(4), "{own_call:?}");
    insta::assert_snapshot!(home.run(&["policy", "list"]), @r"
    ORIGIN  NAME   POLICIES
    store   night  1
    ");
    let removed = home.run(&["policy", "remove", "night"]);
    assert!(removed.contains("removed the policies `night`"), "{removed}");
    let allowed = calculate_until(&gateway, "42").await;
    assert!(allowed.contains("42"), "{allowed}");
    let audit = home.run(&["audit", "tail", "--limit", "1000", "--json"]);
    for change in ["decided: set policy night", "decided: remove policy night"] {
        assert!(audit.contains(change), "{audit}");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn a_mistake_in_the_settings_does_not_delay_a_stored_policy() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let settings = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("serve.required_servers = [\"missing\"]\n{text}")).unwrap();
    let is_refused = || gateway.stderr().contains("settings not reloaded");
    assert!(wait_until(20_000, is_refused), "{}", gateway.stderr());
    home.write("night.cedar", "@reason(\"closed for the night\") forbid (principal, action, resource);\n");
    home.run(&["policy", "set", "night", home.path("night.cedar").to_str().unwrap()]);
    let refused = calculate_until(&gateway, "closed for the night").await;
    assert!(refused.contains("closed for the night"), "{refused}");
}

#[test]
fn a_store_that_exists_but_cannot_be_opened_is_not_ignored() {
    let home = home_with_server();
    home.write("night.cedar", "forbid (principal, action, resource);\n");
    home.run(&["policy", "set", "night", home.path("night.cedar").to_str().unwrap()]);
    let database = home.path("data/toolyard/toolyard.db");
    for suffix in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", database.display()));
    }
    std::fs::write(&database, "This is no database. ".repeat(500)).unwrap();
    let called = home.command(&["call", "calculate", r#"{"expression": "1"}"#]).output().unwrap();
    let message = String::from_utf8_lossy(&called.stderr).into_owned();
    assert_eq!(
        called.status.code(),
        Some(1),
        "without the stored policies, nothing may be called: {message}"
    );
    assert!(message.contains("toolyard.db"), "{message}");
}

#[test]
fn invalid_policies_are_not_stored() {
    let home = home_with_server();
    home.write("wrong.cedar", "forbid (principal, action, resource) when { resource.nam == \"x\" };");
    let file = home.path("wrong.cedar");
    let refused = home.command(&["policy", "set", "team", file.to_str().unwrap()]).output().unwrap();
    assert!(!refused.status.success());
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(message.contains("store:team") && message.contains("nam"), "{message}");
    assert!(home.run(&["policy", "list"]).contains("No policies yet"));
    insta::assert_snapshot!(home.run(&["policy", "set", "a b", file.to_str().unwrap()]), @r"
    --- stderr
    error: `a b` cannot be the name of policies
      hint: use up to 64 letters, digits and the characters `-`, `_` and `.`: toolyard policy set team team.cedar
    --- exit 2
    ");
    insta::assert_snapshot!(home.run(&["policy", "remove", "team"]), @r"
    --- stderr
    error: the store has no policies `team`
      hint: list them: toolyard policy list
    --- exit 2
    ");
}
