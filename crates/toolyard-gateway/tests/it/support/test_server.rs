//! [`TestServer`]: a real server in a folder of its own, which a test can pause, kill and restart.

use std::{
    fs::{self, File},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use toolyard_mcp_client::config::{HeldTools, HttpKind, McpServerConfig, TransportConfig};

use super::{
    case::{ServerCase, Transport},
    installed::python,
    test_manager::SERVER_ID,
};

/// The stderr of an HTTP server.
const SERVER_LOG: &str = "server.log";

/// A folder and, for HTTP, the server that runs in it. Stdio servers are started by the client.
pub(crate) struct TestServer {
    case: ServerCase,
    folder: TempDir,
    port: u16,
    server: Option<ChildProcess>,
    proxy: Option<ChildProcess>,
}

/// How the recording proxy passes JSON on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum JsonStyle {
    AsSent,
    /// With whitespace, escapes and numbers that change when JSON is parsed and serialized.
    Unusual,
}

/// A process that is killed when the test ends.
struct ChildProcess(Child);

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl TestServer {
    pub(crate) async fn open(case: ServerCase) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut test_server = Self { case, folder, port: free_port(), server: None, proxy: None };
        test_server.start().await;
        test_server
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts an HTTP server.
    pub(crate) async fn start(&mut self) {
        if self.case.transport == Transport::Stdio {
            return;
        }
        let (command, args) = self.case.command(self.path(), self.port);
        let mut server = Command::new(command);
        server.args(args).envs(self.case.environment(self.path(), self.port));
        self.server = Some(self.run(server, SERVER_LOG));
        wait_for_port(self.port, &self.path().join(SERVER_LOG)).await;
    }

    fn run(&self, mut command: Command, log: &str) -> ChildProcess {
        let log = File::options().create(true).append(true).open(self.path().join(log)).unwrap();
        let command = command.current_dir(self.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        ChildProcess(command.spawn().unwrap())
    }

    /// The configuration of the server, without what the client can detect.
    pub(crate) fn config(&self) -> McpServerConfig {
        let (command, args) = self.case.command(self.path(), self.port);
        self.config_with(command, args, self.port)
    }

    /// The same for a server that needs this many seconds to start.
    pub(crate) fn slow_config(&self, seconds: u64) -> McpServerConfig {
        let (command, args) = self.case.command(self.path(), self.port);
        let delayed_start = format!("sleep {seconds}; exec \"$0\" \"$@\"");
        let args = ["-c".to_owned(), delayed_start, command].into_iter().chain(args).collect();
        self.config_with("sh".to_owned(), args, self.port)
    }

    /// The same through a proxy that records the server's bytes.
    pub(crate) async fn recorded_config(&mut self, style: JsonStyle) -> McpServerConfig {
        let proxy_mode = |mode: &str| match style {
            JsonStyle::AsSent => mode.to_owned(),
            JsonStyle::Unusual => format!("unusual-{mode}"),
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/support/recording_proxy.py").to_owned();
        let file = self.recording().to_str().unwrap().to_owned();
        let (command, args) = self.case.command(self.path(), self.port);
        let stdio = [script.clone(), proxy_mode("stdio"), file.clone(), command].into_iter().chain(args);
        let stdio: Vec<String> = stdio.collect();
        let port = free_port();
        if self.case.transport != Transport::Stdio {
            let mut proxy = Command::new(python());
            proxy.args([
                script.as_str(),
                &proxy_mode("http"),
                &file,
                &port.to_string(),
                &self.port.to_string(),
            ]);
            self.proxy = Some(self.run(proxy, "proxy.log"));
            wait_for_port(port, &self.path().join("proxy.log")).await;
        }
        self.config_with(python(), stdio, port)
    }

    /// The file with the recorded bytes.
    pub(crate) fn recording(&self) -> PathBuf {
        self.path().join("captured")
    }

    fn config_with(&self, command: String, args: Vec<String>, port: u16) -> McpServerConfig {
        let transport = match self.case.transport {
            Transport::Stdio => TransportConfig::Stdio {
                command,
                args,
                env: self.case.environment(self.path(), port).into_iter().collect(),
                inherit: Vec::new(),
                cwd: None,
            },
            Transport::Http | Transport::Sse => TransportConfig::Http {
                url: format!("http://127.0.0.1:{port}{}", self.case.path()),
                headers: Default::default(),
                kind: HttpKind::Auto,
            },
        };
        let mut config = McpServerConfig::new(SERVER_ID, transport);
        config.revision_family = self.case.configured_family;
        // Some tests let the server add tools.
        config.hold_new_tools = HeldTools::None;
        config
    }

    /// Stops the process of the server until [`TestServer::unpause`].
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn unpause(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.server = None;
    }

    fn signal(&self, signal: Signal) {
        let processes = match &self.server {
            Some(server) => vec![server.0.id()],
            None => self.processes(),
        };
        assert_eq!(processes.len(), 1, "one server is running");
        for process in processes {
            let process = Pid::from_raw(process.try_into().unwrap()).unwrap();
            kill_process(process, signal).unwrap();
        }
    }

    /// The processes that run in this folder, without their guards.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let link = |name: &str| fs::read_link(entry.path().join(name)).unwrap_or_default();
            if link("cwd") == self.path() && !link("exe").ends_with("guardian") {
                found.push(process);
            }
        }
        found
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.path().join(SERVER_LOG)).unwrap_or_default();
            eprintln!("stderr of the server:\n{log}");
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn wait_for_port(port: u16, log: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "port {port} is not open: {}", fs::read_to_string(log).unwrap());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
