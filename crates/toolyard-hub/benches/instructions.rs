//! One measured step at one catalogue size, to be counted by callgrind: `scripts/instructions`.
//!
//! Only what runs inside a function named `measured_…` is counted; everything else prepares it.

mod catalogue;

use std::hint::black_box;

use toolyard_core::{SourceInfo, Tool, ToolCallRequest};
use toolyard_hub::{CallOptions, Registration, Snapshot, ToolHub, route};

#[inline(never)]
fn measured_route(snapshot: &Snapshot, request: &ToolCallRequest) -> bool {
    route(snapshot, request).is_ok()
}

#[inline(never)]
fn measured_call(runtime: &tokio::runtime::Runtime, hub: &ToolHub, request: &ToolCallRequest) -> bool {
    runtime.block_on(hub.execute(request, &CallOptions::default())).is_ok()
}

#[inline(never)]
fn measured_bare(runtime: &tokio::runtime::Runtime, request: &ToolCallRequest) -> bool {
    runtime.block_on(catalogue::Nothing::answer(request.arguments.get())).is_ok()
}

#[inline(never)]
fn measured_replace(hub: &ToolHub, info: SourceInfo, tools: Vec<std::sync::Arc<dyn Tool>>) -> Registration {
    hub.register(info, tools)
}

#[inline(never)]
fn measured_unknown(snapshot: &Snapshot) -> usize {
    snapshot.similar_names("read_documnt_0_7").len()
}

fn main() {
    // cargo passes flags of its own when it runs benches; only the two words of the script count.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let (Some(step), Some(tools)) = (words.first(), words.get(1).and_then(|size| size.parse().ok())) else {
        return;
    };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return };
    if let "popular" | "popular_behind" = step.as_str() {
        let hub = catalogue::popular(tools);
        // One of the first, whose equals are worked out anew, or one that stands behind all that are looked at.
        let number = if step == "popular" { 1 } else { tools - 2 };
        let (info, tools) = catalogue::popular_source(number, 2);
        black_box(measured_replace(&hub, info, tools));
        std::process::exit(0);
    }
    let request = catalogue::request();
    let hub = catalogue::hub_with(tools);
    // Once before the count: a first call compiles the tool's schema.
    let _ = black_box(runtime.block_on(hub.execute(&request, &CallOptions::default())));
    match step.as_str() {
        "route" => {
            black_box(measured_route(&hub.snapshot(), &request));
        }
        "call" => {
            black_box(measured_call(&runtime, &hub, &request));
        }
        "bare" => {
            black_box(measured_bare(&runtime, &request));
        }
        "replace" => {
            let (info, tools) = catalogue::server(1, 2);
            black_box(measured_replace(&hub, info, tools));
        }
        "unknown" => {
            black_box(measured_unknown(&hub.snapshot()));
        }
        _ => {}
    }
    // Tearing the catalogue down is slow under callgrind and measures nothing.
    std::process::exit(0);
}
