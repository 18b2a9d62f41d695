//! `toolyard serve`: on stdio, started by a client, and over HTTP; also restarted replicas, and traces.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test helper fails the test, as intended"
)]
#![expect(clippy::needless_pass_by_value, reason = "tests pass `json!` values directly")]

mod access;
mod audit;
mod callers;
#[path = "../common/client.rs"]
mod client;
mod cluster_status;
mod console;
mod console_servers;
mod draining;
mod http_upstream;
mod isolation;
mod logging;
#[path = "../common/model_server.rs"]
#[expect(dead_code, reason = "only a part of it is needed here")]
mod model_server;
mod names;
mod private_instances;
mod reload;
mod replicas;
mod rolling_restart;
mod running_hub;
mod settings_api;
mod stdio;
mod stopping;
mod telemetry;
#[path = "../common/test_home.rs"]
mod test_home;
mod tool_calls;
mod upstreams;
mod workers;

use serde_json::json;
use test_home::{TestHome, greet_tool};

/// A home with one server whose three tools are cached.
fn home_with_server() -> TestHome {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    let tools = [
        greet_tool("Greets somebody"),
        waiting_tool(),
        json!({"name": "write_much", "description": "Writes many words", "inputSchema": {"type": "object"}}),
    ];
    home.set_tools("fake", &tools);
    let tested = home.run(&["servers", "test"]);
    assert!(tested.contains("3 tools"), "{tested}");
    home
}

fn waiting_tool() -> serde_json::Value {
    json!({"name": "wait", "description": "Waits", "inputSchema": {"type": "object"}})
}
