//! The store does not answer for a while: clients get a retryable error, and nothing happens later.

use std::{sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};
use toolyard_agent::{MemoryRunLog, RunRequest};
use toolyard_core::{Journal as _, JournalError, JournalFuture, RunState};
use toolyard_mcp_server::{HttpRoutes as _, RouteBody, RouteRequest, RouteResponse};

use super::{
    testing::TestAgents,
    wrapped_log::{LogInterceptor, WrappedLog},
};
use crate::HttpApi;

/// A store that is away: it fails, or does not answer until it is back.
struct Outage {
    log: MemoryRunLog,
    state: watch::Receiver<StoreState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoreState {
    Available,
    Failing,
    Hanging,
    Slow,
}

impl LogInterceptor for Outage {
    type Log = MemoryRunLog;

    fn log(&self) -> &MemoryRunLog {
        &self.log
    }

    fn admit(&self) -> JournalFuture<'_, ()> {
        Box::pin(async move {
            let mut state = self.state.clone();
            let current = *state.wait_for(|state| *state != StoreState::Hanging).await.unwrap();
            match current {
                StoreState::Slow => {
                    tokio::time::sleep(Duration::from_secs(12)).await;
                    Ok(())
                }
                StoreState::Failing => Err(JournalError::Storage("connection refused".to_owned())),
                _ => Ok(()),
            }
        })
    }

    fn write<'a, T: Send + 'a>(
        &'a self,
        perform: impl FnOnce() -> JournalFuture<'a, T> + Send + 'a,
    ) -> JournalFuture<'a, T> {
        Box::pin(async move {
            self.admit().await?;
            perform().await
        })
    }
}

fn agents_with_outage() -> (TestAgents, MemoryRunLog, watch::Sender<StoreState>) {
    let (sender, state) = watch::channel(StoreState::Available);
    let log = MemoryRunLog::new();
    let store = WrappedLog(Outage { log: log.clone(), state });
    (TestAgents::new(Arc::new(store), Arc::new(log.clone())), log, sender)
}

fn start_request(headers: &[(&'static str, &'static str)]) -> RouteRequest {
    let headers = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    RouteRequest {
        method: Method::POST,
        path: "/runs".to_owned(),
        query: String::new(),
        identity: Arc::default(),
        headers,
        body: json!({"question": "now"}).to_string(),
    }
}

fn parse(response: &RouteResponse) -> (u16, Value) {
    match &response.body {
        RouteBody::Json(bytes) => (response.status.as_u16(), serde_json::from_slice(bytes).unwrap()),
        RouteBody::Events { .. } | RouteBody::Empty => panic!("no JSON"),
    }
}

fn header<'a>(response: &'a RouteResponse, name: &str) -> Option<&'a str> {
    let value = response.headers.iter().find(|(known, _)| known.as_str() == name);
    value.map(|(_, value)| value.to_str().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_run_is_refused_at_once_while_the_store_is_away_and_never_runs_later() {
    for away in [StoreState::Failing, StoreState::Hanging] {
        for headers in [&[][..], &[("idempotency-key", "k")], &[("x-stainless-retry-count", "1")]] {
            let (agents, log, store) = agents_with_outage();
            let api = HttpApi::of_agents(agents.service());
            store.send_replace(away);
            let started = Instant::now();
            let response = api.handle(start_request(headers)).await;
            let (status, error) = parse(&response);
            assert_eq!(
                (status, error["error"]["code"].as_str()),
                (503, Some("store_unavailable")),
                "{error}"
            );
            assert!(started.elapsed() <= Duration::from_millis(2_100), "{away:?}: {:?}", started.elapsed());
            assert_eq!(header(&response, "retry-after"), Some("2"));
            assert_eq!(header(&response, "x-should-retry"), Some("true"));
            let shown =
                RouteRequest { method: Method::GET, path: "/runs/01".to_owned(), ..start_request(&[]) };
            assert_eq!(parse(&api.handle(shown).await).0, 503, "{away:?}");

            store.send_replace(StoreState::Available);
            tokio::time::sleep(Duration::from_mins(2)).await;
            let runs = log.runs(10).await.unwrap();
            assert!(runs.is_empty(), "{away:?}: {runs:?}");
            // The repeated request starts the run, once.
            for _ in 0..2 {
                let (status, answer) = parse(&api.handle(start_request(&[("idempotency-key", "k")])).await);
                assert_eq!(status, 202, "{answer}");
            }
            assert_eq!(log.runs(10).await.unwrap().len(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn leases_that_nobody_could_renew_are_not_taken_over_at_once() {
    let (agents, log, store) = agents_with_outage();
    let (first, second) = (agents.in_process("first"), agents.in_process("second"));
    let agent = first.service().0.agent("assistant").unwrap();
    let (detached, authority) = (true, Some(Box::new(agent.authority())));
    let request = RunRequest { agent: "assistant".to_owned(), detached, authority, ..RunRequest::default() };
    let run = agent.create_run(request).await.unwrap();
    let lease = log.claim(&run, "first", first.lease).await.unwrap();
    tokio::spawn(second.service().orphan_adopter().run(drop));
    for away in [StoreState::Failing, StoreState::Hanging] {
        store.send_replace(away);
        tokio::time::sleep(first.lease * 2).await;
        store.send_replace(StoreState::Available);
        // The living owner renews its lease at its next heartbeat.
        tokio::time::sleep(first.lease / 3).await;
        log.renew(&lease, first.lease).await.unwrap();
        tokio::time::sleep(first.lease / 2).await;
        log.renew(&lease, first.lease).await.unwrap();
    }
    // Now it dies.
    tokio::time::sleep(first.lease + Duration::from_secs(5)).await;
    assert_eq!(log.run(&run).await.unwrap().state, RunState::Done);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_always_slow_does_not_keep_orphaned_runs_waiting() {
    let (agents, log, store) = agents_with_outage();
    let (first, second) = (agents.in_process("first"), agents.in_process("second"));
    let agent = first.service().0.agent("assistant").unwrap();
    let (detached, authority) = (true, Some(Box::new(agent.authority())));
    let request = RunRequest { agent: "assistant".to_owned(), detached, authority, ..RunRequest::default() };
    let run = agent.create_run(request).await.unwrap();
    let lease = log.claim(&run, "first", first.lease).await.unwrap();
    store.send_replace(StoreState::Slow);
    tokio::spawn(second.service().orphan_adopter().run(drop));
    tokio::time::sleep(first.lease * 4).await;
    assert!(log.run(&run).await.unwrap().fence > lease.fence, "the second process claimed the run");
}
