//! What is remembered of sources and native tools while they are replaced: breakers, gates and retry budgets.

mod common;

use std::{sync::Arc, time::Duration};

use common::{Act, Part, part, register, request};
use toolyard_core::{ErrorKind, SourceInfo};
use toolyard_hub::{BreakerState, CallOptions, ToolHub};

async fn call(hub: &ToolHub, tool: &str) -> Result<String, ErrorKind> {
    let outcome = hub.execute(&request(tool), &CallOptions::default()).await;
    outcome.map(|output| output.to_text()).map_err(|error| error.kind())
}

fn native() -> [Part; 2] {
    [
        part("search_web", "native").act(Act::Fail(ErrorKind::ResponseLost)).writes(),
        part("calculate", "native"),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_native_tool_keeps_its_breaker_when_the_source_is_registered_again() {
    let hub = ToolHub::default();
    let ledger = register(&hub, &native());
    for _ in 0..5 {
        let _ = call(&hub, "search_web").await;
    }
    let tools = native().iter().map(|part| part.tool(&ledger)).collect();
    hub.register(SourceInfo::native(), tools);
    assert_eq!(call(&hub, "search_web").await, Err(ErrorKind::CircuitOpen));
    assert_eq!(call(&hub, "calculate").await, Ok("native".to_owned()));
    assert_eq!(ledger.calls().iter().filter(|source| *source == "native").count(), 6);

    let status = &hub.sources()[0];
    let open = BreakerState::Open { retry_in: Duration::from_millis(1_990) };
    assert_eq!(status.open, [("search_web".into(), open)]);
    assert_eq!(status.breaker, open, "the worst of its tools");
}

#[tokio::test(start_paused = true)]
async fn a_server_has_one_breaker_for_all_its_tools() {
    let hub = ToolHub::default();
    register(
        &hub,
        &[part("a", "server").act(Act::Fail(ErrorKind::ResponseLost)).writes(), part("b", "server")],
    );
    for _ in 0..5 {
        let _ = call(&hub, "a").await;
    }
    assert_eq!(call(&hub, "b").await, Err(ErrorKind::CircuitOpen));
    let status = &hub.sources()[0];
    assert!(status.open.is_empty() && status.breaker != BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_native_tool_keeps_its_retry_budget_to_itself_and_through_replacement() {
    let lost = |tool: &str| part(tool, "native").act(Act::Fail(ErrorKind::Failed));
    let hub = ToolHub::default();
    // A tool that asks for another attempt every time, without speaking against its source.
    struct Busy(toolyard_core::ToolSpec);
    impl toolyard_core::Tool for Busy {
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
    let busy = |name: &str| -> Arc<dyn toolyard_core::Tool> {
        let spec = toolyard_core::ToolSpec::new(name, "");
        Arc::new(Busy(spec.with_hints(toolyard_core::ToolHints::READ_ONLY)))
    };
    let attempts =
        async |tool: &str| hub.execute(&request(tool), &CallOptions::default()).await.unwrap_err().attempts();
    hub.register(SourceInfo::native(), vec![busy("one"), busy("two")]);
    for _ in 0..10 {
        let _ = attempts("one").await;
    }
    assert_eq!(attempts("one").await, 1, "its budget is used up");
    assert_eq!(attempts("two").await, 3, "that of another is not");
    hub.register(SourceInfo::native(), vec![busy("one"), busy("two"), lost("three").tool(&Arc::default())]);
    assert_eq!(attempts("one").await, 1, "and stays so");
}

#[tokio::test(start_paused = true)]
async fn hanging_calls_to_one_native_tool_do_not_starve_another() {
    let hub = Arc::new(ToolHub::default());
    register(&hub, &[part("search_web", "native").act(Act::Hang), part("calculate", "native")]);
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
    let writer = |tool: &str| part(tool, "native").writes().exclusive();
    let ledger = register(&hub, &[writer("one"), writer("two")]);
    futures_util::future::join_all([call(&hub, "one"), call(&hub, "two")]).await;
    assert_eq!(ledger.most_running.load(std::sync::atomic::Ordering::SeqCst), 1);
}
