//! Time of routing, calling and replacing, at several catalogue sizes: `cargo bench -p toolyard-hub --bench hub`.

mod catalogue;

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use toolyard_hub::{CallOptions, route};

const RUN_TIME: Duration = Duration::from_secs(1);

/// Prints the median time of all runs within a second. What is set up before each run is not measured.
#[expect(clippy::print_stdout, reason = "a program that prints its results")]
fn measure<T, R>(name: &str, mut set_up: impl FnMut() -> T, mut run: impl FnMut(T) -> R) {
    let deadline = Instant::now() + RUN_TIME;
    let mut times = Vec::new();
    while Instant::now() < deadline {
        let input = set_up();
        let start = Instant::now();
        let output = black_box(run(input));
        times.push(start.elapsed());
        drop(output);
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    println!("{name:<36} {median:>12.2?}  {} runs", times.len());
}

fn main() {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return };
    let request = catalogue::request();
    for tools in [100, 1_000, 100_000] {
        let hub = catalogue::hub_with(tools);
        let snapshot = hub.snapshot();
        measure(&format!("route/{tools}"), || (), |()| route(&snapshot, &request));
        let call = |()| runtime.block_on(hub.execute(&request, &CallOptions::default()));
        measure(&format!("call/{tools}"), || (), call);
        let mut version = 1;
        let server = || {
            version += 1;
            catalogue::server(1, version)
        };
        measure(&format!("replace/{tools}"), server, |(info, tools)| hub.register(info, tools));
    }
    for sources in [10, 5_000] {
        let hub = catalogue::hub_with_shared_name(sources);
        let mut version = 1;
        let source = || {
            version += 1;
            catalogue::source_with_shared_name(1, version)
        };
        let name = format!("replace one of a shared name/{sources}");
        measure(&name, source, |(info, tools)| hub.register(info, tools));
    }
    let echo = |()| runtime.block_on(catalogue::EchoTool::echo(request.arguments.get()));
    measure("bare function", || (), echo);
}
