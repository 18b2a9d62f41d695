//! Breakers, concurrency limits and retry budgets of sources and native tools, also when they are registered again.

use std::{sync::Arc, time::Duration};

use toolyard_core::{ErrorKind, SourceInfo, SourceSignal, ToolError};
use toolyard_hub::{BreakerSettings, BreakerState, CallOptions, HubConfig, ToolHub};

use crate::common::{Behavior, TestTool, register, request, test_tool};

async fn call(hub: &ToolHub, tool: &str) -> Result<String, ErrorKind> {
    let outcome = hub.execute(&request(tool), &CallOptions::default()).await;
    outcome.map(|output| output.to_text()).map_err(|error| error.kind())
}

fn native() -> [TestTool; 2] {
    [
        test_tool("search_web", "native").with_behavior(Behavior::Fail(ErrorKind::ResponseLost)).writes(),
        test_tool("calculate", "native"),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_native_tool_keeps_its_breaker_when_the_source_is_registered_again() {
    let hub = ToolHub::default();
    let call_log = register(&hub, &native());
    for _ in 0..5 {
        let _ = call(&hub, "search_web").await;
    }
    let tools = native().iter().map(|test_tool| test_tool.tool(&call_log)).collect();
    hub.register(SourceInfo::native(), tools);
    assert_eq!(call(&hub, "search_web").await, Err(ErrorKind::CircuitOpen));
    assert_eq!(call(&hub, "calculate").await, Ok("native".to_owned()));
    assert_eq!(call_log.calls().iter().filter(|source| *source == "native").count(), 6);

    let status = &hub.sources()[0];
    let open = BreakerState::Open { retry_in: Duration::from_millis(1_990) };
    assert_eq!(status.tripped_tools, [("search_web".into(), open)]);
    assert_eq!(status.breaker, open, "the worst state of its tools");
}

#[tokio::test(start_paused = true)]
async fn a_server_has_one_breaker_for_all_its_tools() {
    let hub = ToolHub::default();
    register(
        &hub,
        &[
            test_tool("a", "server").with_behavior(Behavior::Fail(ErrorKind::ResponseLost)).writes(),
            test_tool("b", "server"),
        ],
    );
    for _ in 0..5 {
        let _ = call(&hub, "a").await;
    }
    assert_eq!(call(&hub, "b").await, Err(ErrorKind::CircuitOpen));
    let status = &hub.sources()[0];
    assert!(status.tripped_tools.is_empty() && status.breaker != BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_native_tool_has_its_own_retry_budget_and_keeps_it_when_replaced() {
    let lost = |tool: &str| test_tool(tool, "native").with_behavior(Behavior::Fail(ErrorKind::Failed));
    let hub = ToolHub::default();
    // Every call fails as retryable; this does not count as a failure of the source.
    struct BusyTool(toolyard_core::ToolSpec);
    impl toolyard_core::Tool for BusyTool {
        fn spec(&self) -> &toolyard_core::ToolSpec {
            &self.0
        }
        fn call<'a>(
            &'a self,
            _: &'a toolyard_core::ToolCallRequest,
            _: &'a toolyard_core::CallContext,
        ) -> toolyard_core::BoxFuture<'a, Result<toolyard_core::ToolOutput, ToolError>> {
            Box::pin(async { Err(ToolError::failed("busy").with_retryable(true)) })
        }
    }
    let busy_tool = |name: &str| -> Arc<dyn toolyard_core::Tool> {
        let spec = toolyard_core::ToolSpec::new(name, "");
        Arc::new(BusyTool(spec.with_hints(toolyard_core::ToolHints::READ_ONLY)))
    };
    let attempts =
        async |tool: &str| hub.execute(&request(tool), &CallOptions::default()).await.unwrap_err().attempts();
    hub.register(SourceInfo::native(), vec![busy_tool("one"), busy_tool("two")]);
    for _ in 0..10 {
        let _ = attempts("one").await;
    }
    assert_eq!(attempts("one").await, 1, "its budget is used up");
    assert_eq!(attempts("two").await, 3, "another tool has its own budget");
    hub.register(
        SourceInfo::native(),
        vec![busy_tool("one"), busy_tool("two"), lost("three").tool(&Arc::default())],
    );
    assert_eq!(attempts("one").await, 1, "the budget is kept");
}

#[tokio::test(start_paused = true)]
async fn hanging_calls_to_one_native_tool_do_not_starve_another() {
    let hub = Arc::new(ToolHub::default());
    register(
        &hub,
        &[test_tool("search_web", "native").with_behavior(Behavior::Hang), test_tool("calculate", "native")],
    );
    let hanging: Vec<_> = (0..1_024)
        .map(|_| {
            let hub = Arc::clone(&hub);
            tokio::spawn(async move { call(&hub, "search_web").await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let started = tokio::time::Instant::now();
    assert_eq!(call(&hub, "calculate").await, Ok("native".to_owned()));
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_native_source_is_still_written_to_by_one_call_at_a_time() {
    let hub = ToolHub::default();
    let writer = |tool: &str| test_tool(tool, "native").writes().exclusive();
    let call_log = register(&hub, &[writer("one"), writer("two")]);
    futures_util::future::join_all([call(&hub, "one"), call(&hub, "two")]).await;
    assert_eq!(call_log.max_running.load(std::sync::atomic::Ordering::SeqCst), 1);
}

/// Lets one caller make 1,024 calls of `hog_tool` and returns how long a call of `tool` by another caller takes.
async fn call_beside_a_hog(hub: &Arc<ToolHub>, hog_tool: &'static str, tool: &str) -> Duration {
    let options =
        |caller: &str| CallOptions::for_caller(caller.into()).with_timeout(Duration::from_secs(300));
    let hog_options = options("hog");
    let hog: Vec<_> = (0..1_024)
        .map(|_| {
            let (hub, options) = (Arc::clone(hub), hog_options.clone());
            tokio::spawn(async move { drop(hub.execute(&request(hog_tool), &options).await) })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let started = tokio::time::Instant::now();
    hub.execute(&request(tool), &options("victim")).await.unwrap();
    let elapsed = started.elapsed();
    hog.iter().for_each(tokio::task::JoinHandle::abort);
    elapsed
}

#[tokio::test(start_paused = true)]
async fn slow_calls_of_one_caller_do_not_delay_another_caller() {
    let hub = Arc::new(ToolHub::default());
    register(
        &hub,
        &[test_tool("slow", "server").with_delay_ms(20_000), test_tool("quick", "server").with_delay_ms(100)],
    );
    let elapsed = call_beside_a_hog(&hub, "slow", "quick").await;
    assert!(elapsed <= Duration::from_millis(200), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn writes_of_one_caller_to_an_exclusive_source_delay_another_caller_by_one_write() {
    let hub = Arc::new(ToolHub::default());
    let writer = |tool: &str| test_tool(tool, "server").with_delay_ms(100).writes().exclusive();
    register(&hub, &[writer("one"), writer("two")]);
    let elapsed = call_beside_a_hog(&hub, "one", "two").await;
    assert!(elapsed <= Duration::from_millis(200), "{elapsed:?}");
}

/// A tool that fails with the same error at every call.
struct FailingTool(toolyard_core::ToolSpec, ToolError);

impl toolyard_core::Tool for FailingTool {
    fn spec(&self) -> &toolyard_core::ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _: &'a toolyard_core::ToolCallRequest,
        _: &'a toolyard_core::CallContext,
    ) -> toolyard_core::BoxFuture<'a, Result<toolyard_core::ToolOutput, ToolError>> {
        Box::pin(async move { Err(self.1.clone()) })
    }
}

/// The breaker of a server after ten calls that failed with `error`.
async fn breaker_after(hub: &ToolHub, error: ToolError) -> BreakerState {
    let source = SourceInfo::new("server", toolyard_core::SourceKind::Mcp);
    hub.register(source, vec![Arc::new(FailingTool(toolyard_core::ToolSpec::new("a", ""), error))]);
    for _ in 0..10 {
        let _ = call(hub, "a").await;
    }
    hub.sources()[0].breaker
}

#[tokio::test(start_paused = true)]
async fn failures_of_single_calls_do_not_open_the_breaker() {
    let lost = || ToolError::new(ErrorKind::ResponseLost, "a response is longer than 1024 bytes");
    for signal in [SourceSignal::Healthy, SourceSignal::Unknown] {
        let state = breaker_after(&ToolHub::default(), lost().with_source_signal(signal)).await;
        assert_eq!(state, BreakerState::Closed, "{signal:?}");
    }
    assert_eq!(breaker_after(&ToolHub::default(), ToolError::failed("no")).await, BreakerState::Closed);
    assert_ne!(breaker_after(&ToolHub::default(), lost()).await, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reports_ready_closes_its_breaker() {
    let hub = ToolHub::default();
    let lost = ToolError::new(ErrorKind::Unavailable, "cannot reach the server");
    assert_ne!(breaker_after(&hub, lost).await, BreakerState::Closed);
    hub.report_ready(&"server".into());
    assert_eq!(hub.sources()[0].breaker, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn the_failure_threshold_is_a_setting() {
    let breaker = BreakerSettings { failure_threshold: 11, ..BreakerSettings::default() };
    let hub = ToolHub::new(HubConfig { breaker, ..HubConfig::default() });
    let lost = ToolError::new(ErrorKind::ResponseLost, "lost");
    assert_eq!(breaker_after(&hub, lost).await, BreakerState::Closed);
    let _ = call(&hub, "a").await;
    assert_ne!(hub.sources()[0].breaker, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_as_long_as_the_source_asks() {
    let hub = ToolHub::default();
    let busy = ToolError::new(ErrorKind::Unavailable, "the server responded with HTTP status 429")
        .with_source_signal(SourceSignal::Healthy)
        .with_retry_after(Duration::from_secs(7));
    let spec = toolyard_core::ToolSpec::new("a", "").with_hints(toolyard_core::ToolHints::READ_ONLY);
    let source = SourceInfo::new("server", toolyard_core::SourceKind::Mcp).trusted(true);
    hub.register(source, vec![Arc::new(FailingTool(spec, busy))]);
    let started = tokio::time::Instant::now();
    let error = hub.execute(&request("a"), &CallOptions::default()).await.unwrap_err();
    assert_eq!((error.attempts(), started.elapsed().as_secs()), (3, 14));
    let options = CallOptions::default().with_timeout(Duration::from_secs(5));
    let error = hub.execute(&request("a"), &options).await.unwrap_err();
    assert_eq!((error.attempts(), error.retry_after()), (1, Some(Duration::from_secs(7))));
}
