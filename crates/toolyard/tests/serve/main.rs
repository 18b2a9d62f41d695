//! `toolyard serve`: started by them, or at an address.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test helper fails its test"
)]
#![expect(clippy::needless_pass_by_value, reason = "a request is written where it is made")]

mod access;
mod client;
mod stdio;
mod stopping;
#[path = "../servers/test_home.rs"]
mod test_home;
mod upstreams;

use serde_json::json;
use test_home::{TestHome, greet};

/// A home with one server whose tools are known.
fn fixture() -> TestHome {
    let home = TestHome::new();
    home.add("fake", &[]);
    let tools = [
        greet("Greets somebody"),
        json!({"name": "wait", "description": "Waits", "inputSchema": {"type": "object"}}),
        json!({"name": "write_much", "description": "Writes many words", "inputSchema": {"type": "object"}}),
    ];
    home.offer("fake", &tools);
    let tested = home.run(&["servers", "test"]);
    assert!(tested.contains("3 tools"), "{tested}");
    home
}
