//! A process that is killed in the middle of a run, and a ledger that records which calls took effect.
//!
//! `new STORE MODEL LEDGER QUESTION KILL` creates and drives a run; `resume STORE MODEL LEDGER RUN KILL` resumes one. MODEL
//! is the URL of an OpenAI-compatible server, LEDGER a file. KILL is empty, `before:N` or `after:N`: the process kills
//! itself at its Nth write. `ledger FILE` serves the ledger over MCP, `guard …` runs its process guard.

#![expect(clippy::unwrap_used, reason = "a process made for tests")]

mod crashing_log;
mod ledger;
#[path = "../../src/driver/tests/wrapped_log.rs"]
mod wrapped_log;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, OnceLock},
    time::Duration,
};

use crashing_log::CrashingLog;
use toolyard_agent::{
    Agent, AgentConfig, AgentError, AgentParts, ApprovalRules, CancelToken, NoWatcher, RunEnd, RunRequest,
    TokenCounter,
};
use toolyard_core::{JournalError, RunId, SourceId, SourceInfo, Tool};
use toolyard_hub::ToolHub;
use toolyard_mcp::WireLimits;
use toolyard_mcp_client::{
    GuardProgram, Host, HostEnvironment, McpManager, ServerCache, ToolRegistrar,
    config::{McpServerConfig, TransportConfig},
    run_guard,
};
use toolyard_model::{ModelServerConfig, OpenAiModel, ToolCalling};
use toolyard_store::{Location, Store};

const LEASE_DURATION: Duration = Duration::from_millis(400);
/// Exit code for a suspended run.
const EXIT_SUSPENDED: u8 = 5;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|argument| argument == "guard") {
        // The arguments before this only describe the guarded process in process lists.
        let arguments = arguments.skip_while(|argument| argument != "--grace-ms");
        return u8::try_from(run_guard(arguments)).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        match arguments.as_slice() {
            ["ledger", file] => ledger::serve(PathBuf::from(file)).await,
            ["new", store, model, ledger, question, kill] => {
                let bed = TestBed::new(store, model, ledger).await;
                let agent = bed.agent(Arc::new(bed.store.clone()));
                let run = agent
                    .create_run(RunRequest { question: (*question).to_owned(), ..RunRequest::default() })
                    .await
                    .unwrap();
                report(&format!("run {run}"));
                bed.drive(&run, kill).await
            }
            ["resume", store, model, ledger, run, kill] => {
                TestBed::new(store, model, ledger).await.drive(&RunId::from(*run), kill).await
            }
            _ => ExitCode::FAILURE,
        }
    })
}

/// Prints a line for the test.
fn report(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

struct TestBed {
    store: Store,
    hub: Arc<ToolHub>,
    model: Arc<OpenAiModel>,
    _servers: McpManager,
}

impl TestBed {
    async fn new(store: &str, model: &str, ledger: &str) -> Self {
        let store = Store::open(Location::Sqlite(PathBuf::from(store))).await.unwrap();
        let hub = Arc::new(ToolHub::default());
        let servers = servers(&store, &hub, Path::new(ledger)).await;
        let mut config = ModelServerConfig::new("scripted", model, "scripted");
        config.tool_calling = ToolCalling::Schema;
        let model = Arc::new(OpenAiModel::new(config).unwrap());
        Self { store, hub, model, _servers: servers }
    }

    fn agent(&self, log: Arc<dyn toolyard_core::RunLog>) -> Agent {
        Agent::new(AgentParts {
            config: Arc::new(AgentConfig::new("assistant")),
            hub: Arc::clone(&self.hub),
            model: Arc::clone(&self.model) as Arc<dyn toolyard_model::Model>,
            log,
            approvals: Arc::new(self.store.clone()),
            rules: ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() },
            result_shapes: None,
            argument_examples: None,
            counter: Arc::new(ApproximateCounter),
            owner: format!("process {}", std::process::id()),
        })
        .with_lease_duration(LEASE_DURATION)
    }

    /// Drives a run once its lease is free.
    async fn drive(&self, run: &RunId, kill: &str) -> ExitCode {
        let agent = self.agent(Arc::new(CrashingLog::wrap(self.store.clone(), kill)));
        let end = loop {
            match agent.drive(run, &NoWatcher, &CancelToken::new()).await {
                Err(AgentError::Journal(JournalError::Leased { .. })) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                end => break end,
            }
        };
        match end {
            Ok(end) => {
                report(&format!("end {}", serde_json::to_string(&end).unwrap()));
                match end {
                    RunEnd::Answered { .. } => ExitCode::SUCCESS,
                    RunEnd::Suspended { .. } => ExitCode::from(EXIT_SUSPENDED),
                    _ => ExitCode::FAILURE,
                }
            }
            Err(error) => {
                report(&format!("error {error}"));
                ExitCode::FAILURE
            }
        }
    }
}

/// The ledger as an MCP server over stdio, started by the first call.
async fn servers(store: &Store, hub: &Arc<ToolHub>, file: &Path) -> McpManager {
    let manager = McpManager::new(Host {
        environment: Vec::new(),
        working_directory: file.parent().unwrap().to_owned(),
        guard: Some(GuardProgram::current_program([OsString::from("guard")])),
        cache: ServerCache::new(Arc::new(store.clone())),
        registrar: Arc::new(HubRegistrar(Arc::clone(hub))),
        host_environment: Arc::new(EmptyEnvironment),
        limits: WireLimits::default(),
        http: OnceLock::new(),
        telemetry: None,
    });
    let program = std::env::current_exe().unwrap();
    let transport = TransportConfig::Stdio {
        command: program.to_str().unwrap().to_owned(),
        args: vec!["ledger".to_owned(), file.to_str().unwrap().to_owned()],
        env: BTreeMap::new(),
        inherit: Vec::new(),
        cwd: None,
    };
    let config = McpServerConfig { trusted: true, ..McpServerConfig::new("ledger", transport) };
    manager.apply(vec![config]).await.unwrap();
    if hub.tools().is_empty() {
        manager.connect("ledger").await.unwrap();
    }
    manager
}

/// An approximate counter, because loading a tokenizer takes longer than the whole run.
struct ApproximateCounter;

impl TokenCounter for ApproximateCounter {
    fn count(&self, text: &str) -> usize {
        text.len() / 4
    }
}

struct HubRegistrar(Arc<ToolHub>);

impl ToolRegistrar for HubRegistrar {
    fn replace(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>) {
        self.0.register(source, tools);
    }

    fn remove(&self, source: &SourceId) {
        self.0.remove(source);
    }
}

struct EmptyEnvironment;

impl HostEnvironment for EmptyEnvironment {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}
