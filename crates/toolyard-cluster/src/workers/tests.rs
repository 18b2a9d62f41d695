//! Gateways and workers over a network in memory.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};
use toolyard_core::{
    BoxFuture, CallContext, ContentHash, ErrorKind, NameClaim, RawJson, Tool, ToolCallRequest, ToolError,
    ToolOutput, ToolSpec, WorkerEndpoint,
};

use super::{ServedTool, WorkerSink, WorkerTool, WorkerWatch, testing::MemoryWorkers};

/// Waits, then says which process it is.
struct Slow {
    spec: ToolSpec,
    process: u64,
    duration: Duration,
    calls: Arc<AtomicUsize>,
}

impl Tool for Slow {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            sleep(self.duration).await;
            Ok(ToolOutput::text(self.process.to_string()))
        })
    }
}

fn served(description: &str, process: u64, duration: Duration, calls: &Arc<AtomicUsize>) -> ServedTool {
    let spec = ToolSpec::new("slow", description);
    let definition = RawJson::from_value(&json!({"name": "slow", "description": description}));
    let endpoint = WorkerEndpoint { tool: "slow".into(), definition: ContentHash::of(definition.get()) };
    let tool = Arc::new(Slow { spec, process, duration, calls: Arc::clone(calls) });
    ServedTool { definition, endpoint, tool }
}

fn tool(network: &MemoryWorkers, description: &str) -> Arc<WorkerTool> {
    let definition = RawJson::from_value(&json!({"name": "slow", "description": description}));
    let spec = ToolSpec::new("slow", description);
    let hash = ContentHash::of(definition.get());
    Arc::new(WorkerTool::new("office", spec, hash, NameClaim::default(), Arc::new(network.clone())))
}

async fn call(tool: &WorkerTool, limit: Duration) -> Result<String, ToolError> {
    let context = CallContext::until((Instant::now() + limit).into_std());
    let request = ToolCallRequest::new("slow", json!({}));
    tool.call(&request, &context).await.map(|output| output.to_text())
}

const SECOND: Duration = Duration::from_secs(1);

/// Reports what only the gateway can know.
struct Liar(ToolSpec);

