//! Breakers, concurrency limits and retry budgets of sources and native tools, also when they are registered again.

mod common;

use std::{sync::Arc, time::Duration};

use common::{Behavior, TestTool, register, request, test_tool};
use toolyard_core::{ErrorKind, SourceInfo};
use toolyard_hub::{BreakerState, CallOptions, ToolHub};

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
        ) -> toolyard_core::BoxFuture<'a, Result<toolyard_core::ToolOutput, toolyard_core::ToolError>>
        {
            Box::pin(async { Err(toolyard_core::ToolError::failed("busy").with_retryable(true)) })
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
