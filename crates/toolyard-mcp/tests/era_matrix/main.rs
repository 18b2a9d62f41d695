//! The matrix of eras: a client of each era, a server of each era, and the door between them, for everything that a call may
//! bring along. Client and server are those of official SDKs; `scripts/parts` installs them.

#![expect(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test helper fails its test, and not every helper is used here"
)]

mod door;
#[path = "../real_servers/house.rs"]
mod house;
#[path = "../real_servers/parts.rs"]
mod parts;
mod patience;
#[path = "../real_servers/place.rs"]
mod place;
#[path = "../real_servers/row.rs"]
mod row;

use serde_json::{Value, json};
use toolyard_core::ProtocolEra::{self, Legacy, Modern};

use door::Door;
use row::{Kind, Row, Wire, forced, row};

/// Servers that speak this era: one that is ours alone in its tools, over both transports, and those that people use.
fn both_eras(era: ProtocolEra, wire: Wire) -> Row {
    match era {
        Modern => row(Kind::BothEras, wire),
        Legacy => forced(Kind::BothEras, wire, Legacy),
    }
}

/// What a client of this era saw of one call through the door.
async fn through(client: ProtocolEra, server: Row, aspect: &str, tool: &str, arguments: Value) -> Value {
    let door = Door::open(server).await;
    let seen = door.visited(client, aspect, tool, &arguments).await;
    let modern = seen["version"] == "2026-07-28";
    assert_eq!(modern, client == Modern, "{seen}");
    door.close().await;
    seen
}

async fn call(client: ProtocolEra, server: ProtocolEra) {
    let real = match server {
        Modern => [row(Kind::Time, Wire::Stdio), row(Kind::NewExcel, Wire::Http)],
        Legacy => [row(Kind::Everything, Wire::Http), forced(Kind::NewExcel, Wire::Stdio, Legacy)],
    };
    for server in real {
        let (tool, arguments, said) = match server.kind {
            Kind::Time => ("convert_time", row::conversion("UTC"), "+9.0h"),
            Kind::Everything => ("get-sum", json!({"a": 2, "b": 3}), "The sum of 2 and 3 is 5."),
            _ => ("create_workbook", json!({"path": "book.xlsx", "sheets": ["One"]}), "book.xlsx"),
        };
        let seen = through(client, server, "call", tool, arguments).await;
        assert_eq!(seen["answer"]["error"], false, "{seen}");
        assert!(seen["answer"]["text"].as_str().unwrap().contains(said), "{seen}");
    }
    let seen = through(client, both_eras(server, Wire::Http), "call", "fail", json!({})).await;
    assert_eq!(seen["answer"]["error"], true, "a failure is a failure: {seen}");
    assert!(seen["answer"]["text"].as_str().unwrap().contains("it does not work"), "{seen}");
}

async fn progress(client: ProtocolEra, server: ProtocolEra) {
    let mut rows = vec![both_eras(server, Wire::Stdio), both_eras(server, Wire::Http)];
    rows.extend((server == Legacy).then(|| row(Kind::Everything, Wire::Http)));
    for server in rows {
        let (tool, arguments) = match server.kind {
            Kind::Everything => ("trigger-long-running-operation", json!({"duration": 2, "steps": 4})),
            _ => ("count", json!({"steps": 4, "pause": 0.5})),
        };
        let seen = through(client, server, "progress", tool, arguments).await;
        let steps: Vec<f64> =
            seen["progress"].as_array().unwrap().iter().map(|step| step[0].as_f64().unwrap()).collect();
        assert_eq!(steps, [1.0, 2.0, 3.0, 4.0], "{server:?} {seen}");
        assert_eq!(seen["progress"][3][1], 4.0);
    }
}

async fn cancel(client: ProtocolEra, server: ProtocolEra) {
    for wire in [Wire::Stdio, Wire::Http] {
        let arguments = json!({"steps": 100, "pause": 0.5});
        let seen = through(client, both_eras(server, wire), "cancel", "count", arguments).await;
        assert_eq!(seen["answer"]["text"], "1", "{wire:?} {seen}");
    }
}

async fn elicitation(client: ProtocolEra, server: ProtocolEra) {
    let mut rows = vec![both_eras(server, Wire::Stdio), both_eras(server, Wire::Http)];
    rows.extend((server == Legacy).then(|| row(Kind::Everything, Wire::Http)));
    for server in rows {
        let tool = if server.kind == Kind::Everything { "trigger-elicitation-request" } else { "find" };
        let seen = through(client, server, "elicitation", tool, json!({})).await;
        assert_eq!(seen["answer"]["error"], false, "{server:?} {seen}");
        let said = seen["answer"]["text"].as_str().unwrap();
        match server.kind {
            Kind::Everything => assert!(said.contains("- Name: Ada"), "{seen}"),
            _ => {
                assert_eq!(
                    (said, seen["asked"].as_array().unwrap().len()),
                    ("Ada is in London", 2),
                    "{seen}"
                );
            }
        }
    }
}

async fn list_changed(client: ProtocolEra, server: ProtocolEra) {
    for wire in [Wire::Stdio, Wire::Http] {
        let arguments = json!({"name": "sprout", "after": 1});
        let seen = through(client, both_eras(server, wire), "list_changed", "grow", arguments).await;
        assert_eq!(seen["new"], json!(["sprout"]), "{wire:?} {seen}");
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
