//! Clients that start the hub.

use serde_json::json;

use crate::{
    client::{Started, modern, names},
    place::Place,
    yard,
};

const NATIVE: [&str; 5] = ["calculate", "get_conversation_history", "get_time", "read_result", "search_web"];

#[test]
fn an_old_client_lists_calls_and_leaves() {
    let place = yard();
    let mut hub = Started::new(&place, &[]);
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    let about = hub.ask("initialize", hello);
    assert_eq!(about["result"]["serverInfo"]["name"], "toolyard");
    hub.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let listed = hub.ask("tools/list", json!({}));
    assert_eq!(
        names(&listed),
        [&NATIVE[..2], &["get_time", "greet", "read_result", "search_web", "wait", "write_much"]].concat()
    );
    assert!(place.starts("fake").len() == 1, "it was started for `servers test` only");
    let answer = hub.ask("tools/call", json!({"name": "greet", "arguments": {"name": "Ada"}}));
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!");
    assert_eq!(answer["result"]["x-extra"].to_string(), "1.5", "what the server sent besides comes too");
    let wrong = hub.ask("tools/call", json!({"name": "gret", "arguments": {}}));
    assert_eq!(wrong["error"]["code"], -32602);
    assert!(wrong["error"]["message"].as_str().unwrap().contains("did you mean `greet`?"), "{wrong}");
    assert!(hub.leave());
    place.assert_gone("fake");
}

#[test]
fn a_new_client_needs_no_introduction() {
    let place = yard();
    let mut hub = Started::new(&place, &["--surface", "search"]);
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
fn a_profile_is_a_part_of_the_hub() {
    let place = yard();
    let settings = place.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    let profile = "\n[serve.profiles.office]\nservers = [\"fake\"]\ndeny = [\"wait\"]\nbudget = 0\n";
    std::fs::write(&settings, text + profile).unwrap();
    let mut hub = Started::new(&place, &["--profile", "office"]);
    assert_eq!(names(&hub.ask("tools/list", modern(json!({})))), ["greet", "write_much"]);
    for name in ["wait", "calculate"] {
        let refused = hub.ask("tools/call", modern(json!({"name": name, "arguments": {}})));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    insta::assert_snapshot!(place.run(&["serve", "--stdio", "--profile", "offic"]), @r"
    --- stderr
    error: [serve] no profile is called `offic`: there are office
      hint: schema/toolyard.schema.json describes toolyard.toml; `toolyard doctor` checks it
    --- exit 2
    ");
}

#[test]
fn a_project_that_nobody_trusts_has_no_say() {
    let place = yard();
    let settings = place.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text + "\n[serve]\nsurface = \"search\"\n").unwrap();
    place.write("project/toolyard.toml", "[serve]\nsurface = \"full\"\n");
    let mut hub = Started::new(&place, &[]);
    assert_eq!(names(&hub.ask("tools/list", modern(json!({})))).len(), 3, "the operator's word counts");
    drop(hub);
    place.run(&["trust", "--yes"]);
    let mut hub = Started::new(&place, &[]);
    assert_eq!(names(&hub.ask("tools/list", modern(json!({})))).len(), 8);
}

#[test]
fn nothing_is_needed_at_all() {
    let place = Place::new();
    let mut hub = Started::new(&place, &[]);
    assert_eq!(names(&hub.ask("tools/list", modern(json!({})))), NATIVE);
}

#[test]
fn calls_are_journalled_where_all_are() {
    let place = yard();
    let settings = place.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("journal = \"always\"\n{text}")).unwrap();
    let mut hub = Started::new(&place, &[]);
    let answer = hub.ask("tools/call", modern(json!({"name": "greet", "arguments": {"name": "Ada"}})));
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!");
    assert!(hub.leave());
    let runs = place.run(&["runs", "list"]);
    assert!(runs.contains("call") && runs.contains("done"), "{runs}");
}
