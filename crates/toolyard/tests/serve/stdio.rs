//! Clients that start the gateway on stdio.

use serde_json::json;

use crate::{
    client::{StdioGateway, modern, names},
    fixture,
    test_home::TestHome,
};

const NATIVE: [&str; 5] = ["calculate", "get_conversation_history", "get_time", "read_result", "search_web"];

#[test]
fn a_legacy_client_lists_and_calls_tools() {
    let home = fixture();
    let mut hub = StdioGateway::new(&home, &[]);
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    let about = hub.ask("initialize", hello);
    assert_eq!(about["result"]["serverInfo"]["name"], "toolyard");
    hub.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let listed = hub.ask("tools/list", json!({}));
    assert_eq!(
        names(&listed),
        [&NATIVE[..2], &["get_time", "greet", "read_result", "search_web", "wait", "write_much"]].concat()
    );
    assert!(home.starts("fake").len() == 1, "it was started for `servers test` only");
    let answer = hub.ask("tools/call", json!({"name": "greet", "arguments": {"name": "Ada"}}));
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!");
    assert_eq!(answer["result"]["x-extra"].to_string(), "1.5", "what the server sent besides comes too");
    let wrong = hub.ask("tools/call", json!({"name": "gret", "arguments": {}}));
    assert_eq!(wrong["error"]["code"], -32602);
    assert!(wrong["error"]["message"].as_str().unwrap().contains("did you mean `greet`?"), "{wrong}");
    assert!(hub.leave());
    home.assert_gone("fake");
}

#[test]
fn a_modern_client_needs_no_handshake() {
    let home = fixture();
    let mut hub = StdioGateway::new(&home, &["--surface", "search"]);
    let listed = hub.ask("tools/list", modern(json!({})));
    assert_eq!(names(&listed), ["call_tool", "describe_tool", "search_tools"]);
    let found = hub
        .ask("tools/call", modern(json!({"name": "search_tools", "arguments": {"query": "greet somebody"}})));
    let found = found["result"]["content"][0]["text"].as_str().unwrap();
    assert!(found.starts_with("greet(name?: string): Greets somebody"), "{found}");
    let call = json!({"name": "call_tool", "arguments": {"name": "greet", "arguments": {"name": "Ada"}}});
    let answer = hub.ask("tools/call", modern(call));
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!");
}

#[test]
fn a_profile_offers_a_subset_of_tools() {
    let home = fixture();
    let settings = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    let profile = "\n[serve.profiles.office]\nservers = [\"fake\"]\ndeny = [\"wait\"]\noutput_budget = 0\n";
    std::fs::write(&settings, text + profile).unwrap();
    let mut hub = StdioGateway::new(&home, &["--profile", "office"]);
    assert_eq!(names(&hub.ask("tools/list", modern(json!({})))), ["greet", "write_much"]);
    for name in ["wait", "calculate"] {
        let refused = hub.ask("tools/call", modern(json!({"name": name, "arguments": {}})));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    insta::assert_snapshot!(home.run(&["serve", "--stdio", "--profile", "offic"]), @r"
    --- stderr
    error: [serve] profile `offic` does not exist; known profiles: office
      hint: schema/toolyard.schema.json describes toolyard.toml; `toolyard doctor` checks it
    --- exit 2
    ");
}

#[test]
fn an_untrusted_project_cannot_change_serve() {
    let home = fixture();
    let settings = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text + "\n[serve]\nsurface = \"search\"\n").unwrap();
    home.write("project/toolyard.toml", "[serve]\nsurface = \"full\"\n");
    let mut hub = StdioGateway::new(&home, &[]);
    assert_eq!(names(&hub.ask("tools/list", modern(json!({})))).len(), 3, "the operator's word counts");
    drop(hub);
    home.run(&["trust", "--yes"]);
    let mut hub = StdioGateway::new(&home, &[]);
    assert_eq!(names(&hub.ask("tools/list", modern(json!({})))).len(), 8);
}

#[test]
fn serve_works_without_settings() {
    let home = TestHome::new();
    let mut hub = StdioGateway::new(&home, &[]);
    assert_eq!(names(&hub.ask("tools/list", modern(json!({})))), NATIVE);
}

#[test]
fn journal_always_records_served_calls() {
    let home = fixture();
    let settings = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("journal = \"always\"\n{text}")).unwrap();
    let mut hub = StdioGateway::new(&home, &[]);
    let answer = hub.ask("tools/call", modern(json!({"name": "greet", "arguments": {"name": "Ada"}})));
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!");
    assert!(hub.leave());
    let runs = home.run(&["runs", "list"]);
    assert!(runs.contains("call") && runs.contains("done"), "{runs}");
}
