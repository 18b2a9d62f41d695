//! The MCP tool `ask_agent`.

use serde_json::{Value, json};

use crate::{
    Fixture,
    client::{HttpGateway, StdioGateway, meta, modern, names, send},
};

fn asks(question: &str) -> Value {
    json!({"name": "ask_agent", "arguments": {"question": question}})
}

#[tokio::test]
async fn a_client_delegates_a_question() {
    let fixture = Fixture::new();
    fixture.plans_to_note();
    fixture.set("[approvals]\nallow = [\"write_note\"]\n[serve.profiles.office]\ntools = [\"get_time\"]\n");
    let hub = HttpGateway::start(&fixture.home, &[]);
    assert!(names(&hub.ask("", "tools/list", json!({})).await).contains(&"ask_agent"));
    assert_eq!(
        names(&hub.ask("/office", "tools/list", json!({})).await),
        ["get_time", "read_result"],
        "agents reach every tool"
    );
    let answer = hub.ask("", "tools/call", asks("note it")).await;
    assert_eq!(answer["result"]["content"][0]["text"], "I wrote it down.", "{answer}");
    let plan = fixture.model.requests()[0].to_string();
    assert!(
        plan.contains("write_note") && !plan.contains("ask_agent"),
        "no agent is asked by an agent: {plan}"
    );
    let wrong = hub
        .ask(
            "",
            "tools/call",
            json!({"name": "ask_agent", "arguments": {"agent": "nobody", "question": "x"}}),
        )
        .await;
    assert!(wrong.to_string().contains("nobody"), "{wrong}");
}

#[tokio::test]
async fn ask_agent_needs_a_model_and_can_be_disabled() {
    let fixture = Fixture::new();
    fixture.set("[serve]\nagents = false\n");
    let hub = HttpGateway::start(&fixture.home, &[]);
    assert!(!names(&hub.ask("", "tools/list", json!({})).await).contains(&"ask_agent"));
    let models = hub.http.get(hub.url.replace("/mcp", "/v1/models")).bearer_auth(hub.token.as_ref().unwrap());
    assert_eq!(models.send().await.unwrap().status(), 404);
}

#[test]
fn a_legacy_client_gets_progress_and_approval_requests() {
    let fixture = Fixture::new();
    fixture.plans_to_note();
    let mut hub = StdioGateway::new(&fixture.home, &[]);
    let capabilities = json!({"elicitation": {}});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}});
    hub.ask("initialize", hello);
    hub.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for (decision, wanted) in [("allow", "I wrote it down."), ("cancel", "Waiting for approval: ")] {
        let mut params = asks("note it");
        params["_meta"] = json!({"progressToken": "p"});
        hub.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}));
        let mut told = Vec::new();
        let answer = loop {
            let message = hub.receive();
            match message["method"].as_str() {
                Some("notifications/progress") => told.push(message["params"]["message"].to_string()),
                Some("elicitation/create") => {
                    assert!(
                        message["params"]["message"].as_str().unwrap().contains("write_note"),
                        "{message}"
                    );
                    let result = match decision {
                        "cancel" => json!({"action": "cancel"}),
                        word => json!({"action": "accept", "content": {"decision": word}}),
                    };
                    hub.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
                }
                _ => break message,
            }
        };
        assert!(
            answer["result"]["content"][0]["text"].as_str().unwrap_or_default().contains(wanted),
            "{answer}"
        );
        assert!(told.iter().any(|line| line.contains("power: done")), "{told:?}");
    }
    assert_eq!(fixture.notes().len(), 1);
    assert!(hub.leave());
}

#[tokio::test]
async fn a_modern_client_may_take_long_to_approve() {
    let fixture = Fixture::new();
    fixture.plans_to_note();
    let hub = HttpGateway::start(&fixture.home, &[]);
    let mut meta = meta("a-test");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {"form": {}}});
    let mut call = modern(asks("note it"));
    call["_meta"] = meta;
    let first = send(hub.request("", "tools/call", &call)).await.body;
    let requests = first["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{first}"));
    let (key, question) = requests.iter().next().unwrap();
    assert!(question.to_string().contains("write_note"), "{question}");
    let answer = json!({"action": "accept", "content": {"decision": "allow"}});
    call["inputResponses"] = json!({ key.as_str(): answer });
    call["requestState"] = first["result"]["requestState"].clone();
    let second = send(hub.request("", "tools/call", &call)).await.body;
    assert_eq!(second["result"]["content"][0]["text"], "I wrote it down.", "{second}");
    assert_eq!(fixture.notes().len(), 1);
}

#[test]
fn an_elicitation_in_a_step_reaches_the_agents_client() {
    let fixture = Fixture::new();
    fixture.plans_to_sign();
    let mut hub = StdioGateway::new(&fixture.home, &[]);
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t", "version": "1"}});
    hub.ask("initialize", hello);
    hub.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    hub.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": asks("sign it")}));
    let answer = loop {
        let message = hub.receive();
        match message["method"].as_str() {
            Some("elicitation/create") => {
                assert_eq!(message["params"]["message"], "Who signs this?", "{message}");
                let result = json!({"action": "accept", "content": {"name": "Ada"}});
                hub.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
            }
            Some(_) => {}
            None => break message,
        }
    };
    assert_eq!(answer["result"]["content"][0]["text"], "It is signed.", "{answer}");
    assert_eq!(fixture.signed(), "{\"action\": \"accept\", \"content\": {\"name\": \"Ada\"}}\n");
}
