//! What a call through a worker costs in CPU time of both processes, compared with a bare NATS request with the same payload,
//! in one run.
//!
//! usage: `worker_cost NATS_URL [CALLS] [CONCURRENCY] [PAYLOAD_BYTES]`

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a measurement for developers"
)]

use std::{env, process::Stdio, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use serde_json::json;
use toolyard_cluster::workers::{ServedTool, Worker, WorkerTool};
use toolyard_core::{
    BoxFuture, CallContext, ContentHash, NameClaim, RawJson, Tool, ToolCallRequest, ToolError, ToolOutput,
    ToolSpec, WorkerEndpoint,
};
use toolyard_nats::{NatsConnection, NatsPeers, NatsSettings, NatsWorker};

const BARE: &str = "bare.echo";
const ROUNDS: usize = 7;

struct Echo(ToolSpec);

impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let text = request.arguments.to_value()["text"].as_str().unwrap_or_default().to_owned();
        Box::pin(std::future::ready(Ok(ToolOutput::text(text))))
    }
}

fn endpoint() -> (RawJson, WorkerEndpoint) {
    let definition = RawJson::from_value(&json!({"name": "echo", "inputSchema": {"type": "object"}}));
    let hash = ContentHash::of(definition.get());
    (definition, WorkerEndpoint { tool: "echo".into(), definition: hash })
}

async fn serve(url: &str) {
    let bare = async_nats::connect(url).await.unwrap();
    let mut requests = bare.queue_subscribe(BARE, "q".to_owned()).await.unwrap();
    let connection = NatsConnection::connect(&NatsSettings::new([url]), "worker").await.unwrap();
    let transport = Arc::new(NatsWorker::join(connection, "bench", 2).await.unwrap());
    let worker = Arc::new(Worker::new(2, Arc::clone(&transport) as _, 10_000));
    transport.register(worker.call_service(), worker.catalogue_service());
    let (definition, endpoint) = endpoint();
    let tool = Arc::new(Echo(ToolSpec::new("echo", "")));
    worker.set_tools(vec![ServedTool { definition, endpoint, tool }]).await.unwrap();
    println!("ready");
    while let Some(request) = requests.next().await {
        bare.publish(request.reply.unwrap(), request.payload).await.unwrap();
    }
}

/// The CPU time of a process with one thread that works.
fn cpu_time(pid: u32) -> Duration {
    let mut total = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let text = std::fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap_or_default();
        total += text.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or(0);
    }
    Duration::from_nanos(total)
}

async fn measure<F: Future<Output = ()>>(
    child: u32,
    calls: usize,
    concurrency: usize,
    call: impl Fn() -> F,
) -> Duration {
    let before = cpu_time(std::process::id()) + cpu_time(child);
    stream::iter(0..calls).for_each_concurrent(concurrency, |_| call()).await;
    let after = cpu_time(std::process::id()) + cpu_time(child);
    (after - before) / u32::try_from(calls).unwrap()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |index: usize, default| arguments.get(index).map_or(default, |text| text.parse().unwrap());
    let url = arguments.first().map_or("nats://127.0.0.1:4222", String::as_str);
    if arguments.get(1).is_some_and(|argument| argument == "serve") {
        return serve(url).await;
    }
    let (calls, concurrency, bytes) = (number(1, 10_000), number(2, 32), number(3, 1_024));
    let mut child = std::process::Command::new(env::current_exe().unwrap())
        .args([url, "serve"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Read::read(child.stdout.as_mut().unwrap(), &mut [0; 6]).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let bare = async_nats::connect(url).await.unwrap();
    let connection = NatsConnection::connect(&NatsSettings::new([url]), "gateway").await.unwrap();
    let gateway = Arc::new(NatsPeers::join(connection, 1).await.unwrap());
    let tool = WorkerTool::new(
        "bench",
        ToolSpec::new("echo", ""),
        endpoint().1.definition,
        NameClaim::default(),
        gateway,
    );
    let text = "x".repeat(bytes);
    let payload = bytes::Bytes::from(json!({"text": text}).to_string());
    let request = ToolCallRequest::new("echo", json!({"text": text}));
    let bare_call = || async { drop(bare.request(BARE, payload.clone()).await.unwrap()) };
    let worker_call = || async {
        let context = CallContext::until(std::time::Instant::now() + Duration::from_secs(60));
        drop(tool.call(&request, &context).await.unwrap());
    };
    let mut ratios = Vec::new();
    for round in 0..=ROUNDS {
        let bare = measure(child.id(), calls, concurrency, bare_call).await;
        let worker = measure(child.id(), calls, concurrency, worker_call).await;
        // The first round warms up.
        if round > 0 {
            let ratio = worker.as_secs_f64() / bare.as_secs_f64();
            println!("round {round}: bare {bare:?}, worker {worker:?} of CPU per call: {ratio:.2}");
            ratios.push(ratio);
        }
    }
    ratios.sort_by(f64::total_cmp);
    println!("median of {ROUNDS} rounds of {calls} calls: {:.2}", ratios[ROUNDS / 2]);
    child.kill().unwrap();
    child.wait().unwrap();
}
