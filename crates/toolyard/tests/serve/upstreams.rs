//! Unavailable servers: other tools are listed in time, with a note, and the server reconnects.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    client::{HttpGateway, names},
    test_home::{TestHome, greet},
};

/// Adds a server to the settings whose program does not exist yet.
fn configure(home: &TestHome, server: &str) {
    let [program, script, settings] = home.words(server);
    let file = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let table = format!("\n[servers.{server}]\ncommand = {program:?}\nargs = [{script:?}, {settings:?}]\n");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text + &table).unwrap();
}

#[tokio::test]
async fn a_dead_server_delays_no_other_and_reconnects() {
    let home = TestHome::new();
    home.add("fake", &[]);
    home.run(&["servers", "test"]);
    configure(&home, "late");
    let hub = HttpGateway::start(&home, &[]);
    let began = Instant::now();
    let listed = hub.ask("", "tools/list", json!({})).await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(names(&listed).contains(&"greet") && !names(&listed).contains(&"late_tool"), "{listed}");
    let notes = listed["result"]["_meta"]["toolyard/notes"].to_string();
    assert!(notes.contains("late is down (the server exited"), "{listed}");
    let mut tool = greet("Comes late");
    tool["name"] = json!("late_tool");
    home.offer("late", &[tool]);
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let listed = hub.ask("", "tools/list", json!({})).await;
        if names(&listed).contains(&"late_tool") {
            assert!(listed["result"]["_meta"].get("toolyard/notes").is_none(), "{listed}");
            break;
        }
        assert!(Instant::now() < until, "{listed} {}", hub.stderr());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let answer = hub.ask("", "tools/call", json!({"name": "late_tool", "arguments": {"name": "Ada"}})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!");
    tokio::time::sleep(Duration::from_millis(600)).await;
    let said = hub.stderr();
    assert!(said.contains("late: down: ") && said.contains("late: ready, 1 tool"), "{said}");
}
