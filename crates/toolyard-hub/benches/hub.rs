//! Time of routing, calling and replacing, at several catalogue sizes: `cargo bench -p toolyard-hub --bench hub`.

mod catalogue;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use toolyard_hub::{CallOptions, route};

fn sizes(criterion: &mut Criterion) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return };
    let request = catalogue::request();
    for tools in [100, 1_000, 100_000] {
        let hub = catalogue::hub_with(tools);
        let snapshot = hub.snapshot();
        criterion.bench_with_input(BenchmarkId::new("route", tools), &tools, |bench, _| {
            bench.iter(|| route(&snapshot, &request));
        });
        criterion.bench_with_input(BenchmarkId::new("call", tools), &tools, |bench, _| {
            bench.iter(|| runtime.block_on(hub.execute(&request, &CallOptions::default())));
        });
        criterion.bench_with_input(BenchmarkId::new("replace", tools), &tools, |bench, _| {
            let mut version = 1;
            bench.iter_batched(
                || {
                    version += 1;
                    catalogue::server(1, version)
                },
                |(info, tools)| hub.register(info, tools),
                BatchSize::SmallInput,
            );
        });
    }
    for sources in [10, 5_000] {
        let hub = catalogue::hub_with_shared_name(sources);
        criterion.bench_with_input(
            BenchmarkId::new("replace one of a shared name", sources),
            &sources,
            |bench, _| {
                let mut version = 1;
                bench.iter_batched(
                    || {
                        version += 1;
                        catalogue::source_with_shared_name(1, version)
                    },
                    |(info, tools)| hub.register(info, tools),
                    BatchSize::SmallInput,
                );
            },
        );
    }
    criterion.bench_function("bare function", |bench| {
        bench.iter(|| runtime.block_on(catalogue::EchoTool::echo(request.arguments.get())));
    });
}

criterion_group!(benches, sizes);
criterion_main!(benches);
