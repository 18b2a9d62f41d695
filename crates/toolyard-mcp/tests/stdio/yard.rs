//! A folder for one test's scripts, and what its processes left behind.

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
use toolyard_mcp::{
    client::{
        Exchange, GuardProgram, Heard, Outgoing, StdioLaunch, StdioTransport, Transport, TransportError,
        stdio::connect,
    },
    wire::WireLimits,
};

/// How long anything may take that does not wait for a limit.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// A server that answers every request with its own parameters.
pub(crate) const ECHO: &str = r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": request.get("params", {})}), flush=True)
"#;

pub(crate) fn example() -> PathBuf {
    // Tests stand in `deps`, examples beside it.
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples/stdio_hub")
}

pub(crate) fn guardian() -> GuardProgram {
    GuardProgram { program: example(), args: vec![OsString::from("guard")] }
}

/// A folder of scripts. Every process started from it is known by a variable in its environment, wherever it goes.
pub(crate) struct Yard {
    folder: TempDir,
}

impl Yard {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A server in Python, run in this folder, with a guardian.
    pub(crate) fn python(&self, text: &str) -> StdioLaunch {
        self.launch("python3", vec![self.script("server.py", text)])
    }

    /// A server in the language of shells, run in this folder, with a guardian.
    pub(crate) fn shell(&self, text: &str) -> StdioLaunch {
        self.launch("sh", vec![self.script("server.sh", text)])
    }

    pub(crate) fn launch(&self, command: &str, args: Vec<String>) -> StdioLaunch {
        let mut launch = StdioLaunch::new(command);
        launch.args = args;
        launch.environment = vec![("PATH".to_owned(), std::env::var("PATH").unwrap()), self.mark()];
        launch.working_directory = Some(self.folder.path().to_owned());
        launch.guard = Some(guardian());
        launch
    }

    /// The variable by which everything started from here is known.
    pub(crate) fn mark(&self) -> (String, String) {
        ("YARD".to_owned(), self.folder.path().to_str().unwrap().to_owned())
    }

    /// The processes started from here: guardians, servers and whatever they started.
    pub(crate) fn processes(&self) -> HashSet<u32> {
        let (name, value) = self.mark();
        let mark = format!("{name}={value}").into_bytes();
        let mut found = HashSet::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if environment.split(|byte| *byte == 0).any(|variable| variable == mark) {
                found.insert(process);
            }
        }
        found
    }

    /// Waits until there are this many processes of this yard.
    pub(crate) async fn until_processes(&self, wanted: impl Fn(usize) -> bool, within: Duration) -> Duration {
        let start = Instant::now();
        loop {
            let processes = self.processes();
            if wanted(processes.len()) {
                return start.elapsed();
            }
            if start.elapsed() > within {
                let shown = Command::new("ps").args(["-eo", "pid,ppid,pgid,sid,stat,args"]).output().unwrap();
                panic!("{processes:?} after {within:?}\n{}", String::from_utf8_lossy(&shown.stdout));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// One connection with its exchange.
pub(crate) struct Link {
    pub(crate) transport: StdioTransport,
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) heard: mpsc::Receiver<Heard>,
}

pub(crate) async fn link(launch: StdioLaunch) -> Link {
    link_within(launch, WireLimits::default()).await
}

pub(crate) async fn link_within(launch: StdioLaunch, limits: WireLimits) -> Link {
    let (exchange, heard) = Exchange::new(limits.in_flight);
    let exchange = Arc::new(exchange);
    let transport = connect(launch, Arc::clone(&exchange), limits).await.unwrap();
    Link { transport, exchange, heard }
}

impl Link {
    /// One request and its answer.
    pub(crate) async fn ask(&self, params: &str) -> Result<String, TransportError> {
        let mut waiting = self.exchange.wait()?;
        self.transport.send(request(waiting.id, params)).await?;
        let answer = timeout(SOON, waiting.answer()).await.expect("an answer in time");
        answer.map(|outcome| outcome.unwrap().get().to_owned())
    }
}

pub(crate) fn request(id: u64, params: &str) -> Outgoing {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
    Outgoing { id: Some(id), method: "tools/call", body: body.into_bytes(), headers: Vec::new() }
}
