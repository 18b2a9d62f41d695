//! Callers with API keys and identities from a proxy: what they may use, and how they are revoked.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    client::{HttpGateway, HttpResponse, modern_params, send, tool_names},
    home_with_server,
    test_home::{TestHome, wait_until},
};

/// A revocation counts within a second; the machine may be busy.
const REVOCATION_DEADLINE: Duration = Duration::from_secs(10);

fn home_with_settings(settings: &str) -> TestHome {
    let home = home_with_server();
    let file = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n{settings}")).unwrap();
    home
}

fn add_caller(home: &TestHome, args: &[&str]) -> String {
    let added = home.command(&[&["--json", "callers", "add"], args].concat()).output().unwrap();
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let added: Value = serde_json::from_slice(&added.stdout).unwrap();
    added["api_key"].as_str().unwrap().to_owned()
}

async fn list_tools(gateway: &HttpGateway, path: &str) -> HttpResponse {
    send(gateway.build_request(path, "tools/list", &modern_params(json!({})))).await
}

#[test]
fn an_issuer_that_cannot_be_reached_is_reported_before_a_caller_needs_it() {
    let oauth =
        "[serve.oauth]\nissuer = \"http://127.0.0.1:1/team\"\nresource = \"http://127.0.0.1:7300/mcp\"\n";
    let home = home_with_settings(oauth);
    let gateway = HttpGateway::start(&home, &[]);
    let says = || gateway.stderr().contains("the keys of the issuer cannot be read");
    assert!(wait_until(20_000, says), "{}", gateway.stderr());
    let doctor = home.run(&["doctor"]);
    assert!(doctor.contains("[serve.oauth] access tokens cannot be checked"), "{doctor}");
}

#[tokio::test]
async fn an_api_key_opens_what_it_is_for_until_it_is_revoked() {
    let home = home_with_settings("[serve.profiles.greeting]\ntools = [\"greet\"]\n");
    let mut gateway = HttpGateway::start(&home, &[]);
    let (all, limited) = (
        add_caller(&home, &["ci"]),
        add_caller(&home, &["clerk", "--profile", "greeting", "--expires", "90d"]),
    );
    gateway.token = Some(all.clone());
    assert_eq!(tool_names(&list_tools(&gateway, "").await.body).len(), 7);
    gateway.token = Some(limited.clone());
    assert_eq!(tool_names(&list_tools(&gateway, "/greeting").await.body), ["greet", "read_result"]);
    assert_eq!(list_tools(&gateway, "").await.status, 403);
    assert_eq!(list_tools(&gateway, "/toolyard.call").await.status, 403, "that endpoint has all tools");
    assert_eq!(gateway.get("/api/v1/tools", Some(&limited)).await.0, 403, "the API is of the main endpoint");
    assert_eq!(gateway.get("/v1/models", Some(&limited)).await.0, 403);

    gateway.token = Some(all.clone());
    assert_eq!(list_tools(&gateway, "/toolyard.call").await.status, 403, "for the gateway's own token only");
    gateway.token = Some(limited.clone());
    assert_eq!(gateway.get("/api/v1/tools", Some(&all)).await.0, 200);
    for path in ["/api/v1/audit", "/api/v1/settings", "/api/v1/servers", "/metrics"] {
        let (status, body) = gateway.get(path, Some(&all)).await;
        assert_eq!(status, 403, "{path}: {body}");
    }

    let revoked = home.run(&["callers", "revoke", "clerk"]);
    assert!(revoked.contains("revoked clerk"), "{revoked}");
    let since = Instant::now();
    let refused = loop {
        let answer = list_tools(&gateway, "/greeting").await;
        if answer.status != 200 || since.elapsed() > REVOCATION_DEADLINE {
            break answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(refused.status, 401, "{refused:?}");
    gateway.token = Some(all.clone());
    assert_eq!(list_tools(&gateway, "").await.status, 200, "others are not affected");

    let database = std::fs::read(home.path("data/toolyard/toolyard.db")).unwrap();
    let stderr = gateway.stop().await;
    for secret in [all.get(20..).unwrap(), limited.get(20..).unwrap()] {
        assert!(!stderr.contains(secret), "{stderr}");
        assert!(
            !database.windows(secret.len()).any(|window| window == secret.as_bytes()),
            "only hashes are stored"
        );
    }
}

#[tokio::test]
async fn a_session_belongs_to_its_caller_and_survives_another_key() {
    let home = home_with_server();
    let mut gateway = HttpGateway::start(&home, &[]);
    let (ada, eve) = (add_caller(&home, &["ada"]), add_caller(&home, &["eve"]));
    let initialize = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    });
    gateway.token = Some(ada.clone());
    let session = send(gateway.build_request("", "initialize", &initialize)).await.session.unwrap();
    let list = async |gateway: &HttpGateway| {
        let request = gateway.build_request("", "tools/list", &json!({}));
        send(request.header("Mcp-Session-Id", &session)).await.status
    };
    assert_eq!(list(&gateway).await, 200);
    gateway.token = Some(eve);
    assert_eq!(list(&gateway).await, 404, "the session of another caller does not exist");
    let rotated = home.command(&["--json", "callers", "rotate", "ada"]).output().unwrap();
    let rotated: Value = serde_json::from_slice(&rotated.stdout).unwrap();
    gateway.token = Some(rotated["api_key"].as_str().unwrap().to_owned());
    let since = Instant::now();
    while list(&gateway).await == 401 && since.elapsed() < REVOCATION_DEADLINE {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(list(&gateway).await, 200, "the session goes on with the new key");
    gateway.token = Some(ada);
    assert_eq!(list(&gateway).await, 401, "the previous key is invalid");
}

#[tokio::test]
async fn only_a_trusted_proxy_may_name_a_caller_and_settings_are_reloaded() {
    let settings = "[serve.proxy_identity]\nsubject_header = \"X-Forwarded-User\"\n";
    let trusted = format!("{settings}trusted_addresses = [\"127.0.0.0/8\"]\n");
    let home = home_with_settings(&trusted);
    let mut gateway = HttpGateway::start(&home, &[]);
    gateway.token = None;
    let call = async |gateway: &HttpGateway, user: Option<&str>| {
        let params = modern_params(json!({"name": "calculate", "arguments": {"expression": "6*7"}}));
        let mut request = gateway.build_request("", "tools/call", &params);
        if let Some(user) = user {
            request = request.header("X-Forwarded-User", user);
        }
        send(request).await.status
    };
    assert_eq!(call(&gateway, Some("ada")).await, 200);
    assert_eq!(call(&gateway, None).await, 401);
    gateway.token = Some("wrong".to_owned());
    assert_eq!(call(&gateway, Some("ada")).await, 401, "a wrong token counts more than the proxy");
    gateway.token = None;
    let file = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("127.0.0.0/8", "10.0.0.0/8")).unwrap();
    gateway.hang_up("settings reloaded").await;
    assert_eq!(call(&gateway, Some("ada")).await, 401, "this address is no longer trusted");
    gateway.stop().await;
    let audit = home.run(&["audit", "tail", "--json"]);
    assert!(audit.contains("\"ada (toolyard:proxy)\""), "{audit}");
}

