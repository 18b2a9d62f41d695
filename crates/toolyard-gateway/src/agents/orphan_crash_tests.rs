//! A process is killed, or stops, in the middle of many runs while another one serves: every run ends there, and no side
//! effect is repeated or lost. On SQLite and PostgreSQL.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, RandomState},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{HeaderMap, Method};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolyard_agent::{ApprovalRules, RunEnd, RunEvent};
use toolyard_core::{
    BoxFuture, CallContext, Journal as _, RunId, RunLog as _, RunState, SourceInfo, SourceKind, Tool,
    ToolCallRequest, ToolError, ToolHints, ToolOutput, ToolSpec,
};
use toolyard_hub::{Profile, ToolHub};
use toolyard_mcp_server::{HttpRoutes as _, RouteBody, RouteRequest};
use toolyard_model::{ModelReply, ScriptedModel, ToolCalling};
use toolyard_store::{Location, Store};

use super::{AgentService, testing::TestAgents};
use crate::HttpApi;

const RUNS: usize = 6;
const STEPS: usize = 6;
const LEASE: Duration = Duration::from_secs(1);
/// Enough for a busy machine; how fast runs are taken over is tested with a paused clock.
const MAX_TIME: Duration = Duration::from_mins(1);
const CALL_TIME: Duration = Duration::from_millis(4);

/// How the first process ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Kill,
    Stop,
}

/// Calls that took effect, by run and line.
pub(super) type Ledger = Arc<Mutex<BTreeMap<(String, usize), usize>>>;

struct RecordLine {
    spec: ToolSpec,
    ledger: Ledger,
}

impl Tool for RecordLine {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let arguments = request.arguments.to_value();
            let line = usize::try_from(arguments["line"].as_u64().unwrap()).unwrap();
            let label = arguments["label"].as_str().unwrap().to_owned();
            // A kill during the call finds its effect done or not.
            let (before, after) =
                if line % 2 == 0 { (CALL_TIME, Duration::ZERO) } else { (Duration::ZERO, CALL_TIME) };
            tokio::time::sleep(before).await;
            *self.ledger.lock().entry((label, line)).or_default() += 1;
            tokio::time::sleep(after).await;
            Ok(ToolOutput::json(arguments))
        })
    }
}

fn plan(label: &str) -> String {
    let step = |at: usize| {
        let dependencies = at.checked_sub(1).map(|before| format!("s{before}"));
        json!({"id": format!("s{at}"), "tool_type": "record_line", "arguments": {"label": label, "line": at},
               "dependencies": dependencies.into_iter().collect::<Vec<_>>(), "description": format!("line {at}")})
    };
    json!({"steps": (0..STEPS).map(step).collect::<Vec<_>>()}).to_string()
}

/// Gives agents the tool that records lines, and a model that plans to record all.
pub(super) fn use_ledger(agents: &mut TestAgents, ledger: &Ledger) {
    let hub = ToolHub::default();
    let spec = ToolSpec::new("record_line", "Record a line in the ledger").with_hints(ToolHints::default());
    let tool = RecordLine { spec: spec.without_inferred_capabilities(), ledger: Arc::clone(ledger) };
    hub.register(SourceInfo::new("ledger", SourceKind::Mcp).trusted(true), vec![Arc::new(tool)]);
    agents.parts.hub = Arc::new(hub);
    agents.parts.model = Arc::new(ScriptedModel::new(ToolCalling::Schema, |request| {
        let text: String = request.messages.iter().map(|message| message.text.as_str()).collect();
        let label = text.split("label ").nth(1).and_then(|rest| rest.split('.').next()).unwrap_or_default();
        let reply = if request.schema.is_some() { plan(label) } else { "All lines are recorded.".to_owned() };
        Ok(ModelReply { text: reply, ..ModelReply::default() })
    }));
}

/// The agents of one process.
async fn agents(location: &Location, owner: &str, ledger: &Ledger) -> (TestAgents, Store) {
    let store = Store::open(location.clone()).await.unwrap();
    let mut agents = TestAgents::new(Arc::new(store.clone()), Arc::new(store.clone())).in_process(owner);
    use_ledger(&mut agents, ledger);
    agents.parts.rules = ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() };
    agents.lease = LEASE;
    (agents, store)
}

fn serve(agents: &TestAgents) -> (AgentService, HttpApi) {
    let clients_may_approve = true;
    let service = agents.service_with(Profile::default(), clients_may_approve);
    (service.clone(), HttpApi::of_agents(service))
}

async fn post(api: &HttpApi, path: String, body: Value) -> (u16, Value) {
    let request = RouteRequest {
        method: Method::POST,
        path,
        query: String::new(),
        identity: Arc::default(),
        headers: HeaderMap::new(),
        body: body.to_string(),
    };
    let response = api.handle(request).await;
    let RouteBody::Json(body) = response.body else { panic!("events") };
    (response.status.as_u16(), serde_json::from_slice(&body).unwrap())
}

