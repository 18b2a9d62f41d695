//! Watching server files: changes are applied while other servers keep running.

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::json;
use toolyard::{ServerFileWatcher, ServersSetup, Toolyard, read_servers};

const POLL_INTERVAL: Duration = Duration::from_millis(30);

/// A fake server that offers `greet_NAME`, as an entry of an `mcp.json`.
fn server_entry(folder: &Path, name: &str) -> serde_json::Value {
    let program = folder.join("server.py");
    std::fs::write(&program, include_str!("../common/fake_server.py")).unwrap();
    let tool = json!({"name": format!("greet_{name}"), "inputSchema": {"type": "object"}});
    let settings = folder.join(format!("{name}.json"));
    std::fs::write(&settings, json!({"tools": [tool]}).to_string()).unwrap();
    json!({"command": "python3", "args": [program, settings]})
}

fn start_count(folder: &Path, name: &str) -> usize {
    std::fs::read_to_string(folder.join(format!("{name}.json.pids"))).unwrap_or_default().lines().count()
}

async fn wait_for(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..500 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(condition(), "timed out waiting for {what}");
}

#[tokio::test]
async fn changed_files_are_applied_and_invalid_ones_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = folder.join("mcp.json");
    let write_servers = |servers: serde_json::Value| {
        let draft = folder.join("draft");
        std::fs::write(&draft, json!({ "mcpServers": servers }).to_string()).unwrap();
        std::fs::rename(draft, &file).unwrap();
    };
    let (one, two, three) =
        (server_entry(folder, "one"), server_entry(folder, "two"), server_entry(folder, "three"));
    write_servers(json!({"one": one, "two": two}));

    let mut setup = ServersSetup::new(read_servers(std::slice::from_ref(&file)).unwrap(), folder.to_owned());
    setup.environment = std::env::vars().collect();
    let toolyard = Arc::new(Toolyard::builder().servers(setup).build().await.unwrap());
    let manager = toolyard.servers().unwrap();
    manager.discover().await;
    let has_tool = |tool: &str| toolyard.hub().snapshot().find(tool).is_some();
    assert!(has_tool("greet_one") && has_tool("greet_two"));
    let session = manager.server("one").unwrap().live_session().unwrap();

    let watch = ServerFileWatcher::new(vec![file.clone()]).poll_interval(POLL_INTERVAL).watch(&toolyard);
    write_servers(json!({"one": one, "three": three}));
    wait_for("a new server's tool", || has_tool("greet_three")).await;
    assert!(!has_tool("greet_two"), "the tools of a removed server are gone");
    let same = manager.server("one").unwrap().live_session().unwrap();
    assert!(Arc::ptr_eq(&session, &same), "an unchanged server keeps its session");
    assert_eq!(start_count(folder, "one"), 1);

    std::fs::write(&file, "{\"mcpServers\": {\"one\": ").unwrap();
    tokio::time::sleep(POLL_INTERVAL * 10).await;
    assert!(has_tool("greet_one") && has_tool("greet_three"), "a truncated file changes nothing");

    write_servers(json!({"three": three}));
    wait_for("the end of a server's tools", || !has_tool("greet_one")).await;
    assert_eq!(start_count(folder, "three"), 1, "an unchanged server is not started again");
    assert!(toolyard.call("greet_three", json!({"name": "Ada"})).await.is_ok());

    drop(watch);
    tokio::time::sleep(POLL_INTERVAL * 2).await;
    write_servers(json!({}));
    tokio::time::sleep(POLL_INTERVAL * 10).await;
    assert!(has_tool("greet_three"), "a dropped watcher no longer applies changes");
    toolyard.close().await.unwrap();
}

#[tokio::test]
async fn reloading_without_servers_is_an_error() {
    let toolyard = Toolyard::builder().build().await.unwrap();
    assert!(toolyard.reload_servers(Vec::new()).await.is_err());
}
