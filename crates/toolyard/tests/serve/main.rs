//! `toolyard serve` as clients meet it: started by them, or at an address.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test helper fails its test"
)]
#![expect(clippy::needless_pass_by_value, reason = "a request is written where it is made")]

mod access;
mod client;
#[path = "../servers/place.rs"]
mod place;
mod stdio;
mod stopping;
mod upstreams;

use place::{Place, greet};
use serde_json::json;

/// A home with one server whose tools are known, so that nothing must be started to list them.
fn yard() -> Place {
    let place = Place::new();
    place.add("fake", &[]);
    let tools = [
        greet("Greets somebody"),
        json!({"name": "wait", "description": "Waits", "inputSchema": {"type": "object"}}),
        json!({"name": "write_much", "description": "Writes many words", "inputSchema": {"type": "object"}}),
    ];
    place.offer("fake", &tools);
    let tested = place.run(&["servers", "test"]);
    assert!(tested.contains("3 tools"), "{tested}");
    place
}