/// Starts a run. On a busy machine, the store may ask to try again later.
async fn start_run(api: &HttpApi, question: &str) -> Value {
    for _ in 0..20 {
        let (status, answer) = post(api, "/runs".to_owned(), json!({ "question": question })).await;
        if status != 503 {
            assert_eq!(status, 202, "{answer}");
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("the store does not answer")
}

/// Starts runs in a process of its own and ends it after this time. Returns the runs that were acknowledged.
fn start_and_end(location: &Location, ledger: &Ledger, end: End, after: Duration) -> Vec<RunId> {
    let process = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (started, service) = process.block_on(async {
        let (agents, _) = agents(location, "first", ledger).await;
        let (service, api) = serve(&agents);
        let mut started = Vec::new();
        for number in 0..RUNS {
            let question = format!("record all lines, label r{number}.");
            let answer = start_run(&api, &question).await;
            started.push(RunId::from(answer["run"].as_str().unwrap()));
        }
        tokio::time::sleep(after).await;
        (started, service)
    });
    if matches!(end, End::Stop) {
        process.block_on(service.shutdown(Instant::now() + Duration::from_secs(5)));
    }
    // Drops all tasks where they are, like a kill.
    process.shutdown_background();
    started
}

async fn is_suspended(store: &Store, run: &RunId) -> bool {
    let last = store.events(run, 0).await.unwrap().pop();
    last.is_some_and(|last| {
        matches!(last.event.read(), Ok(RunEvent::Ended { end: RunEnd::Suspended { .. }, .. }))
    })
}

/// Ends one process in the middle of its runs, and checks what the other makes of them. Returns how many outcomes were unknown.
async fn end_and_adopt(location: Location, end: End, after: Duration) -> usize {
    let ledger = Ledger::default();
    let (agents, store) = agents(&location, "second", &ledger).await;
    let (service, api) = serve(&agents);
    let adopting = tokio::spawn(service.orphan_adopter().run(|found| assert!(found.is_ok(), "{found:?}")));
    let (first_location, first_ledger) = (location.clone(), Arc::clone(&ledger));
    let first = std::thread::spawn(move || start_and_end(&first_location, &first_ledger, end, after));
    let runs = tokio::task::spawn_blocking(move || first.join().unwrap()).await.unwrap();
    let ended = Instant::now();
    let unknown = AtomicUsize::new(0);
    for run in &runs {
        loop {
            let record = store.run(run).await.unwrap();
            if record.state != RunState::Open {
                assert_eq!(record.state, RunState::Done, "{end:?} after {after:?}");
                break;
            }
            if is_suspended(&store, run).await {
                for step in store.unknown_steps().await.unwrap().into_iter().filter(|step| step.run == *run) {
                    let arguments: Value = serde_json::from_str(&step.redacted_arguments).unwrap();
                    let line = usize::try_from(arguments["line"].as_u64().unwrap()).unwrap();
                    let key = (arguments["label"].as_str().unwrap().to_owned(), line);
                    let outcome = if ledger.lock().contains_key(&key) { "done" } else { "not_done" };
                    let body = json!({"run": run, "step": step.step, "outcome": outcome});
                    let (status, answer) = post(&api, "/api/v1/unknown-steps".to_owned(), body).await;
                    assert_eq!((status, &answer["resumed"]), (202, &json!(true)), "{answer}");
                    unknown.fetch_add(1, Ordering::Relaxed);
                }
            }
            if ended.elapsed() > MAX_TIME {
                let (events, active) = (store.events(run, 0).await, service.0.find(run).is_some());
                let is_adopting = !adopting.is_finished();
                panic!(
                    "{end:?} after {after:?}: {record:?} is not finished; driven here: {active}, adopting: {is_adopting}, \
                     events: {events:?}"
                );
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    adopting.abort();
    let ledger = ledger.lock().clone();
    assert_eq!(ledger.len(), RUNS * STEPS, "{end:?} after {after:?}: lines are missing");
    assert!(ledger.values().all(|times| *times == 1), "{end:?} after {after:?}: repeated: {ledger:?}");
    let unknown = unknown.into_inner();
    assert!(matches!(end, End::Kill) || unknown == 0, "a process that stops leaves no unknown outcome");
    unknown
}

async fn check(new_location: impl AsyncFn(usize) -> Location) {
    let random = |number: u64| Duration::from_millis(RandomState::new().hash_one(number) % 120);
    let mut checks = tokio::task::JoinSet::new();
    for number in 0..6_u8 {
        let end = if number < 4 { End::Kill } else { End::Stop };
        let location = new_location(usize::from(number)).await;
        checks.spawn(end_and_adopt(location, end, random(u64::from(number))));
    }
    let unknown: usize = checks.join_all().await.into_iter().sum();
    println!("{unknown} unknown outcomes resolved, no effect repeated or lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_of_a_killed_process_end_elsewhere_without_repeating_an_effect_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    check(async |number| Location::Sqlite(folder.path().join(format!("{number}.db")))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_of_a_killed_process_end_elsewhere_without_repeating_an_effect_on_postgres() {
    let server = std::env::var("TOOLYARD_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("no PostgreSQL: run the tests with `just test` or `scripts/with-postgres`")
    });
    check(async |number| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let name = format!("o_{}_{since}_{number}", std::process::id());
        let create = format!("CREATE DATABASE {name}");
        let created = Command::new("psql").args([&format!("{server}/postgres"), "-qc", &create]).status();
        assert!(created.unwrap().success());
        Location::Postgres(format!("{server}/{name}"))
    })
    .await;
}
