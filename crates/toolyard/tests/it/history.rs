//! The order of equivalent sources follows their success rates and survives a restart.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError, ToolHints,
    ToolOutput, ToolSpec,
};
use toolyard_hub::{BreakerSettings, CallOptions, DecisionLog, HubConfig, ToolHub};
use toolyard_store::{Clock, Location, Store, StoredHistory};

/// A calculator whose calls fail while it is broken.
struct Calculator {
    spec: ToolSpec,
    delay: Duration,
    broken: Arc<AtomicBool>,
}

impl Tool for Calculator {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            if self.broken.load(Ordering::SeqCst) {
                return Err(ToolError::new(ErrorKind::ResponseLost, "the connection broke"));
            }
            tokio::time::sleep(self.delay).await;
            Ok(ToolOutput::text("42"))
        })
    }
}

/// A hub with two equivalent sources: `quick`, which can be broken, and `slow`.
async fn hub(store: &Store, clock: &Clock, broken: &Arc<AtomicBool>) -> (ToolHub, Arc<StoredHistory>) {
    let history = StoredHistory::with_clock(store, Arc::clone(clock)).await.unwrap();
    let breaker = BreakerSettings {
        initial_open_time: Duration::from_millis(1),
        max_open_time: Duration::from_millis(2),
        ..BreakerSettings::default()
    };
    let hub = ToolHub::new(HubConfig { history: Arc::clone(&history) as _, breaker, ..HubConfig::default() });
    for (source, delay, broken) in [("quick", 1, Arc::clone(broken)), ("slow", 60, Arc::default())] {
        let spec = ToolSpec::new("calculate", "").with_hints(ToolHints::READ_ONLY);
        let tool = Calculator { spec, delay: Duration::from_millis(delay), broken };
        hub.register(SourceInfo::new(source, SourceKind::Mcp).trusted(true), vec![Arc::new(tool)]);
    }
    (hub, history)
}

/// Makes a call 20 seconds after the last one. Returns the source that routing ranked first.
async fn first_ranked(hub: &ToolHub, time: &AtomicI64) -> String {
    time.fetch_add(20_000, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(3)).await;
    let decision_log = Arc::new(DecisionLog::default());
    let options = CallOptions::default().with_decision_log(Arc::clone(&decision_log));
    hub.execute(&ToolCallRequest::new("calculate", serde_json::json!({})), &options).await.unwrap();
    let decisions = decision_log.decisions();
    let strategy = decisions.iter().find(|decision| decision.stage == "strategy").unwrap();
    let position = |source: &str| strategy.detail.find(&format!("calculate@{source}")).unwrap();
    if position("quick") < position("slow") { "quick".to_owned() } else { "slow".to_owned() }
}

#[tokio::test]
async fn routing_order_follows_success_rates_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::Sqlite(folder.path().join("toolyard.db"));
    let store = Store::open(location.clone()).await.unwrap();
    let time = Arc::new(AtomicI64::new(1_700_000_000_000));
    let clock: Clock = {
        let time = Arc::clone(&time);
        Arc::new(move || time.load(Ordering::SeqCst))
    };
    let broken = Arc::new(AtomicBool::new(false));
    let (healthy_hub, history) = hub(&store, &clock, &broken).await;
    for _ in 0..3 {
        assert_eq!(first_ranked(&healthy_hub, &time).await, "quick");
    }
    broken.store(true, Ordering::SeqCst);
    let mut first_sources = Vec::new();
    // Ten minutes, a call every twenty seconds.
    for _ in 0..30 {
        first_sources.push(first_ranked(&healthy_hub, &time).await);
    }
    assert!(
        first_sources.iter().skip(3).all(|first| first == "slow"),
        "the order changes within 3 calls: {first_sources:?}"
    );

    history.flush().await.unwrap();
    let (restarted, _) = hub(&Store::open(location.clone()).await.unwrap(), &clock, &broken).await;
    assert_eq!(first_ranked(&restarted, &time).await, "slow", "the same after a restart");

    broken.store(false, Ordering::SeqCst);
    let mut first_sources = Vec::new();
    for _ in 0..4 {
        first_sources.push(first_ranked(&healthy_hub, &time).await);
    }
    assert_eq!(
        first_sources.last().unwrap(),
        "quick",
        "`quick` is first again once it works: {first_sources:?}"
    );
    history.flush().await.unwrap();
    let (restarted, _) = hub(&Store::open(location).await.unwrap(), &clock, &broken).await;
    assert_eq!(first_ranked(&restarted, &time).await, "quick", "the same after a restart");
}
