//! Clients that start the gateway on stdio.

use serde_json::json;

use crate::{
    client::{StdioGateway, modern_params, tool_names},
    home_with_server,
    test_home::{TestHome, greet_tool},
};

/// All native tools except `get_conversation_history`: calls of clients belong to no conversation.
const NATIVE_TOOLS: [&str; 4] = ["calculate", "get_time", "read_result", "search_web"];

#[test]
fn a_legacy_client_lists_and_calls_tools() {
    let home = home_with_server();
    let mut gateway = StdioGateway::new(&home, &[]);
    let initialize_params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    let initialized = gateway.send_request("initialize", initialize_params);
    assert_eq!(initialized["result"]["serverInfo"]["name"], "toolyard");
    gateway.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let listed = gateway.send_request("tools/list", json!({}));
    assert_eq!(
        tool_names(&listed),
        [&NATIVE_TOOLS[..1], &["get_time", "greet", "read_result", "search_web", "wait", "write_much"]]
            .concat()
    );
    assert!(home.started_pids("fake").len() == 1, "listing does not start the server again");
    let answer = gateway.send_request("tools/call", json!({"name": "greet", "arguments": {"name": "Ada"}}));
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!");
    assert_eq!(
        answer["result"]["x-extra"].to_string(),
        "1.5",
        "unknown fields of the server's result are passed on"
    );
    let invalid = gateway.send_request("tools/call", json!({"name": "greet", "arguments": {"name": 5}}));
    let text = invalid.to_string();
    assert!(text.contains("name") && !text.contains("toolyard"), "no command line advice for models: {text}");
    let wrong = gateway.send_request("tools/call", json!({"name": "gret", "arguments": {}}));
    assert_eq!(wrong["error"]["code"], -32602);
    assert!(wrong["error"]["message"].as_str().unwrap().contains("did you mean `greet`?"), "{wrong}");
    assert!(gateway.close());
    home.assert_stopped("fake");
}

#[test]
fn clients_get_the_instructions_of_trusted_servers() {
    let home = home_with_server();
    let state = json!({"tools": [greet_tool("Greets somebody")], "instructions": "Greet twice."});
    home.write("fake.json", &state.to_string());
    home.run(&["servers", "test"]);
    for is_trusted in [false, true] {
        if is_trusted {
            home.run(&["servers", "trust", "fake", "--yes"]);
        }
        let mut gateway = StdioGateway::new(&home, &[]);
        let initialize_params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
        let initialized = gateway.send_request("initialize", initialize_params);
        let instructions = initialized["result"]["instructions"].as_str().unwrap();
        assert!(instructions.starts_with("Tools of several servers at one endpoint."), "{instructions}");
        let of_server = "\n\nInstructions of server `fake`:\nGreet twice.";
        assert_eq!(instructions.ends_with(of_server), is_trusted, "{instructions}");
        assert!(gateway.close());
    }
}

#[test]
fn a_modern_client_needs_no_handshake() {
    let home = home_with_server();
    let mut gateway = StdioGateway::new(&home, &["--surface", "search"]);
    let listed = gateway.send_request("tools/list", modern_params(json!({})));
    assert_eq!(tool_names(&listed), ["call_tool", "describe_tool", "search_tools"]);
    let found = gateway.send_request(
        "tools/call",
        modern_params(json!({"name": "search_tools", "arguments": {"query": "greet somebody"}})),
    );
    let found = found["result"]["content"][0]["text"].as_str().unwrap();
    assert!(found.starts_with("greet(name?: string): Greets somebody"), "{found}");
    let call = json!({"name": "call_tool", "arguments": {"name": "greet", "arguments": {"name": "Ada"}}});
    let answer = gateway.send_request("tools/call", modern_params(call));
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!");
}

