//! The MCP tool `ask_agent`.

use serde_json::{Value, json};

use super::Fixture;
use crate::client::{HttpGateway, StdioGateway, modern_meta, modern_params, send, tool_names};

fn ask_agent_params(question: &str) -> Value {
    json!({"name": "ask_agent", "arguments": {"question": question}})
}

#[tokio::test]
async fn a_client_delegates_a_question() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture.append_settings(
        "[approvals]\nallow = [\"write_note\"]\n[serve.profiles.office]\ntools = [\"get_time\"]\n",
    );
    let gateway = HttpGateway::start(&fixture.home, &[]);
    assert!(tool_names(&gateway.send_request("", "tools/list", json!({})).await).contains(&"ask_agent"));
    assert_eq!(
        tool_names(&gateway.send_request("/office", "tools/list", json!({})).await),
        ["get_time", "read_result"],
        "a profile that restricts tools has no `ask_agent`: agents reach every tool"
    );
    let answer = gateway.send_request("", "tools/call", ask_agent_params("note it")).await;
    assert_eq!(answer["result"]["content"][0]["text"], "I wrote it down.", "{answer}");
    let plan = fixture.model.requests()[0].to_string();
    assert!(
        plan.contains("write_note") && !plan.contains("ask_agent"),
        "an agent cannot ask an agent: {plan}"
    );
    let wrong = gateway
        .send_request(
            "",
            "tools/call",
            json!({"name": "ask_agent", "arguments": {"agent": "nobody", "question": "x"}}),
        )
        .await;
    assert!(wrong.to_string().contains("nobody"), "{wrong}");
}

#[tokio::test]
async fn ask_agent_can_be_disabled() {
    let fixture = Fixture::new();
    fixture.append_settings("[serve]\nagents = false\n");
    let gateway = HttpGateway::start(&fixture.home, &[]);
    assert!(!tool_names(&gateway.send_request("", "tools/list", json!({})).await).contains(&"ask_agent"));
    let models = gateway
        .http
        .get(gateway.url.replace("/mcp", "/v1/models"))
        .bearer_auth(gateway.token.as_ref().unwrap());
    assert_eq!(models.send().await.unwrap().status(), 404);
}

#[test]
fn a_legacy_client_gets_progress_and_approval_requests() {
    let fixture = Fixture::new();
    fixture.script_note();
    let mut gateway = StdioGateway::new(&fixture.home, &[]);
    let capabilities = json!({"elicitation": {}});
    let initialize_params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}});
    gateway.send_request("initialize", initialize_params);
    gateway.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for (decision, expected) in [
        ("allow", "I wrote it down."),
        ("cancel", "Waiting for approval: "),
        (
            "yes",
            "the answer to the approval request was ignored: `decision` must be `allow`, `always` or `deny`",
        ),
    ] {
        let mut params = ask_agent_params("note it");
        params["_meta"] = json!({"progressToken": "p"});
        gateway.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}));
        let mut progress_messages = Vec::new();
        let answer = loop {
            let message = gateway.receive();
            match message["method"].as_str() {
                Some("notifications/progress") => {
                    progress_messages.push(message["params"]["message"].to_string());
                }
                Some("elicitation/create") => {
                    assert!(
                        message["params"]["message"].as_str().unwrap().contains("write_note"),
                        "{message}"
                    );
                    let result = match decision {
                        "cancel" => json!({"action": "cancel"}),
                        decision => json!({"action": "accept", "content": {"decision": decision}}),
                    };
                    gateway.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
                }
                _ => break message,
            }
        };
        assert!(
            answer["result"]["content"][0]["text"].as_str().unwrap_or_default().contains(expected),
            "{answer}"
        );
        assert!(progress_messages.iter().any(|line| line.contains("power: done")), "{progress_messages:?}");
    }
    assert_eq!(fixture.notes().len(), 1);
    assert!(gateway.close());
}

#[tokio::test]
async fn a_modern_client_approves_by_retrying_the_call() {
    let fixture = Fixture::new();
    fixture.script_note();
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let mut meta = modern_meta("a-test");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"form": {}}});
    let mut call = modern_params(ask_agent_params("note it"));
    call["_meta"] = meta;
    let first = send(gateway.build_request("", "tools/call", &call)).await.body;
    let requests = first["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{first}"));
    let (key, question) = requests.iter().next().unwrap();
    assert!(question.to_string().contains("write_note"), "{question}");
    let answer = json!({"action": "accept", "content": {"decision": "allow"}});
    call["inputResponses"] = json!({ key.as_str(): answer });
    call["requestState"] = first["result"]["requestState"].clone();
    let second = send(gateway.build_request("", "tools/call", &call)).await.body;
    assert_eq!(second["result"]["content"][0]["text"], "I wrote it down.", "{second}");
    assert_eq!(fixture.notes().len(), 1);
}

#[test]
fn an_elicitation_in_a_step_reaches_the_agents_client() {
    let fixture = Fixture::new();
    fixture.script_signature();
    let mut gateway = StdioGateway::new(&fixture.home, &[]);
    let initialize_params = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "1"}});
    gateway.send_request("initialize", initialize_params);
    gateway.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    // Waits for the server's tools, which the scripted plan uses.
    gateway.send_request("tools/list", json!({}));
    gateway.send(
        &json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": ask_agent_params("sign it")}),
    );
    let answer = loop {
        let message = gateway.receive();
        match message["method"].as_str() {
            Some("elicitation/create") => {
                assert_eq!(message["params"]["message"], "Who signs this?", "{message}");
                let result = json!({"action": "accept", "content": {"name": "Ada"}});
                gateway.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
            }
            None if message["id"] == 7 => break message,
            _ => {}
        }
    };
    assert_eq!(answer["result"]["content"][0]["text"], "The signer says: signed.", "{answer}");
    assert_eq!(
        fixture.elicitation_responses(),
        "{\"action\": \"accept\", \"content\": {\"name\": \"Ada\"}}\n"
    );
}
