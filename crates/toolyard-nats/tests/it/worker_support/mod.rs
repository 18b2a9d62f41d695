//! Workers, their tools, and callers for tests.

use std::{
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolyard_cluster::workers::{ServedTool, Worker, WorkerSink, WorkerTool};
use toolyard_core::{
    BoxFuture, CallContext, CallInputError, CallInputKind, CallInputRequest, CallProgress, Caller,
    ContentHash, NameClaim, RawJson, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec, WorkerEndpoint,
};
use toolyard_nats::{NatsConnection, NatsCredentials, NatsPeers, NatsSettings, NatsWorker};

use crate::support::NatsServer;

/// What the tool does, as its arguments say.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Behaviour {
    /// Answers with the number of the process.
    Answer,
    Echo(String),
    /// Answers with so many bytes.
    Generate(usize),
    /// Never answers.
    Hold(String),
    /// Answers like `Answer` after a while.
    Wait(Duration),
    /// Reports progress, asks the caller, and answers with its answer.
    Ask,
}

struct Probe {
    spec: ToolSpec,
    process: u64,
    calls: Arc<AtomicUsize>,
    running: Arc<AtomicUsize>,
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Tool for Probe {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            self.running.fetch_add(1, Ordering::SeqCst);
            let _running = Running(Arc::clone(&self.running));
            let answer = match request.arguments.read::<Behaviour>().unwrap() {
                Behaviour::Answer => self.process.to_string(),
                Behaviour::Echo(text) => text,
                Behaviour::Generate(length) => "x".repeat(length),
                Behaviour::Hold(_) => std::future::pending().await,
                Behaviour::Wait(duration) => {
                    tokio::time::sleep(duration).await;
                    self.process.to_string()
                }
                Behaviour::Ask => {
                    let caller = context.caller.as_ref().unwrap();
                    caller.progress(&CallProgress { progress: 1.0, total: None, message: None });
                    let question = CallInputRequest {
                        key: "q".to_owned(),
                        source: "files".into(),
                        kind: CallInputKind::Elicitation,
                        params: Some(json!({"message": "sure?"}).into()),
                    };
                    caller.request_input(&[question]).await.unwrap()[0].get().to_owned()
                }
            };
            Ok(ToolOutput::text(answer))
        })
    }
}

fn definition(description: &str) -> RawJson {
    let name = if description == "B" { "second" } else { "probe" };
    RawJson::from_value(&json!({"name": name, "description": description, "inputSchema": {"type": "object"}}))
}

fn endpoint(description: &str) -> WorkerEndpoint {
    let definition = definition(description);
    let name = definition.to_value()["name"].as_str().unwrap().into();
    WorkerEndpoint { tool: name, definition: ContentHash::of(definition.get()) }
}

pub(crate) struct TestWorker {
    pub(crate) worker: Arc<Worker>,
    pub(crate) transport: Arc<NatsWorker>,
    pub(crate) calls: Arc<AtomicUsize>,
    pub(crate) running: Arc<AtomicUsize>,
    number: u64,
}

impl TestWorker {
    pub(crate) async fn start(
        nats: &NatsSettings,
        group: &str,
        number: u64,
        concurrency: u32,
        tools: &[&str],
    ) -> Self {
        let connection = NatsConnection::connect(nats, "worker").await.unwrap();
        Self::with_connection(connection, group, number, concurrency, tools).await
    }

    pub(crate) async fn with_connection(
        connection: NatsConnection,
        group: &str,
        number: u64,
        concurrency: u32,
        tools: &[&str],
    ) -> Self {
        let transport = Arc::new(NatsWorker::join(connection, group, number).await.unwrap());
        let worker = Arc::new(Worker::new(number, Arc::clone(&transport) as _, concurrency));
        transport.register(worker.call_service(), worker.catalogue_service());
        let test = Self { worker, transport, calls: Arc::default(), running: Arc::default(), number };
        test.set(tools).await;
        // The subscriptions are there when the server has processed them.
        tokio::time::sleep(Duration::from_millis(50)).await;
        test
    }

    pub(crate) async fn set(&self, tools: &[&str]) {
        let served = tools.iter().map(|description| {
            let spec = ToolSpec::new(&*endpoint(description).tool, *description);
            let (calls, running) = (Arc::clone(&self.calls), Arc::clone(&self.running));
            let tool = Arc::new(Probe { spec, process: self.number, calls, running });
            ServedTool { definition: definition(description), endpoint: endpoint(description), tool }
        });
        self.worker.set_tools(served.collect()).await.unwrap();
    }
}

pub(crate) fn worker_tool(gateway: &Arc<NatsPeers>, group: &str, description: &str) -> Arc<WorkerTool> {
    let endpoint = endpoint(description);
    let spec = ToolSpec::new(&*endpoint.tool, description);
    let network = Arc::clone(gateway) as _;
    Arc::new(WorkerTool::new(group, spec, endpoint.definition, NameClaim::default(), network))
}

pub(crate) fn context(limit: Duration) -> CallContext {
    CallContext::until(Instant::now() + limit)
}

pub(crate) async fn call(
    tool: &WorkerTool,
    behaviour: Behaviour,
    limit: Duration,
) -> Result<String, ToolError> {
    call_with(tool, behaviour, &context(limit)).await
}

pub(crate) async fn call_with(
    tool: &WorkerTool,
    behaviour: Behaviour,
    context: &CallContext,
) -> Result<String, ToolError> {
    let request = ToolCallRequest::new("called-as", serde_json::to_value(behaviour).unwrap());
    tool.call(&request, context).await.map(|output| output.to_text())
}

/// Records what it is told, and accepts every question.
#[derive(Debug, Default)]
pub(crate) struct TestCaller {
    pub(crate) told: Mutex<Vec<String>>,
}

impl Caller for TestCaller {
    fn session_id(&self) -> u64 {
        7
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, progress: &CallProgress) {
        self.told.lock().push(format!("progress {}", progress.progress));
    }

    fn request_input<'a>(
        &'a self,
        requests: &'a [CallInputRequest],
    ) -> BoxFuture<'a, Result<Vec<RawJson>, CallInputError>> {
        let params = requests[0].params.as_ref().unwrap().to_value();
        self.told.lock().push(params["message"].as_str().unwrap().to_owned());
        Box::pin(std::future::ready(Ok(vec![json!({"action": "accept"}).into()])))
    }
}

/// Records how many definitions and processes there are.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Option<(usize, usize)>>);

impl Recorder {
    pub(crate) fn latest(&self) -> Option<(usize, usize)> {
        *self.0.lock()
    }
}

impl WorkerSink for Recorder {
    fn offered<'a>(
        &'a self,
        _group: &'a str,
        definitions: Vec<RawJson>,
        processes: usize,
    ) -> BoxFuture<'a, bool> {
        *self.0.lock() = Some((definitions.len(), processes));
        Box::pin(std::future::ready(true))
    }
}

pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub(crate) async fn connect(nats: &NatsServer, user: &str) -> NatsConnection {
    let mut settings = nats.settings();
    settings.credentials =
        Some(NatsCredentials::Password { user: user.to_owned(), password: "p".to_owned() });
    NatsConnection::connect(&settings, user).await.unwrap()
}