#[tokio::test]
async fn failed_logins_are_logged_with_the_address_that_a_trusted_proxy_names() {
    let settings = "[serve.proxy_identity]\nsubject_header = \"X-Forwarded-User\"\ntrusted_addresses = [\"127.0.0.1\"]\n";
    let home = home_with_settings(settings);
    let mut gateway = HttpGateway::start(&home, &[]);
    gateway.token = Some("wrong".to_owned());
    let request = gateway.build_request("", "tools/list", &modern_params(json!({})));
    let request = request.header("X-Forwarded-For", "198.51.100.7").header("X-Forwarded-For", "203.0.113.9");
    assert_eq!(send(request).await.status, 401);
    let log = gateway.stop().await;
    assert!(log.contains("access denied") && log.contains("client=203.0.113.9"), "{log}");
}

#[tokio::test]
async fn policies_for_the_main_endpoint_hold_at_the_endpoint_of_toolyard_call() {
    let home = home_with_settings("[policy]\nfiles = [\"main.cedar\"]\n");
    let policy = "forbid (principal, action, resource) when { context.profile == Profile::\"\" };";
    std::fs::write(home.path("config/toolyard/main.cedar"), policy).unwrap();
    let gateway = HttpGateway::start(&home, &[]);
    for path in ["", "/toolyard.call"] {
        let params = modern_params(json!({"name": "calculate", "arguments": {"expression": "6*7"}}));
        let answer = send(gateway.build_request(path, "tools/call", &params)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.body["result"]["isError"] == true, "{path}: {answer:?}");
    }
}

