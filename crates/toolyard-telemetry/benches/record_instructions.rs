//! Counts one operation, for callgrind: `record_instructions tool_call|client_request|server_request`. See
//! `bench/load/instructions/metrics`.

use std::time::{Duration, SystemTime};

use toolyard_core::telemetry::{Operation, OperationKind, Transport};
use toolyard_telemetry::{OperationObserver as _, metrics::Metrics};

/// Series that exist when the measured operation is counted.
const TOOLS: usize = 1_000;

fn operation(kind: &str, number: usize) -> Operation {
    let (tool, server) = (format!("read_text_file_{number}"), format!("filesystem-{}", number % 20));
    let kind = match kind {
        "client_request" => OperationKind::ClientRequest {
            method: "tools/call".into(),
            target: Some(tool.into()),
            resource: None,
            revision: "2025-11-25",
            server: server.into(),
            request_id: Some(7),
            transport: Transport::Stdio,
            address: None,
        },
        "server_request" => OperationKind::ServerRequest {
            method: "tools/call".into(),
            target: Some(tool.into()),
            resource: None,
            revision: "2025-11-25",
            request_id: None,
            transport: Transport::Http,
            caller: None,
            client: None,
        },
        _ => OperationKind::ToolCall {
            tool: tool.into(),
            source: Some(server.into()),
            attempts: 1,
            call: None,
            content: None,
        },
    };
    let duration = Duration::from_micros(450);
    Operation { kind, span: None, started_at: SystemTime::now(), duration, error_type: None }
}

#[inline(never)]
fn measured_record(metrics: &Metrics, operation: &Operation) {
    metrics.observe(operation);
}

fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    let metrics = Metrics::default();
    for number in 0..TOOLS {
        metrics.observe(&operation(&kind, number));
        metrics.observe(&operation(&kind, number));
    }
    let operation = operation(&kind, TOOLS / 2);
    measured_record(&metrics, std::hint::black_box(&operation));
    std::hint::black_box(metrics.activity());
}
