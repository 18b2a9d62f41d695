//! A manager with test servers, their registered tools, and the processes they leave behind.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::json;
use toolyard_core::{
    CallContext, ErrorKind, RawJson, SourceId, SourceInfo, Tool, ToolCallRequest, ToolError, ToolOutput,
};
use toolyard_mcp::WireLimits;
use toolyard_mcp_client::{
    GuardProgram, Host, HostEnvironment, McpManager, MemoryServerStore, ServerCache, ToolRegistrar,
    config::{HttpKind, McpServerConfig, TransportConfig},
};

/// The variable of all processes of one test host.
const MARKER: &str = "HOSTILE_TEST";

/// The transport of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerTransport {
    Stdio,
    LegacyStdio,
    Http,
    LegacyHttp,
    HttpEvents,
    LegacyHttpEvents,
    Sse,
}

impl ServerTransport {
    pub(crate) fn is_stdio(self) -> bool {
        matches!(self, Self::Stdio | Self::LegacyStdio)
    }

    fn arguments(self) -> Vec<String> {
        let arguments: &[&str] = match self {
            Self::Stdio => &["stdio"],
            Self::LegacyStdio => &["stdio", "--legacy"],
            Self::Http => &["http"],
            Self::LegacyHttp => &["http", "--legacy"],
            Self::HttpEvents => &["http", "--events"],
            Self::LegacyHttpEvents => &["http", "--legacy", "--events"],
            Self::Sse => &["http", "--sse"],
        };
        arguments.iter().map(|&argument| argument.to_owned()).collect()
    }
}

/// The registered tools by server, and the servers that reported ready, in order.
#[derive(Default)]
pub(crate) struct TestRegistrar(Mutex<BTreeMap<SourceId, Vec<Arc<dyn Tool>>>>, Mutex<Vec<SourceId>>);

impl ToolRegistrar for TestRegistrar {
    fn replace(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>) {
        self.0.lock().insert(source.id, tools);
    }

    fn report_ready(&self, source: &SourceId) {
        self.1.lock().push(source.clone());
    }

    fn remove(&self, source: &SourceId) {
        self.0.lock().remove(source);
    }
}

impl TestRegistrar {
    pub(crate) fn ready_reports(&self) -> usize {
        self.1.lock().len()
    }

    pub(crate) fn find(&self, server: &str, tool: &str) -> Option<Arc<dyn Tool>> {
        let tools = self.0.lock();
        tools.get(server)?.iter().find(|known| *known.spec().name == *tool).cloned()
    }
}

struct ProcessEnvironment;

impl HostEnvironment for ProcessEnvironment {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

pub(crate) struct TestHost {
    pub(crate) manager: McpManager,
    pub(crate) registrar: Arc<TestRegistrar>,
    folder: tempfile::TempDir,
    marker: String,
    http_servers: Mutex<Vec<Child>>,
}

impl TestHost {
    pub(crate) fn new() -> Self {
        Self::with_environment(Arc::new(ProcessEnvironment))
    }

    pub(crate) fn with_environment(host_environment: Arc<dyn HostEnvironment>) -> Self {
        let registrar = Arc::new(TestRegistrar::default());
        let folder = tempfile::tempdir().unwrap();
        let guard = GuardProgram { program: hostile_server(), args: vec!["guard".into()] };
        let host = Host {
            environment: std::env::vars().collect(),
            working_directory: folder.path().to_owned(),
            guard: Some(guard),
            cache: ServerCache::new(Arc::new(MemoryServerStore::default())),
            registrar: Arc::clone(&registrar) as Arc<dyn ToolRegistrar>,
            host_environment,
            limits: WireLimits::default(),
            http: std::sync::OnceLock::new(),
            telemetry: None,
        };
        let marker = folder.path().display().to_string();
        Self { manager: McpManager::new(host), registrar, folder, marker, http_servers: Mutex::default() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The configuration of a server for a case. HTTP servers are started here.
    pub(crate) fn server(&self, id: &str, transport: ServerTransport, case: &str) -> McpServerConfig {
        let mut args = transport.arguments();
        args.push(case.to_owned());
        self.server_with(id, transport, args)
    }

    /// The configuration of a server that is started with these arguments.
    pub(crate) fn server_with(
        &self,
        id: &str,
        transport: ServerTransport,
        args: Vec<String>,
    ) -> McpServerConfig {
        if transport.is_stdio() {
            return self.command(id, hostile_server().display().to_string(), args);
        }
        let mut server = Command::new(hostile_server()).args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut port).unwrap();
        self.http_servers.lock().push(server);
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        let kind = if transport == ServerTransport::Sse { HttpKind::Auto } else { HttpKind::Streamable };
        McpServerConfig::new(id, TransportConfig::Http { url, headers: BTreeMap::new(), kind })
    }

    /// The configuration of a server that is any command.
    pub(crate) fn command(&self, id: &str, command: String, args: Vec<String>) -> McpServerConfig {
        let env = BTreeMap::from([(MARKER.to_owned(), self.marker.clone())]);
        McpServerConfig::new(
            id,
            TransportConfig::Stdio { command, args, env, inherit: Vec::new(), cwd: None },
        )
    }

    /// Calls `echo` as the hub does: the call is dropped at the deadline.
    pub(crate) async fn call(
        &self,
        server: &str,
        text: &str,
        timeout: Duration,
    ) -> Result<ToolOutput, ToolError> {
        call(&self.registrar, server, text, timeout).await
    }

    /// The processes that are still running.
    pub(crate) fn processes(&self) -> Vec<String> {
        let marked = format!("{MARKER}={}", self.marker);
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let alive = processes.filter(|process| {
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == marked.as_bytes())
        });
        let describe = |process: std::fs::DirEntry| {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            format!(
                "{}: {}",
                process.file_name().display(),
                String::from_utf8_lossy(&line).replace('\0', " ")
            )
        };
        alive.map(describe).collect()
    }

    /// Stops everything and checks that no process is left.
    pub(crate) async fn close(&self) {
        let started = Instant::now();
        tokio::time::timeout(Duration::from_secs(4), self.manager.close()).await.expect("closed in time");
        while !self.processes().is_empty() {
            assert!(started.elapsed() < Duration::from_secs(6), "left behind: {:#?}", self.processes());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        for server in self.http_servers.lock().iter_mut() {
            // It may have exited already.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// Calls `echo` as the hub does.
pub(crate) async fn call(
    registrar: &TestRegistrar,
    server: &str,
    text: &str,
    timeout: Duration,
) -> Result<ToolOutput, ToolError> {
    let Some(tool) = registrar.find(server, "echo") else {
        return Err(ToolError::new(ErrorKind::UnknownTool, "no such tool"));
    };
    let request = ToolCallRequest::new("echo", RawJson::from(json!({"text": text})));
    let context = CallContext::until(Instant::now() + timeout);
    match tokio::time::timeout(timeout, tool.call(&request, &context)).await {
        Ok(outcome) => outcome,
        Err(_elapsed) => Err(ToolError::new(ErrorKind::Timeout, "dropped at its deadline")),
    }
}

/// The program for servers and guards.
pub(crate) fn hostile_server() -> PathBuf {
    // Tests are in `deps`, examples beside it.
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples/hostile_server")
}
