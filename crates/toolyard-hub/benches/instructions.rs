//! One operation at one catalogue size, whose instructions callgrind counts: `bench/load/instructions/hub`.
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
    runtime.block_on(catalogue::EchoTool::echo(request.arguments.get())).is_ok()
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
    // cargo passes its own flags to benches; the script passes two arguments: the operation and the number of tools.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let (Some(operation), Some(tools)) =
        (arguments.first(), arguments.get(1).and_then(|size| size.parse().ok()))
    else {
        return;
    };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return };
    if let "popular" | "popular_behind" = operation.as_str() {
        let hub = catalogue::hub_with_shared_name(tools);
        // Replaces one of the first sources, whose equivalents are computed again, or one beyond those that are considered.
        let number = if operation == "popular" { 1 } else { tools - 2 };
        let (info, tools) = catalogue::source_with_shared_name(number, 2);
        black_box(measured_replace(&hub, info, tools));
        std::process::exit(0);
    }
    let request = catalogue::request();
    let hub = catalogue::hub_with(tools);
    // Once before the count: a first call compiles the tool's schema.
    let _ = black_box(runtime.block_on(hub.execute(&request, &CallOptions::default())));
    match operation.as_str() {
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
