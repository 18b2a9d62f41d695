//! SIGHUP reloads the settings of a running gateway: calls, connections and sessions go on, invalid settings change nothing.

use serde_json::json;

use crate::{
    client::{HttpGateway, modern_params, send, tool_names},
    home_with_server,
    test_home::{TestHome, named_tool, wait_until},
};

const SETTINGS: &str = "config/toolyard/toolyard.toml";

/// Replaces the operator's settings.
fn edit_settings(home: &TestHome, edit: impl FnOnce(String) -> String) {
    let text = std::fs::read_to_string(home.path(SETTINGS)).unwrap();
    home.write(SETTINGS, &edit(text));
}

#[tokio::test]
async fn a_call_in_flight_survives_the_change_of_its_server() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let call = gateway.build_request(
        "",
        "tools/call",
        &modern_params(json!({"name": "wait", "arguments": {"seconds": 2, "name": "Ada"}})),
    );
    let in_flight = tokio::spawn(send(call));
    let called = home.path("fake.json.called");
    assert!(tokio::task::spawn_blocking(move || wait_until(10_000, || called.exists())).await.unwrap());
    edit_settings(&home, |text| text.replace("[servers.fake]", "[servers.fake]\ncall_timeout = \"90s\""));
    gateway.hang_up("settings reloaded; servers changed: fake").await;
    let again =
        gateway.send_request("", "tools/call", json!({"name": "greet", "arguments": {"name": "Eve"}}));
    assert_eq!(again.await["result"]["content"][0]["text"], "Hello, Eve!");
    let answer = in_flight.await.unwrap();
    assert_eq!(answer.body["result"]["content"][0]["text"], "Hello, Ada!", "{answer:?}");
    gateway.stop().await;
    home.assert_stopped("fake");
}

#[tokio::test]
async fn reloaded_settings_take_effect_and_sessions_go_on() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let initialize = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    let session = send(gateway.build_request("", "initialize", &initialize)).await.session.unwrap();

    // Another server and a profile are added, and a tool is denied.
    home.set_tools("other", &[named_tool("other_tool")]);
    let [program, script, tools] = home.server_command("other");
    let added = format!(
        "[servers.other]\ncommand = {program:?}\nargs = [{script:?}, {tools:?}]\n\
         [serve]\nallowed_hosts = [\"tools.example\"]\n[serve.profiles.few]\ntools = [\"greet\"]\n\
         [approvals]\ndeny = [\"calculate\"]\n"
    );
    edit_settings(&home, |text| format!("{text}\n{added}"));
    let list = || gateway.build_request("/few", "tools/list", &modern_params(json!({})));
    assert_eq!(send(list()).await.status, 404);
    gateway.hang_up("settings reloaded; servers added: other").await;

    let few = send(list().header("Host", "tools.example")).await;
    assert_eq!(tool_names(&few.body), ["greet", "read_result"]);
    let denied = json!({"name": "calculate", "arguments": {"expression": "6*7"}});
    let denied = gateway.send_request("", "tools/call", denied).await;
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    let legacy = |id: &str| {
        let list = gateway.build_request("", "tools/list", &json!({}));
        list.header("Mcp-Session-Id", id).header("MCP-Protocol-Version", "2025-06-18")
    };
    let mut names = json!(null);
    for _ in 0..200 {
        names = send(legacy(&session)).await.body;
        if tool_names(&names).contains(&"other_tool") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(tool_names(&names).contains(&"other_tool"), "the session goes on, with the new tool: {names}");
    gateway.stop().await;
    home.assert_stopped("other");
    let audit = home.run(&["audit", "tail"]);
    assert!(audit.contains("change settings"), "{audit}");
}

#[tokio::test]
async fn invalid_settings_change_nothing_and_are_reported() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let valid = std::fs::read_to_string(home.path(SETTINGS)).unwrap();
    let refused = "settings not reloaded, the previous ones stay in effect";
    let invalid = [
        ("[serve\n".to_owned(), "toolyard.toml"),
        (valid.replace("[servers.fake]", "[servers.fake]\nno_such_key = 1"), "no_such_key"),
        ("[serve]\nrequired_servers = [\"fake\"]\n".to_owned(), "server `fake` does not exist"),
        (format!("{valid}\n[serve]\ntoken = \"a literal token in the file\"\n"), "token"),
        (format!("{valid}\n[serve.profiles.\"a/b\"]\n"), "a/b"),
    ];
    for (text, reason) in invalid {
        home.write(SETTINGS, &text);
        gateway.hang_up(refused).await;
        // The gateway also watches the file: the first report may be about the text before.
        let is_reported = |line: &str| line.contains(refused) && line.contains(reason);
        for _ in 0..250 {
            if gateway.stderr().lines().any(is_reported) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert!(gateway.stderr().lines().any(is_reported), "{reason}: {}", gateway.stderr());
        let call = json!({"name": "greet", "arguments": {"name": "Ada"}});
        let answer = gateway.send_request("", "tools/call", call).await;
        assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!", "{answer}");
    }
    home.write(SETTINGS, &format!("{valid}\n[serve]\ndrain = \"1s\"\n"));
    gateway.hang_up("settings reloaded; these take effect after a restart: serve.drain").await;
    assert!(!gateway.stderr().contains("a literal token"), "{}", gateway.stderr());
    assert_eq!(home.started_pids("fake").len(), 2, "one for `servers test`, one for all calls");
}

#[tokio::test]
async fn a_new_token_ends_the_access_of_the_old_one() {
    let home = home_with_server();
    let mut gateway = HttpGateway::start(&home, &[]);
    let list = |gateway: &HttpGateway| gateway.build_request("", "tools/list", &modern_params(json!({})));
    assert_eq!(send(list(&gateway)).await.status, 200);
    std::fs::remove_file(home.path("data/toolyard/serve/token")).unwrap();
    gateway.hang_up("settings reloaded").await;
    assert_eq!(send(list(&gateway)).await.status, 401);
    let token = std::fs::read_to_string(home.path("data/toolyard/serve/token")).unwrap();
    gateway.token = Some(token.trim().to_owned());
    assert_eq!(send(list(&gateway)).await.status, 200);
}
