//! Unavailable servers: other tools are listed in time, with a note, and the server reconnects.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    client::{HttpGateway, tool_names},
    test_home::{TestHome, greet_tool},
};

/// Adds a server to the settings that cannot start yet, because the file with its tools does not exist.
fn configure(home: &TestHome, server: &str) {
    let [program, script, settings] = home.server_command(server);
    let file = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let table = format!("\n[servers.{server}]\ncommand = {program:?}\nargs = [{script:?}, {settings:?}]\n");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text + &table).unwrap();
}

#[tokio::test]
async fn a_dead_server_delays_no_other_and_reconnects() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    home.run(&["servers", "test"]);
    configure(&home, "late");
    let gateway = HttpGateway::start(&home, &[]);
    let start = Instant::now();
    let listed = gateway.send_request("", "tools/list", json!({})).await;
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert!(
        tool_names(&listed).contains(&"greet") && !tool_names(&listed).contains(&"late_tool"),
        "{listed}"
    );
    let notes = listed["result"]["_meta"]["toolyard/notes"].to_string();
    assert!(notes.contains("late is down (the server exited"), "{listed}");
    let mut tool = greet_tool("Comes late");
    tool["name"] = json!("late_tool");
    home.set_tools("late", &[tool]);
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let listed = gateway.send_request("", "tools/list", json!({})).await;
        if tool_names(&listed).contains(&"late_tool") {
            assert!(listed["result"]["_meta"].get("toolyard/notes").is_none(), "{listed}");
            break;
        }
        assert!(Instant::now() < deadline, "{listed} {}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let answer = gateway
        .send_request("", "tools/call", json!({"name": "late_tool", "arguments": {"name": "Ada"}}))
        .await;
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!");
    tokio::time::sleep(Duration::from_millis(600)).await;
    let stderr = gateway.stderr();
    assert!(stderr.contains("late: down: ") && stderr.contains("late: ready, 1 tool"), "{stderr}");
}