#[test]
fn a_caller_that_cannot_be_added_is_explained() {
    let home = home_with_settings("[serve.profiles.office]\nservers = [\"fake\"]\n");
    insta::assert_snapshot!(home.run(&["callers", "list"]), @r"
    --- stderr
    No callers yet. Add one: toolyard callers add NAME
    ");
    insta::assert_snapshot!(home.run(&["callers", "add", "a b"]), @r"
    --- stderr
    error: invalid name of a caller: use 1 to 64 letters, digits, `-`, `_`, `.` and `@`, starting with a letter or digit, except `operator` and `http`
      hint: for example: toolyard callers add ci
    --- exit 2
    ");
    insta::assert_snapshot!(home.run(&["callers", "add", "ci", "--profile", "ofice"]), @r"
    --- stderr
    error: there is no profile `ofice`
      hint: profiles are in [serve.profiles] of toolyard.toml; there are: office, /
    --- exit 2
    ");
    insta::assert_snapshot!(home.run(&["callers", "add", "ci", "--expires", "soon"]), @r"
    --- stderr
    error: invalid duration `soon`
      hint: such as 90d, 12h or 30m; without --expires, a key is valid for ever
    --- exit 2
    ");
}

#[test]
fn callers_are_managed_on_the_command_line() {
    let home = home_with_settings("[serve.profiles.office]\nservers = [\"fake\"]\n");
    let key = add_caller(
        &home,
        &["ci", "--profile", "office", "--profile", "/", "--agent", "clerk", "--expires", "90d"],
    );
    assert!(key.starts_with("ty_") && key.len() == 84, "{key}");
    let plain = home.command(&["callers", "add", "plain"]).output().unwrap();
    assert_eq!(String::from_utf8(plain.stdout).unwrap().trim().len(), 84, "stdout is the key alone");
    insta::assert_snapshot!(home.run(&["callers", "add", "ci"]), @r"
    --- stderr
    error: there is or was a caller `ci`; names are not given to others
      hint: choose another name; for another key of a caller that is not revoked: toolyard callers rotate NAME
    --- exit 2
    ");
    insta::assert_snapshot!(home.run(&["callers", "revoke", "nobody"]), @r"
    --- stderr
    error: there is no caller `nobody`
      hint: list them: toolyard callers list
    --- exit 2
    ");
    let rotated = home.run(&["callers", "rotate", "ci"]);
    assert!(
        rotated.contains("the new one never expires; hint: toolyard callers rotate ci --expires"),
        "{rotated}"
    );
    let rotated = home.run(&["callers", "rotate", "ci", "--expires", "30d"]);
    assert!(!rotated.contains("never expires"), "{rotated}");
    assert!(home.run(&["callers", "revoke", "ci"]).contains("revoked ci"));
    insta::assert_snapshot!(home.run(&["callers", "revoke", "ci"]), @r"
    --- stderr
    error: caller `ci` is revoked already
      hint: its name is not given again; add a caller with another name: toolyard callers add NAME
    --- exit 2
    ");
    insta::assert_snapshot!(home.run(&["callers", "rotate", "ci"]), @r"
    --- stderr
    error: caller `ci` is revoked already
      hint: its name is not given again; add a caller with another name: toolyard callers add NAME
    --- exit 2
    ");
    let listed = home.command(&["--json", "callers", "list"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&listed[0]["name"], &listed[0]["status"]), (&json!("ci"), &json!("revoked")));
    assert_eq!(listed[0]["profiles"], json!(["office", "/"]));
    assert_eq!(listed[0]["agents"], json!(["clerk"]));
    assert_eq!((&listed[1]["status"], &listed[1]["profiles"]), (&json!("valid"), &Value::Null));
    let audit = home.run(&["audit", "tail", "--json"]);
    for decision in ["add caller ci with API key", "add caller plain with API key", "revoke caller ci"] {
        assert!(audit.contains(decision), "{decision}: {audit}");
    }
    assert!(!audit.contains(key.get(20..).unwrap()));
}

#[tokio::test]
async fn groups_limit_the_profiles_of_callers_that_a_proxy_names() {
    let home = home_with_settings(
        "[serve.profiles.greeting]\ntools = [\"greet\"]\n\
         [serve.proxy_identity]\nsubject_header = \"X-User\"\ngroups_header = \"X-Groups\"\n\
         trusted_addresses = [\"127.0.0.0/8\"]\n\
         [serve.groups]\nstaff = { profiles = [\"greeting\"] }\nops = {}\n",
    );
    let mut gateway = HttpGateway::start(&home, &[]);
    gateway.token = None;
    let statuses = async |user: &str, groups: &str| {
        let mut statuses = Vec::new();
        for (path, method) in [("", "tools/list"), ("", "resources/list"), ("/greeting", "tools/list")] {
            let request = gateway.build_request(path, method, &modern_params(json!({})));
            statuses.push(send(request.header("X-User", user).header("X-Groups", groups)).await.status);
        }
        statuses
    };
    assert_eq!(statuses("ada", "staff").await, [403, 403, 200]);
    assert_eq!(statuses("bob", "staff,ops").await, [200, 200, 200]);
    assert_eq!(statuses("eve", "guests").await, [403, 403, 403], "in no group that is listed");
}