impl Tool for Liar {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let error = ToolError::new(ErrorKind::QuotaExceeded, "nothing was called, try again")
            .with_retry_after(SECOND);
        Box::pin(async { Err(error) })
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_cannot_say_that_nothing_was_called() {
    let network = MemoryWorkers::default();
    let served = ServedTool {
        tool: Arc::new(Liar(ToolSpec::new("slow", "a"))),
        ..served("a", 1, SECOND, &Arc::default())
    };
    let worker = network.start("office", 1, 1);
    worker.set_tools(vec![served]).await.unwrap();
    let error = call(&tool(&network, "a"), 10 * SECOND).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
    assert!(!error.had_no_effect() && !error.retryable() && error.retry_after().is_none(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn processes_share_the_calls_and_a_busy_one_passes_them_on() {
    let (network, calls) = (MemoryWorkers::default(), Arc::default());
    for process in [1, 2] {
        let worker = network.start("office", process, 1);
        worker.set_tools(vec![served("A", process, SECOND, &calls)]).await.unwrap();
    }
    let tool = tool(&network, "A");
    let start = Instant::now();
    let outcomes = futures_util::future::join_all((0..4).map(|_| call(&tool, 10 * SECOND))).await;
    let mut answered: Vec<String> = outcomes.into_iter().map(Result::unwrap).collect();
    answered.sort();
    assert_eq!(answered, ["1", "1", "2", "2"]);
    assert_eq!(calls.load(Ordering::SeqCst), 4, "a call that was refused was not begun");
    assert!(start.elapsed() < 3 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_finds_everybody_busy_until_its_deadline_was_not_begun() {
    let (network, calls) = (MemoryWorkers::default(), Arc::default());
    let worker = network.start("office", 1, 1);
    worker.set_tools(vec![served("A", 1, 60 * SECOND, &calls)]).await.unwrap();
    let tool = tool(&network, "A");
    let first = tokio::spawn({
        let tool = Arc::clone(&tool);
        async move { call(&tool, 100 * SECOND).await }
    });
    sleep(SECOND).await;
    let start = Instant::now();
    let error = call(&tool, 2 * SECOND).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.had_no_effect() && error.retryable() && error.retry_after().is_some());
    assert!(start.elapsed() < 2 * SECOND, "known before the deadline");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(first.await.unwrap().unwrap(), "1");
}

#[tokio::test(start_paused = true)]
async fn without_a_process_of_this_definition_nothing_is_sent() {
    let (network, calls) = (MemoryWorkers::default(), Arc::default());
    let error = call(&tool(&network, "A"), SECOND).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let worker = network.start("office", 1, 8);
    worker.set_tools(vec![served("B", 1, SECOND, &calls)]).await.unwrap();
    let start = Instant::now();
    let error = call(&tool(&network, "A"), 10 * SECOND).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.had_no_effect(), "{error:?}");
    assert_eq!((calls.load(Ordering::SeqCst), start.elapsed()), (0, Duration::ZERO));
    assert_eq!(call(&tool(&network, "B"), 10 * SECOND).await.unwrap(), "1");
}

#[tokio::test(start_paused = true)]
async fn a_disconnected_gateway_does_not_suggest_starting_a_worker() {
    let (network, calls) = (MemoryWorkers::default(), Arc::default());
    let worker = network.start("office", 1, 8);
    worker.set_tools(vec![served("A", 1, SECOND, &calls)]).await.unwrap();
    network.disconnect();
    let error = call(&tool(&network, "A"), SECOND).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.had_no_effect(), "{error:?}");
    assert!(error.message().starts_with("this gateway is not connected to NATS"), "{error}");
    assert!(!error.hint().unwrap_or_default().contains("toolyard worker"), "{error:?}");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_leaves_an_unknown_outcome_and_no_second_call() {
    let (network, calls) = (MemoryWorkers::default(), Arc::default());
    for process in [1, 2] {
        let worker = network.start("office", process, 8);
        worker.set_tools(vec![served("A", process, 10 * SECOND, &calls)]).await.unwrap();
    }
    let tool = tool(&network, "A");
    let running = tokio::spawn(async move { call(&tool, 60 * SECOND).await });
    sleep(SECOND).await;
    network.kill(1);
    network.kill(2);
    let error = running.await.unwrap().unwrap_err();
    assert!(error.kind() == ErrorKind::ResponseLost && !error.had_no_effect(), "{error:?}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_drains_finishes_its_calls_and_others_take_the_next() {
    let (network, calls) = (MemoryWorkers::default(), Arc::default());
    let leaving = network.start("office", 1, 8);
    leaving.set_tools(vec![served("A", 1, 5 * SECOND, &calls)]).await.unwrap();
    let tool = tool(&network, "A");
    let running = tokio::spawn({
        let tool = Arc::clone(&tool);
        async move { call(&tool, 60 * SECOND).await }
    });
    sleep(SECOND).await;
    let staying = network.start("office", 2, 8);
    staying.set_tools(vec![served("A", 2, SECOND, &calls)]).await.unwrap();
    let draining = tokio::spawn({
        let leaving = Arc::clone(&leaving);
        async move { leaving.drain(60 * SECOND).await }
    });
    sleep(Duration::from_millis(1)).await;
    for _ in 0..4 {
        assert_eq!(call(&tool, 60 * SECOND).await.unwrap(), "2");
    }
    assert_eq!((running.await.unwrap().unwrap().as_str(), draining.await.unwrap()), ("1", 0));
    let stuck = network.start("office", 3, 8);
    stuck.set_tools(vec![served("B", 3, 60 * SECOND, &calls)]).await.unwrap();
    let tool = self::tool(&network, "B");
    let _running = tokio::spawn(async move { call(&tool, 60 * SECOND).await });
    sleep(SECOND).await;
    assert_eq!(stuck.drain(SECOND).await, 1, "a call that does not end is given up");
}

/// Records what it is told, after failing once.
#[derive(Default)]
struct Recorder {
    offered: Mutex<Vec<(String, usize, usize)>>,
    has_failed: Mutex<bool>,
}

impl WorkerSink for Recorder {
    fn offered<'a>(
        &'a self,
        group: &'a str,
        definitions: Vec<RawJson>,
        processes: usize,
    ) -> BoxFuture<'a, bool> {
        let is_second = std::mem::replace(&mut *self.has_failed.lock(), true);
        if is_second {
            self.offered.lock().push((group.to_owned(), definitions.len(), processes));
        }
        Box::pin(std::future::ready(is_second))
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_learns_what_workers_serve_and_ignores_nonsense() {
    let (network, calls) = (MemoryWorkers::default(), Arc::default());
    let before = network.start("office", 1, 8);
    before.set_tools(vec![served("A", 1, SECOND, &calls)]).await.unwrap();
    let watch = Arc::new(WorkerWatch::new(Arc::new(network.clone()), vec!["office".to_owned()]));
    network.observe(Arc::clone(&watch) as _);
    let recorder = Arc::new(Recorder::default());
    let running = tokio::spawn({
        let (watch, recorder) = (Arc::clone(&watch), Arc::clone(&recorder));
        async move { watch.run(&*recorder).await }
    });
    let latest = async || {
        sleep(2 * SECOND).await;
        recorder.offered.lock().last().cloned()
    };
    assert_eq!(latest().await, Some(("office".to_owned(), 1, 1)), "it was there before the gateway");
    for nonsense in [b"".as_slice(), b"{}", b"[1]", b"{\"process\":-1}", &[0xff; 4_000]] {
        network.announce("office", nonsense);
    }
    let stranger = network.start("other", 7, 8);
    stranger.set_tools(vec![served("A", 7, SECOND, &calls)]).await.unwrap();
    // Announces a process that does not answer.
    network.announce(
        "office",
        format!("{{\"process\":99,\"catalogue\":\"{}\"}}", ContentHash::of("x")).as_bytes(),
    );
    let second = network.start("office", 2, 8);
    second.set_tools(vec![served("B", 2, SECOND, &calls)]).await.unwrap();
    assert_eq!(latest().await, Some(("office".to_owned(), 2, 2)));
    second.drain(SECOND).await;
    assert_eq!(latest().await, Some(("office".to_owned(), 1, 1)));
    network.kill(1);
    sleep(31 * SECOND).await;
    assert_eq!(latest().await, Some(("office".to_owned(), 0, 0)), "silent for too long");
    assert!(recorder.offered.lock().iter().all(|(group, ..)| group == "office"));
    running.abort();
}
