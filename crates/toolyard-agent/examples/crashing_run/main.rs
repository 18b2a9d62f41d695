//! A process that is meant to be killed in the middle of a run, and the ledger whose lines show what it really did.
//!
//! `new STORE MODEL LEDGER QUESTION KILL` begins a run and works on it; `resume STORE MODEL LEDGER RUN KILL` goes on with
//! one. MODEL is the address of an OpenAI-compatible server, LEDGER a file, KILL empty or `before:N` or `after:N`: the
//! process kills itself at its Nth write. `ledger FILE` is the MCP server of the ledger, `guard …` its guardian.

#![expect(clippy::unwrap_used, reason = "a process made for tests")]

mod ledger;
mod mortal;
#[path = "../../tests/support/wrapped_log.rs"]
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

use mortal::Mortal;
use toolyard_agent::{
    Agent, AgentConfig, AgentError, AgentParts, ApprovalRules, Ask, CancelToken, RunEnd, TokenCount,
    Unwatched,
};
use toolyard_core::{JournalError, RunId, SourceId, SourceInfo, Tool};
use toolyard_hub::ToolHub;
use toolyard_mcp::{
    cache::ServerCache,
    client::{GuardProgram, Host, McpManager, NobodyToAsk, Registrar, Surroundings, guard},
    config::{McpServerConfig, TransportConfig},
    wire::WireLimits,
};
use toolyard_model::{OpenAiConfig, OpenAiModel, ToolCalling};
use toolyard_store::{Location, Store};

/// How long a run belongs to a process that is gone.
const LEASE: Duration = Duration::from_millis(400);
/// The exit code of a process whose run waits for a person.
const SUSPENDED: u8 = 5;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == "guard") {
        // Whom it guards is said first, for whoever looks at the list of processes.
        let words = words.skip_while(|word| word != "--grace-ms");
        return u8::try_from(guard(words)).map_or(ExitCode::FAILURE, ExitCode::from);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        match words.as_slice() {
            ["ledger", file] => ledger::serve(PathBuf::from(file)).await,
            ["new", store, model, ledger, question, kill] => {
                let house = House::new(store, model, ledger).await;
                let agent = house.agent(Arc::new(house.store.clone()));
                let run =
                    agent.begin(Ask { question: (*question).to_owned(), ..Ask::default() }).await.unwrap();
                say(&format!("run {run}"));
                house.work(&run, kill).await
            }
            ["resume", store, model, ledger, run, kill] => {
                House::new(store, model, ledger).await.work(&RunId::from(*run), kill).await
            }
            _ => ExitCode::FAILURE,
        }
    })
}

/// Tells its test something, at once.
fn say(words: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{words}");
    let _ = out.flush();
}

struct House {
    store: Store,
    hub: Arc<ToolHub>,
    model: Arc<OpenAiModel>,
    _servers: McpManager,
}

impl House {
    async fn new(store: &str, model: &str, ledger: &str) -> Self {
        let store = Store::open(Location::Sqlite(PathBuf::from(store))).await.unwrap();
        let hub = Arc::new(ToolHub::default());
        let servers = servers(&store, &hub, Path::new(ledger)).await;
        let mut config = OpenAiConfig::new("scripted", model, "scripted");
        config.tool_calling = ToolCalling::Schema;
        let model = Arc::new(OpenAiModel::new(config).unwrap());
        Self { store, hub, model, _servers: servers }
    }

    fn agent(&self, log: Arc<dyn toolyard_core::RunLog>) -> Agent {
        Agent::new(AgentParts {
            config: AgentConfig::new("assistant"),
            hub: Arc::clone(&self.hub),
            model: Arc::clone(&self.model) as Arc<dyn toolyard_model::Model>,
            log,
            approvals: Arc::new(self.store.clone()),
            rules: ApprovalRules { allow: vec!["*".to_owned()], ..ApprovalRules::default() },
            forms: None,
            counter: Arc::new(Roughly),
            owner: format!("process {}", std::process::id()),
        })
        .with_lease(LEASE)
    }

    /// Works on a run as soon as nobody else does.
    async fn work(&self, run: &RunId, kill: &str) -> ExitCode {
        let agent = self.agent(Arc::new(Mortal::wrap(self.store.clone(), kill)));
        let end = loop {
            match agent.drive(run, &Unwatched, &CancelToken::new()).await {
                Err(AgentError::Journal(JournalError::Held { .. })) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                end => break end,
            }
        };
        match end {
            Ok(end) => {
                say(&format!("end {}", serde_json::to_string(&end).unwrap()));
                match end {
                    RunEnd::Answered { .. } => ExitCode::SUCCESS,
                    RunEnd::Suspended { .. } => ExitCode::from(SUSPENDED),
                    _ => ExitCode::FAILURE,
                }
            }
            Err(error) => {
                say(&format!("error {error}"));
                ExitCode::FAILURE
            }
        }
    }
}

/// The ledger as an MCP server over its standard input and output, started when it is called for the first time.
async fn servers(store: &Store, hub: &Arc<ToolHub>, file: &Path) -> McpManager {
    let manager = McpManager::new(Host {
        environment: Vec::new(),
        working_directory: file.parent().unwrap().to_owned(),
        guard: Some(GuardProgram::this_program([OsString::from("guard")])),
        cache: ServerCache::new(Arc::new(store.clone())),
        registrar: Arc::new(IntoHub(Arc::clone(hub))),
        input: Arc::new(NobodyToAsk),
        surroundings: Arc::new(Nothing),
        limits: WireLimits::default(),
        http: OnceLock::new(),
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
    if hub.specs().is_empty() {
        manager.connect("ledger").await.unwrap();
    }
    manager
}

/// Counts without a vocabulary: making one ready takes longer than the whole run.
struct Roughly;

impl TokenCount for Roughly {
    fn count(&self, text: &str) -> usize {
        text.len() / 4
    }
}

struct IntoHub(Arc<ToolHub>);

impl Registrar for IntoHub {
    fn replace(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>) {
        self.0.register(source, tools);
    }

    fn remove(&self, source: &SourceId) {
        self.0.remove(source);
    }
}

struct Nothing;

impl Surroundings for Nothing {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }
}
