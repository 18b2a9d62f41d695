//! A directory for the scripts of one test, and the processes that were started from it.

use std::{
    collections::HashSet,
    ffi::OsString,
    fs,
    path::PathBuf,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::{sync::mpsc, time::timeout};
use toolyard_mcp::WireLimits;
use toolyard_mcp_client::{
    GuardProgram, OutgoingMessage, PendingRequests, ServerMessage, StdioLaunch, StdioTransport, Transport,
    TransportError,
};

/// How long anything may take that does not wait for a timeout.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A server that responds to every request with its parameters.
pub(crate) const ECHO_SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": request.get("params", {})}), flush=True)
"#;

pub(crate) fn stdio_hub() -> PathBuf {
    // Tests are in `deps`, examples beside it.
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples/stdio_hub")
}

pub(crate) fn guard() -> GuardProgram {
    GuardProgram { program: stdio_hub(), args: vec![OsString::from("guard")] }
}

/// A directory of scripts. Every process that was started from it has a variable with its path.
pub(crate) struct TestDirectory {
    path: TempDir,
}

impl TestDirectory {
    pub(crate) fn new() -> Self {
        Self { path: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.path().join(name)
    }

    fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A Python server in this directory, with a guard.
    pub(crate) fn python(&self, text: &str) -> StdioLaunch {
        self.launch("python3", vec![self.script("server.py", text)])
    }

    /// A shell script as server in this directory, with a guard.
    pub(crate) fn shell(&self, text: &str) -> StdioLaunch {
        self.launch("sh", vec![self.script("server.sh", text)])
    }

    pub(crate) fn launch(&self, command: &str, args: Vec<String>) -> StdioLaunch {
        let mut launch = StdioLaunch::new(command);
        launch.args = args;
        launch.environment = vec![("PATH".to_owned(), std::env::var("PATH").unwrap()), self.marker()];
        launch.working_directory = Some(self.path.path().to_owned());
        launch.guard = Some(guard());
        launch
    }

    /// The variable of all processes that were started from here.
    pub(crate) fn marker(&self) -> (String, String) {
        ("TEST_DIRECTORY".to_owned(), self.path.path().to_str().unwrap().to_owned())
    }

    /// The processes that were started from here: guards, servers and their descendants.
    pub(crate) fn processes(&self) -> HashSet<u32> {
        let (name, value) = self.marker();
        let marker = format!("{name}={value}").into_bytes();
        let mut found = HashSet::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|variable| variable == marker) {
                found.insert(process);
            }
        }
        found
    }

    /// Waits until the number of processes is as expected.
    pub(crate) async fn until_processes(
        &self,
        expected: impl Fn(usize) -> bool,
        within: Duration,
    ) -> Duration {
        let start = Instant::now();
        loop {
            let processes = self.processes();
            if expected(processes.len()) {
                return start.elapsed();
            }
            if start.elapsed() > within {
                let process_list =
                    Command::new("ps").args(["-eo", "pid,ppid,pgid,sid,stat,args"]).output().unwrap();
                panic!("{processes:?} after {within:?}\n{}", String::from_utf8_lossy(&process_list.stdout));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A connection with its pending requests.
pub(crate) struct TestConnection {
    pub(crate) transport: StdioTransport,
    pub(crate) requests: Arc<PendingRequests>,
    pub(crate) messages: mpsc::Receiver<ServerMessage>,
}

pub(crate) async fn open(launch: StdioLaunch) -> TestConnection {
    open_with_limits(launch, WireLimits::default()).await
}

pub(crate) async fn open_with_limits(launch: StdioLaunch, limits: WireLimits) -> TestConnection {
    let (requests, messages) = PendingRequests::new(limits.in_flight);
    let requests = Arc::new(requests);
    let transport = StdioTransport::connect(launch, Arc::clone(&requests), limits).await.unwrap();
    TestConnection { transport, requests, messages }
}

impl TestConnection {
    /// Makes a request and returns its result.
    pub(crate) async fn request(&self, params: &str) -> Result<String, TransportError> {
        let mut pending = self.requests.register()?;
        self.transport.send(request(pending.id, params)).await?;
        let response = timeout(TEST_TIMEOUT, pending.response()).await.expect("a response in time");
        response.map(|outcome| outcome.unwrap().get().to_owned())
    }
}

pub(crate) fn request(id: u64, params: &str) -> OutgoingMessage {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
    OutgoingMessage {
        id: Some(id),
        method: "tools/call",
        body: body.into_bytes(),
        headers: Vec::new(),
        identity: None,
    }
}
