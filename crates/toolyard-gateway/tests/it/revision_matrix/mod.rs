//! Clients and servers of both revision families with the gateway between them, for everything that a call may involve.
//! Client and server are those of official SDKs; `scripts/parts` installs them.

mod back_channel;
mod instructions;
mod operator_hints;
mod shared_server;
mod test_gateway;
mod timeouts;

use serde_json::{Value, json};
use toolyard_core::RevisionFamily::{self, Legacy, Modern};

use test_gateway::TestGateway;

use crate::support::case::{ServerCase, ServerKind, Transport, case, case_with_family, conversion};

/// The server that supports both revision families, in this one.
fn both_families_case(family: RevisionFamily, transport: Transport) -> ServerCase {
    match family {
        Modern => case(ServerKind::BothFamilies, transport),
        Legacy => case_with_family(ServerKind::BothFamilies, transport, Legacy),
    }
}

/// What a client of this family observes of a call through the gateway.
async fn call_through(
    client: RevisionFamily,
    server: ServerCase,
    scenario: &str,
    tool: &str,
    arguments: Value,
) -> Value {
    let gateway = TestGateway::start(server).await;
    let observed = gateway.run_client(client, scenario, tool, &arguments).await;
    let is_modern = observed["version"] == "2026-07-28";
    assert_eq!(is_modern, client == Modern, "{observed}");
    gateway.close().await;
    observed
}

async fn call(client: RevisionFamily, server: RevisionFamily) {
    let servers = match server {
        Modern => [case(ServerKind::Time, Transport::Stdio), case(ServerKind::NewExcel, Transport::Http)],
        Legacy => [
            case(ServerKind::Everything, Transport::Http),
            case_with_family(ServerKind::NewExcel, Transport::Stdio, Legacy),
        ],
    };
    for server in servers {
        let (tool, arguments, text) = match server.kind {
            ServerKind::Time => ("convert_time", conversion("UTC"), "+9.0h"),
            ServerKind::Everything => ("get-sum", json!({"a": 2, "b": 3}), "The sum of 2 and 3 is 5."),
            _ => ("create_workbook", json!({"path": "book.xlsx", "sheets": ["One"]}), "book.xlsx"),
        };
        let observed = call_through(client, server, "call", tool, arguments).await;
        assert_eq!(observed["answer"]["error"], false, "{observed}");
        assert!(observed["answer"]["text"].as_str().unwrap().contains(text), "{observed}");
    }
    let observed =
        call_through(client, both_families_case(server, Transport::Http), "call", "fail", json!({})).await;
    assert_eq!(observed["answer"]["error"], true, "a failed call stays a failed call: {observed}");
    assert!(observed["answer"]["text"].as_str().unwrap().contains("it does not work"), "{observed}");
}

async fn progress(client: RevisionFamily, server: RevisionFamily) {
    let mut cases =
        vec![both_families_case(server, Transport::Stdio), both_families_case(server, Transport::Http)];
    cases.extend((server == Legacy).then(|| case(ServerKind::Everything, Transport::Http)));
    for server in cases {
        let (tool, arguments) = match server.kind {
            ServerKind::Everything => ("trigger-long-running-operation", json!({"duration": 2, "steps": 4})),
            _ => ("count", json!({"steps": 4, "pause": 0.5})),
        };
        let observed = call_through(client, server, "progress", tool, arguments).await;
        let steps: Vec<f64> =
            observed["progress"].as_array().unwrap().iter().map(|step| step[0].as_f64().unwrap()).collect();
        assert_eq!(steps, [1.0, 2.0, 3.0, 4.0], "{server:?} {observed}");
        assert_eq!(observed["progress"][3][1], 4.0);
    }
}

async fn cancel(client: RevisionFamily, server: RevisionFamily) {
    for transport in [Transport::Stdio, Transport::Http] {
        let arguments = json!({"steps": 100, "pause": 0.5});
        let observed =
            call_through(client, both_families_case(server, transport), "cancel", "count", arguments).await;
        assert_eq!(observed["answer"]["text"], "1", "{transport:?} {observed}");
    }
}

async fn elicitation(client: RevisionFamily, server: RevisionFamily) {
    let mut cases =
        vec![both_families_case(server, Transport::Stdio), both_families_case(server, Transport::Http)];
    cases.extend((server == Legacy).then(|| case(ServerKind::Everything, Transport::Http)));
    for server in cases {
        let tool = if server.kind == ServerKind::Everything { "trigger-elicitation-request" } else { "find" };
        let observed = call_through(client, server, "elicitation", tool, json!({})).await;
        assert_eq!(observed["answer"]["error"], false, "{server:?} {observed}");
        let text = observed["answer"]["text"].as_str().unwrap();
        match server.kind {
            ServerKind::Everything => assert!(text.contains("- Name: Ada"), "{observed}"),
            _ => {
                assert_eq!(
                    (text, observed["elicitations"].as_array().unwrap().len()),
                    ("Ada is in London", 2),
                    "{observed}"
                );
            }
        }
    }
}

async fn list_changed(client: RevisionFamily, server: RevisionFamily) {
    for transport in [Transport::Stdio, Transport::Http] {
        let arguments = json!({"name": "sprout", "after": 1});
        let observed =
            call_through(client, both_families_case(server, transport), "list_changed", "grow", arguments)
                .await;
        assert_eq!(observed["new_tools"], json!(["sprout"]), "{transport:?} {observed}");
    }
}

async fn metadata(client: RevisionFamily, server: RevisionFamily) {
    for transport in [Transport::Stdio, Transport::Http] {
        let observed =
            call_through(client, both_families_case(server, transport), "meta", "meta", json!({})).await;
        let answer: Value = serde_json::from_str(observed["answer"]["text"].as_str().unwrap()).unwrap();
        let expected = json!({"meta": {"com.example/tenant": {"id": 7}}});
        assert_eq!(answer, expected, "{transport:?} {observed}");
    }
}

macro_rules! matrix {
    ($($name:ident: $scenario:ident, $client:ident client, $server:ident server;)*) => {
        $(#[tokio::test]
        async fn $name() {
            $scenario($client, $server).await;
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
    metadata_legacy_to_legacy: metadata, Legacy client, Legacy server;
    metadata_legacy_to_modern: metadata, Legacy client, Modern server;
    metadata_modern_to_legacy: metadata, Modern client, Legacy server;
    metadata_modern_to_modern: metadata, Modern client, Modern server;
}
