//! Every way to ask for an approval shows every value of the arguments, however much is around it.

use serde_json::{Value, json};

use super::{
    Fixture,
    runs_api::RunsApi,
    terminal::{run_at_terminal, terminal_output},
};
use crate::client::{HttpGateway, StdioGateway};

const HIDDEN: &str = "HIDDEN-COMMAND";

/// Scripts a call with a value between 60 KB and 60 KB of others, and one very long value.
fn script_hidden_value(fixture: &Fixture) {
    let padding: Vec<String> = (0..4).map(|_| "h".repeat(15_000)).collect();
    let long = format!("LONG-BEGIN{}LONG-END", "x".repeat(20_000));
    let text = json!({"before": padding, "hidden": HIDDEN, "long": long, "after": padding, "last": 1});
    let step = json!({"id": "write", "tool_type": "write_note", "arguments": {"text": text}});
    fixture.model.script_plan("much", &json!([step]));
    fixture.model.script_answer("much", "Done.");
}

fn assert_complete(surface: &str, text: &str) {
    // Terminals wrap long values and indent the lines.
    let text: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    for expected in [HIDDEN, "LONG-BEGIN", "LONG-END", "of20018charactersomitted;blake3", "\"last\":1"] {
        assert!(text.contains(expected), "{surface} does not show {expected}");
    }
    assert!(text.matches(&"h".repeat(15_000)).count() >= 8, "{surface} does not show all values");
}

#[test]
fn the_command_line_shows_every_value() {
    let fixture = Fixture::new();
    script_hidden_value(&fixture);
    assert!(fixture.run(&["ask", "much"]).ends_with("--- exit 6"));
    assert_complete("runs show", &fixture.home.run(&["runs", "show", "last"]));
    assert_complete(
        "runs show --json",
        &fixture.home.run(&["runs", "show", "last", "--json"]).replace('\\', ""),
    );
    assert_complete("runs approve", &fixture.home.run(&["runs", "approve", "last", "--yes", "--no-resume"]));
    assert!(fixture.notes().is_empty());
}

#[test]
fn the_terminal_approves_nothing_that_was_not_shown() {
    let fixture = Fixture::new();
    script_hidden_value(&fixture);
    let answers = json!([
        ["etails", "y\n"],
        ["see [d]etails first", "a\n"],
        ["see [d]etails first", "d\n"],
        ["\"last\": 1", "n\n"]
    ]);
    let written = terminal_output(&fixture, &["ask", "much"], &answers);
    assert!(
        written.contains("denied by") && fixture.notes().is_empty(),
        "a decision counted before the details"
    );
    let details = written.rsplit("see [d]etails first").next().unwrap();
    assert_complete("the prompt", details);

    // Short arguments are complete at once.
    fixture.script_note();
    let screen = run_at_terminal(&fixture, &["ask", "note it"], &json!([["etails", "y\n"]]));
    assert!(screen.contains("I wrote it down."), "{screen}");
}

#[test]
fn runs_approve_shows_the_call_before_it_asks_at_a_terminal() {
    let fixture = Fixture::new();
    script_hidden_value(&fixture);
    fixture.run(&["ask", "much"]);
    let denied = terminal_output(&fixture, &["runs", "approve", "last"], &json!([["[y/N]", "n\n"]]));
    assert_complete("runs approve at a terminal", denied.split("[y/N]").next().unwrap());
    assert!(denied.contains("the call was not approved") && fixture.notes().is_empty(), "{denied}");
    terminal_output(&fixture, &["runs", "approve", "last"], &json!([["[y/N]", "y\n"]]));
    assert_eq!(fixture.notes().len(), 1);
}

#[tokio::test]
async fn the_http_api_shows_every_value() {
    let fixture = Fixture::new();
    script_hidden_value(&fixture);
    let runs = RunsApi(HttpGateway::start(&fixture.home, &[]));
    let (_, created) = runs.post("/runs", &json!({"question": "much"})).await;
    let run = created["run"].as_str().unwrap();
    let status = runs.wait_for(run, |status| status["state"] == "suspended").await;
    assert_complete("GET /runs/ID", status["pending_approvals"][0]["text"].as_str().unwrap());
}

#[test]
fn an_elicitation_shows_every_value() {
    let fixture = Fixture::new();
    script_hidden_value(&fixture);
    let mut gateway = StdioGateway::new(&fixture.home, &[]);
    let client = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "1"}});
    gateway.send_request("initialize", client);
    gateway.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let call = json!({"name": "ask_agent", "arguments": {"question": "much"}});
    gateway.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}));
    let request: Value = loop {
        let message = gateway.receive();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    assert_complete("the elicitation", request["params"]["message"].as_str().unwrap());
    let declined = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"action": "decline"}});
    gateway.send(&declined);
    while gateway.receive()["id"] != 7 {}
    assert!(gateway.close() && fixture.notes().is_empty());
}