#[test]
fn a_profile_offers_a_subset_of_tools() {
    let home = home_with_server();
    let settings = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    let profile =
        "\n[serve]\noutput_budget = 0\n[serve.profiles.office]\nservers = [\"fake\"]\ndeny = [\"wait\"]\n";
    std::fs::write(&settings, text + profile).unwrap();
    let mut gateway = StdioGateway::new(&home, &["--profile", "office"]);
    assert_eq!(
        tool_names(&gateway.send_request("tools/list", modern_params(json!({})))),
        ["greet", "write_much"]
    );
    for name in ["wait", "calculate"] {
        let refused =
            gateway.send_request("tools/call", modern_params(json!({"name": name, "arguments": {}})));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    insta::assert_snapshot!(home.run(&["serve", "--stdio", "--profile", "offic"]), @r"
    --- stderr
    error: [serve] profile `offic` does not exist; known profiles: office
      hint: all settings: toolyard settings schema; check them: toolyard doctor
    --- exit 2
    ");
}

#[test]
fn an_untrusted_project_cannot_change_serve() {
    let home = home_with_server();
    let settings = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text + "\n[serve]\nsurface = \"search\"\n").unwrap();
    home.write("project/toolyard.toml", "[serve]\nsurface = \"full\"\n");
    let mut gateway = StdioGateway::new(&home, &[]);
    assert_eq!(
        tool_names(&gateway.send_request("tools/list", modern_params(json!({})))).len(),
        3,
        "the operator's settings win"
    );
    drop(gateway);
    home.run(&["trust", "--yes"]);
    let mut gateway = StdioGateway::new(&home, &[]);
    assert_eq!(tool_names(&gateway.send_request("tools/list", modern_params(json!({})))).len(), 7);
}

#[test]
fn a_denied_tool_is_never_called_for_a_client_or_the_command_line() {
    let home = home_with_server();
    let settings = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text + "\n[approvals]\ndeny = [\"greet@fake\"]\n").unwrap();
    let before = home.calls("fake").len();
    let direct = json!({"name": "greet", "arguments": {"name": "Ada"}});
    let through_search = json!({"name": "call_tool", "arguments": direct});
    for (surface, call) in [("full", direct), ("search", through_search)] {
        let mut gateway = StdioGateway::new(&home, &["--surface", surface]);
        let listed = gateway.send_request("tools/list", modern_params(json!({})));
        assert!(!tool_names(&listed).contains(&"greet"), "{listed}");
        let search = json!({"name": "search_tools", "arguments": {"query": "greet somebody"}});
        let found = gateway.send_request("tools/call", modern_params(search)).to_string();
        assert!(!found.contains("greet("), "{found}");
        let answer = gateway.send_request("tools/call", modern_params(call)).to_string();
        assert!(answer.contains("deny calls of this tool") && !answer.contains("Hello"), "{answer}");
    }
    let listed = home.run(&["tools", "list"]);
    let row = listed.lines().find(|line| line.starts_with("greet")).unwrap_or_default();
    assert!(row.contains(" denied "), "the operator sees it: {listed}");
    assert!(!home.run(&["tools", "search", "greet somebody"]).contains("greet  "));
    let output = home.run(&["call", "greet", "--args", r#"{"name":"Ada"}"#]);
    assert!(output.contains("deny calls of this tool") && output.contains("--- exit"), "{output}");
    assert_eq!(home.calls("fake").len(), before);
}

#[test]
fn serve_works_without_settings() {
    let home = TestHome::new();
    let mut gateway = StdioGateway::new(&home, &[]);
    assert_eq!(tool_names(&gateway.send_request("tools/list", modern_params(json!({})))), NATIVE_TOOLS);
}

#[test]
fn journal_always_records_served_calls() {
    let home = home_with_server();
    let settings = home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("journal = \"always\"\n{text}")).unwrap();
    let mut gateway = StdioGateway::new(&home, &[]);
    let answer = gateway
        .send_request("tools/call", modern_params(json!({"name": "greet", "arguments": {"name": "Ada"}})));
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!");
    assert!(gateway.close());
    let runs = home.run(&["runs", "list"]);
    assert!(runs.contains("call") && runs.contains("done"), "{runs}");
}
