//! Clients and servers of both revision families with the gateway between them, for everything that a call may involve.
//! Client and server are those of official SDKs; `scripts/parts` installs them.

#![expect(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test helper fails its test, and not every helper is used here"
)]

mod shared_server;
#[path = "../support/mod.rs"]
mod support;
mod test_gateway;
mod timeouts;

use serde_json::{Value, json};
use toolyard_core::RevisionFamily::{self, Legacy, Modern};

use support::case::{ServerCase, ServerKind, Transport, case, conversion, pinned_case};
use test_gateway::TestGateway;

/// The server that supports both revision families, in this one.
fn both_revisions(family: RevisionFamily, transport: Transport) -> ServerCase {
    match family {
        Modern => case(ServerKind::BothRevisions, transport),
        Legacy => pinned_case(ServerKind::BothRevisions, transport, Legacy),
    }
}

/// What a client of this family observes of a call through the gateway.
async fn call_through(
    client: RevisionFamily,
    server: ServerCase,
    aspect: &str,
    tool: &str,
    arguments: Value,
) -> Value {
    let gateway = TestGateway::start(server).await;
    let seen = gateway.run_client(client, aspect, tool, &arguments).await;
    let is_modern = seen["version"] == "2026-07-28";
    assert_eq!(is_modern, client == Modern, "{seen}");
    gateway.close().await;
    seen
}

async fn call(client: RevisionFamily, server: RevisionFamily) {
    let servers = match server {
        Modern => [case(ServerKind::Time, Transport::Stdio), case(ServerKind::NewExcel, Transport::Http)],
        Legacy => [
            case(ServerKind::Everything, Transport::Http),
            pinned_case(ServerKind::NewExcel, Transport::Stdio, Legacy),
        ],
    };
    for server in servers {
        let (tool, arguments, text) = match server.kind {
            ServerKind::Time => ("convert_time", conversion("UTC"), "+9.0h"),
            ServerKind::Everything => ("get-sum", json!({"a": 2, "b": 3}), "The sum of 2 and 3 is 5."),
            _ => ("create_workbook", json!({"path": "book.xlsx", "sheets": ["One"]}), "book.xlsx"),
        };
        let seen = call_through(client, server, "call", tool, arguments).await;
        assert_eq!(seen["answer"]["error"], false, "{seen}");
        assert!(seen["answer"]["text"].as_str().unwrap().contains(text), "{seen}");
    }
    let seen = call_through(client, both_revisions(server, Transport::Http), "call", "fail", json!({})).await;
    assert_eq!(seen["answer"]["error"], true, "a failure is a failure: {seen}");
    assert!(seen["answer"]["text"].as_str().unwrap().contains("it does not work"), "{seen}");
}

async fn progress(client: RevisionFamily, server: RevisionFamily) {
    let mut cases = vec![both_revisions(server, Transport::Stdio), both_revisions(server, Transport::Http)];
    cases.extend((server == Legacy).then(|| case(ServerKind::Everything, Transport::Http)));
    for server in cases {
        let (tool, arguments) = match server.kind {
            ServerKind::Everything => ("trigger-long-running-operation", json!({"duration": 2, "steps": 4})),
            _ => ("count", json!({"steps": 4, "pause": 0.5})),
        };
        let seen = call_through(client, server, "progress", tool, arguments).await;
        let steps: Vec<f64> =
            seen["progress"].as_array().unwrap().iter().map(|step| step[0].as_f64().unwrap()).collect();
        assert_eq!(steps, [1.0, 2.0, 3.0, 4.0], "{server:?} {seen}");
        assert_eq!(seen["progress"][3][1], 4.0);
    }
}

async fn cancel(client: RevisionFamily, server: RevisionFamily) {
    for transport in [Transport::Stdio, Transport::Http] {
        let arguments = json!({"steps": 100, "pause": 0.5});
        let seen =
            call_through(client, both_revisions(server, transport), "cancel", "count", arguments).await;
        assert_eq!(seen["answer"]["text"], "1", "{transport:?} {seen}");
    }
}

async fn elicitation(client: RevisionFamily, server: RevisionFamily) {
    let mut cases = vec![both_revisions(server, Transport::Stdio), both_revisions(server, Transport::Http)];
    cases.extend((server == Legacy).then(|| case(ServerKind::Everything, Transport::Http)));
    for server in cases {
        let tool = if server.kind == ServerKind::Everything { "trigger-elicitation-request" } else { "find" };
        let seen = call_through(client, server, "elicitation", tool, json!({})).await;
        assert_eq!(seen["answer"]["error"], false, "{server:?} {seen}");
        let text = seen["answer"]["text"].as_str().unwrap();
        match server.kind {
            ServerKind::Everything => assert!(text.contains("- Name: Ada"), "{seen}"),
            _ => {
                assert_eq!(
                    (text, seen["asked"].as_array().unwrap().len()),
                    ("Ada is in London", 2),
                    "{seen}"
                );
            }
        }
    }
}

async fn list_changed(client: RevisionFamily, server: RevisionFamily) {
    for transport in [Transport::Stdio, Transport::Http] {
        let arguments = json!({"name": "sprout", "after": 1});
        let seen =
            call_through(client, both_revisions(server, transport), "list_changed", "grow", arguments).await;
        assert_eq!(seen["new"], json!(["sprout"]), "{transport:?} {seen}");
    }
}

macro_rules! matrix {
    ($($name:ident: $aspect:ident, $client:ident client, $server:ident server;)*) => {
        $(#[tokio::test]
        async fn $name() {
            $aspect($client, $server).await;
        })*
    };
}

matrix! {
    call_legacy_to_legacy: call, Legacy client, Legacy server;
    call_legacy_to_modern: call, Legacy client, Modern server;
    call_modern_to_legacy: call, Modern client, Legacy server;
    call_modern_to_modern: call, Modern client, Modern server;
    progress_legacy_to_legacy: progress, Legacy client, Legacy server;
    progress_legacy_to_modern: progress, Legacy client, Modern server;
    progress_modern_to_legacy: progress, Modern client, Legacy server;
    progress_modern_to_modern: progress, Modern client, Modern server;
    cancel_legacy_to_legacy: cancel, Legacy client, Legacy server;
    cancel_legacy_to_modern: cancel, Legacy client, Modern server;
    cancel_modern_to_legacy: cancel, Modern client, Legacy server;
    cancel_modern_to_modern: cancel, Modern client, Modern server;
    elicitation_legacy_to_legacy: elicitation, Legacy client, Legacy server;
    elicitation_legacy_to_modern: elicitation, Legacy client, Modern server;
    elicitation_modern_to_legacy: elicitation, Modern client, Legacy server;
    elicitation_modern_to_modern: elicitation, Modern client, Modern server;
    list_changed_legacy_to_legacy: list_changed, Legacy client, Legacy server;
    list_changed_legacy_to_modern: list_changed, Legacy client, Modern server;
    list_changed_modern_to_legacy: list_changed, Modern client, Legacy server;
    list_changed_modern_to_modern: list_changed, Modern client, Modern server;
}
