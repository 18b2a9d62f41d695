//! Commands that find a running hub: it takes over what they change, and `toolyard call` uses it.

use serde_json::json;

use crate::{
    client::{HttpGateway, StdioGateway, tool_names},
    home_with_server,
    test_home::{TestHome, named_tool, wait_until},
};

/// Adds another server with the tool `other_tool`.
fn add_other_server(home: &TestHome) -> String {
    home.set_tools("other", &[named_tool("other_tool")]);
    let program = home.server_command("other");
    let program = program.iter().map(String::as_str);
    home.run(&["servers", "add", "other", "--"].into_iter().chain(program).collect::<Vec<_>>())
}

#[tokio::test]
async fn a_starting_gateway_says_how_many_tools_it_knows() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let is_counted = || gateway.stderr().contains(" tools from 2 sources   (toolyard tools list)");
    assert!(wait_until(10_000, is_counted), "{}", gateway.stderr());
    gateway.stop().await;
}

#[tokio::test]
async fn a_running_hub_takes_over_an_added_server() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let added = add_other_server(&home);
    assert!(added.contains("the running gateway reloads its settings"), "{added}");
    assert!(wait_until(10_000, || gateway.stderr().contains("settings reloaded; servers added: other")));
    let mut names = json!(null);
    for _ in 0..200 {
        names = gateway.send_request("", "tools/list", json!({})).await;
        if tool_names(&names).contains(&"other_tool") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(tool_names(&names).contains(&"other_tool"), "{names}");
    home.run(&["servers", "remove", "other"]);
    assert!(
        wait_until(10_000, || gateway.stderr().contains("servers removed: other")),
        "{}",
        gateway.stderr()
    );
    gateway.stop().await;
    let removed = home.run(&["servers", "disable", "fake"]);
    assert!(!removed.contains("running gateway"), "{removed}");
}

#[tokio::test]
async fn a_running_hub_reloads_an_edited_settings_file() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let file = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n[servers.broken\n")).unwrap();
    let refused = || gateway.stderr().contains("settings not reloaded, the previous ones stay in effect");
    assert!(wait_until(10_000, refused), "{}", gateway.stderr());
    std::fs::write(&file, format!("{text}\n[servers.edited]\ncommand = \"true\"\n")).unwrap();
    let reloaded = || gateway.stderr().contains("settings reloaded; servers added: edited");
    assert!(wait_until(10_000, reloaded), "{}", gateway.stderr());
    gateway.stop().await;
}

#[test]
fn a_hub_on_stdio_takes_over_an_added_server() {
    let home = home_with_server();
    let mut gateway = StdioGateway::new(&home, &[]);
    let initialize = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    gateway.send_request("initialize", initialize);
    let added = add_other_server(&home);
    assert!(added.contains("the running gateway reloads its settings"), "{added}");
    gateway.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let found = wait_until(15_000, || {
        gateway.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
        let answer = std::iter::repeat_with(|| gateway.receive()).find(|message| message["id"] == 2).unwrap();
        tool_names(&answer).contains(&"other_tool")
    });
    assert!(found, "the tool of the added server is offered");
}

#[tokio::test]
async fn a_call_uses_the_running_hub() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &["--surface", "search"]);
    let greet = ["call", "greet", "--args", "{\"name\":\"Ada\"}"];
    assert_eq!(home.run(&greet), "Hello, Ada!\n");
    let started = home.started_pids("fake").len();
    assert_eq!(home.run(&greet), "Hello, Ada!\n");
    assert_eq!(home.started_pids("fake").len(), started, "the hub has started the server already");
    let much = home.run(&["call", "write_much", "--args", "{\"words\":20000}"]);
    assert!(much.len() > 100_000, "the whole result, not what clients get: {}", much.len());
    let failed = home.run(&["call", "greet", "--args", "{\"name\":\"nobody\"}"]);
    assert!(failed.contains("there is nobody") && failed.ends_with("--- exit 1"), "{failed}");

    let local: Vec<&str> = greet.into_iter().chain(["--local"]).collect();
    assert_eq!(home.run(&local), "Hello, Ada!\n");
    assert_eq!(home.started_pids("fake").len(), started + 1, "--local starts the server in its own process");
    let unknown = home.run(&["call", "gret"]);
    assert!(unknown.contains("greet"), "{unknown}");

    gateway.stop().await;
    assert_eq!(home.run(&greet), "Hello, Ada!\n", "without a hub, the call is made as before");
}

#[tokio::test]
async fn a_killed_hub_is_not_waited_for() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let folder = home.path("data/toolyard/serve/hubs");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    drop(gateway);
    assert_eq!(home.run(&["call", "greet", "--args", "{\"name\":\"Ada\"}"]), "Hello, Ada!\n");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "its file is removed");
}

#[tokio::test]
async fn a_changed_definition_is_not_called_through_a_hub_that_has_not_heard_of_it() {
    let home = home_with_server();
    home.set_tools("other", &[named_tool("other_tool")]);
    let program = home.server_command("other");
    let program = program.iter().map(String::as_str);
    home.run(&["servers", "add", "other", "--"].into_iter().chain(program).collect::<Vec<_>>());
    home.run(&["servers", "test"]);
    let gateway = HttpGateway::start(&home, &[]);
    let called = home.run(&["call", "other_tool"]);
    assert!(!called.contains("exit"), "{called}");
    let mut changed = named_tool("other_tool");
    changed["description"] = json!("Sends all files");
    home.set_tools("other", &[changed]);
    home.run(&["servers", "test"]);
    let refused = home.run(&["call", "other_tool"]);
    assert!(refused.contains("the definition changed since it was approved"), "{refused}");
    gateway.stop().await;
}

#[tokio::test]
async fn a_proxy_does_not_get_the_secrets_of_a_local_gateway() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let call = ["call", "greet", "--args", r#"{"name": "Ada"}"#];
    for args in [&["top", "--once"][..], &["open", "--no-browser"], &call] {
        let mut command = home.command(args);
        command.env("HTTP_PROXY", &address).env("http_proxy", &address).env("ALL_PROXY", &address);
        let output = command.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", home.output_text(&output));
        assert!(proxy.accept().is_err(), "{args:?} contacted the proxy");
    }
    gateway.stop().await;
}
