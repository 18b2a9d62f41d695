//! A manager in a small house of its own: who takes its tools, which programs are its servers, what they leave behind.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::json;
use toolyard_core::{
    CallContext, ErrorKind, RawJson, SourceId, SourceInfo, Tool, ToolCallRequest, ToolError, ToolOutput,
};
use toolyard_mcp::{
    cache::{MemoryServers, ServerCache},
    client::{GuardProgram, Host, McpManager, NobodyToAsk, Registrar, Surroundings},
    config::{HttpKind, McpServerConfig, TransportConfig},
    wire::WireLimits,
};

/// The variable by which processes of one house are known.
const MARK: &str = "HOSTILE_MARK";

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Stdio,
    LegacyStdio,
    Http,
    LegacyHttp,
    Events,
    LegacyEvents,
    FirstRevision,
}

impl Way {
    pub(crate) fn is_program(self) -> bool {
        matches!(self, Self::Stdio | Self::LegacyStdio)
    }

    fn words(self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Stdio => &["stdio"],
            Self::LegacyStdio => &["stdio", "--legacy"],
            Self::Http => &["http"],
            Self::LegacyHttp => &["http", "--legacy"],
            Self::Events => &["http", "--events"],
            Self::LegacyEvents => &["http", "--legacy", "--events"],
            Self::FirstRevision => &["http", "--sse"],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

/// Takes tools and finds them again.
#[derive(Default)]
pub(crate) struct Shelves(Mutex<BTreeMap<SourceId, Vec<Arc<dyn Tool>>>>);

impl Registrar for Shelves {
    fn replace(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>) {
        self.0.lock().unwrap().insert(source.id, tools);
    }

    fn remove(&self, source: &SourceId) {
        self.0.lock().unwrap().remove(source);
    }
}

impl Shelves {
    pub(crate) fn find(&self, server: &str, tool: &str) -> Option<Arc<dyn Tool>> {
        let shelves = self.0.lock().unwrap();
        shelves.get(server)?.iter().find(|known| *known.spec().name == *tool).cloned()
    }
}

struct Variables;

impl Surroundings for Variables {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// A manager, and everything it needs.
pub(crate) struct House {
    pub(crate) manager: McpManager,
    pub(crate) shelves: Arc<Shelves>,
    folder: tempfile::TempDir,
    mark: String,
    /// Servers at an address, which are ours to end.
    addresses: Mutex<Vec<Child>>,
}

impl House {
    pub(crate) fn new() -> Self {
        let shelves = Arc::new(Shelves::default());
        let folder = tempfile::tempdir().unwrap();
        let guard = GuardProgram { program: program(), args: vec!["guard".into()] };
        let host = Host {
            environment: std::env::vars().collect(),
            working_directory: folder.path().to_owned(),
            guard: Some(guard),
            cache: ServerCache::new(Arc::new(MemoryServers::default())),
            registrar: Arc::clone(&shelves) as Arc<dyn Registrar>,
            input: Arc::new(NobodyToAsk),
            surroundings: Arc::new(Variables),
            limits: WireLimits::default(),
            http: std::sync::OnceLock::new(),
        };
        let mark = folder.path().display().to_string();
        Self { manager: McpManager::new(host), shelves, folder, mark, addresses: Mutex::default() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The configuration of a server that plays a case; one at an address is started here.
    pub(crate) fn server(&self, id: &str, way: Way, case: &str) -> McpServerConfig {
        let mut args = way.words();
        args.push(case.to_owned());
        self.server_with(id, way, args)
    }

    /// The same with words of its own.
    pub(crate) fn server_with(&self, id: &str, way: Way, args: Vec<String>) -> McpServerConfig {
        if way.is_program() {
            return self.command(id, program().display().to_string(), args);
        }
        let mut server = Command::new(program()).args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut port).unwrap();
        self.addresses.lock().unwrap().push(server);
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        let kind = if way == Way::FirstRevision { HttpKind::Auto } else { HttpKind::Streamable };
        McpServerConfig::new(id, TransportConfig::Http { url, headers: BTreeMap::new(), kind })
    }

    /// The configuration of a server that is any command.
    pub(crate) fn command(&self, id: &str, command: String, args: Vec<String>) -> McpServerConfig {
        let env = BTreeMap::from([(MARK.to_owned(), self.mark.clone())]);
        McpServerConfig::new(
            id,
            TransportConfig::Stdio { command, args, env, inherit: Vec::new(), cwd: None },
        )
    }

    /// Calls a tool as the hub does: whoever has not answered by the deadline is dropped.
    pub(crate) async fn call(
        &self,
        server: &str,
        text: &str,
        limit: Duration,
    ) -> Result<ToolOutput, ToolError> {
        call(&self.shelves, server, text, limit).await
    }

    /// Processes of this house that are still there.
    pub(crate) fn survivors(&self) -> Vec<String> {
        let marked = format!("{MARK}={}", self.mark);
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let alive = processes.filter(|process| {
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == marked.as_bytes())
        });
        let shown = |process: std::fs::DirEntry| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            format!(
                "{}: {}",
                process.file_name().display(),
                String::from_utf8_lossy(&line).replace('\0', " ")
            )
        };
        alive.map(shown).collect()
    }

    /// Stops everything; nothing may be left two seconds later.
    pub(crate) async fn close(&self) {
        let started = Instant::now();
        tokio::time::timeout(Duration::from_secs(4), self.manager.close()).await.expect("closed in time");
        while !self.survivors().is_empty() {
            assert!(started.elapsed() < Duration::from_secs(6), "left behind: {:#?}", self.survivors());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for House {
    fn drop(&mut self) {
        for server in self.addresses.lock().unwrap().iter_mut() {
            // One that has ended already is just as well.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Calls `echo` as the hub does.
pub(crate) async fn call(
    shelves: &Shelves,
    server: &str,
    text: &str,
    limit: Duration,
) -> Result<ToolOutput, ToolError> {
    let Some(tool) = shelves.find(server, "echo") else {
        return Err(ToolError::new(ErrorKind::UnknownTool, "no such tool"));
    };
    let request = ToolCallRequest::new("echo", RawJson::from(json!({"text": text})));
    let context = CallContext::until(Instant::now() + limit);
    match tokio::time::timeout(limit, tool.call(&request, &context)).await {
        Ok(outcome) => outcome,
        Err(_elapsed) => Err(ToolError::new(ErrorKind::Timeout, "dropped at its deadline")),
    }
}

/// The program that plays servers and guardians.
pub(crate) fn program() -> PathBuf {
    // Tests stand in `deps`, examples beside it.
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples/hostile_server")
}
