//! Tools that are known before their server was seen, and tools that are not offered.

use std::{
    net::{SocketAddr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::json;

use crate::test_home::{TestHome, greet_tool, named_tool};

#[test]
fn cached_tools_of_a_file_are_used_until_the_server_was_seen() {
    let home = TestHome::new();
    let [program, script, settings] = home.server_command("fake");
    let notes = json!({"name": "read_notes", "description": "Reads the notes of a meeting"});
    let server = json!({
        "command": program,
        "args": [script, settings],
        "cached_tools": [greet_tool("Greets somebody"), notes],
    });
    home.write("config/toolyard/mcp.json", &json!({"mcpServers": {"fake": server}}).to_string());
    // The server cannot start yet.
    let listed = home.run(&["tools", "list"]);
    assert!(listed.contains("greet") && listed.contains("read_notes"), "{listed}");
    let found = home.run(&["tools", "search", "notes of a meeting"]);
    assert!(found.contains("read_notes"), "{found}");
    let shown = home.run(&["tools", "show", "read_notes"]);
    assert!(shown.contains("Reads the notes of a meeting"), "{shown}");

    home.set_tools("fake", &[greet_tool("Greets somebody")]);
    home.run(&["servers", "test"]);
    let called = home.run(&["call", "greet", "--args", r#"{"name":"Ada"}"#]);
    assert!(called.contains("Hello, Ada!"), "{called}");
    let listed = home.run(&["tools", "list"]);
    assert!(listed.contains("greet") && !listed.contains("read_notes"), "the server decides: {listed}");
}

#[test]
fn a_tool_that_can_only_be_called_as_a_task_is_not_offered() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    let mut research = named_tool("research");
    research["execution"] = json!({"taskSupport": "required"});
    home.set_tools("fake", &[greet_tool("Greets somebody"), research]);
    let listed = home.run(&["tools", "list"]);
    let is_listed = |name: &str| listed.lines().any(|line| line.split_whitespace().next() == Some(name));
    assert!(is_listed("greet") && !is_listed("research"), "{listed}");
    assert!(
        listed.contains(
            "note: new server fake, 1 tool enabled: greet; 1 not offered, because it can only be called as a task: toolyard servers show fake"
        ),
        "{listed}"
    );
    let shown = home.run(&["servers", "show", "fake"]);
    assert!(
        shown.contains("Note on research: the tool is not offered, because it can only be called as a task"),
        "{shown}"
    );
}

#[test]
fn testing_a_server_names_only_the_tools_that_are_offered() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    let settings = "config/toolyard/toolyard.toml";
    let text = std::fs::read_to_string(home.path(settings)).unwrap();
    home.write(settings, &format!("{text}without_tools = [\"hidden\"]\n"));
    let mut research = named_tool("research");
    research["execution"] = json!({"taskSupport": "required"});
    home.set_tools("fake", &[greet_tool("Greets somebody"), named_tool("hidden"), research]);
    insta::assert_snapshot!(home.run(&["servers", "test"]), @r"
    fake   ready in N s, protocol 2025-06-18, 1 tool; 1 not offered, because it can only be called as a task; 1 not offered, because of the server's settings
    --- stderr
      fake: new tools, now enabled: greet
    ");
    insta::assert_snapshot!(home.run(&["servers", "list"]), @r"
    NAME  STATE        TOOLS  NOTE  ENDPOINT
    fake  not running  1            python3 HOME/server.py HOME/fake.json
    ");
}

/// A home with a server at the address, and these settings.
fn home_with_server_at(address: SocketAddr, settings: &str) -> TestHome {
    let home = TestHome::new();
    let server = json!({"url": format!("http://{address}/mcp"), "cached_tools": [named_tool("look")]});
    home.write("config/toolyard/mcp.json", &json!({"mcpServers": {"down": server}}).to_string());
    home.write("config/toolyard/toolyard.toml", settings);
    home
}

#[test]
fn every_attempt_after_a_failed_connection_contacts_the_server() {
    // Without hints, the tool is not known to be safe to repeat.
    for settings in ["[hints.down.look]\nread_only = true\n", ""] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let home = home_with_server_at(listener.local_addr().unwrap(), settings);
        let contacts = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&contacts);
        // Accepts every connection and closes it.
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                counter.fetch_add(1, Ordering::Relaxed);
                drop(connection);
            }
        });
        let failed = home.run(&["call", "look", "--args", "{}"]);
        assert!(failed.contains("--- exit 3"), "{failed}");
        assert_eq!(contacts.load(Ordering::Relaxed), 3, "{settings}{failed}");
    }
}

#[test]
fn a_refused_connection_is_tried_again_because_nothing_was_sent() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let home = home_with_server_at(address, "");
    let failed = home.run(&["call", "look", "--args", "{}", "--explain"]);
    assert!(failed.contains("attempt 3 of 3 after a pause: nothing was sent"), "{failed}");
    assert!(failed.contains("no: no attempts left") && failed.contains("--- exit 3"), "{failed}");
}
