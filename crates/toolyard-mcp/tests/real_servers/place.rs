//! One real server at work in a folder of its own: started, held, killed and started again as a test wants it.

use std::{
    fs::{self, File},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use toolyard_mcp::config::{HttpKind, McpServerConfig, TransportConfig};

use crate::{
    house::NAME,
    parts::python,
    row::{Row, Wire},
};

/// What a server at an address says on its side channel.
const LOG: &str = "server.log";

/// A folder, and the server at an address that works in it. Programs are started by the client itself.
pub(crate) struct Place {
    row: Row,
    folder: TempDir,
    port: u16,
    server: Option<Ours>,
    tap: Option<Ours>,
}

/// A process that does not outlive the test.
struct Ours(Child);

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Place {
    pub(crate) async fn open(row: Row) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut place = Self { row, folder, port: free_port(), server: None, tap: None };
        place.start().await;
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the server, if it is one that nobody else starts.
    pub(crate) async fn start(&mut self) {
        if self.row.wire == Wire::Stdio {
            return;
        }
        let (command, args) = self.row.command(self.path(), self.port);
        let mut server = Command::new(command);
        server.args(args).envs(self.row.environment(self.path(), self.port));
        self.server = Some(self.run(server, LOG));
        listening(self.port, &self.path().join(LOG)).await;
    }

    fn run(&self, mut command: Command, log: &str) -> Ours {
        let log = File::options().create(true).append(true).open(self.path().join(log)).unwrap();
        let command = command.current_dir(self.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Ours(command.spawn().unwrap())
    }

    /// How the server is reached, with nothing said that could be found out.
    pub(crate) fn config(&self) -> McpServerConfig {
        let (command, args) = self.row.command(self.path(), self.port);
        self.reached_by(command, args, self.port)
    }

    /// The same for a program that takes its time to start, in seconds.
    pub(crate) fn late(&self, seconds: u64) -> McpServerConfig {
        let (command, args) = self.row.command(self.path(), self.port);
        let late = format!("sleep {seconds}; exec \"$0\" \"$@\"");
        let args = ["-c".to_owned(), late, command].into_iter().chain(args).collect();
        self.reached_by("sh".to_owned(), args, self.port)
    }

    /// How it is reached through something that writes down its bytes.
    pub(crate) async fn tapped(&mut self) -> McpServerConfig {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real_servers/tap.py").to_owned();
        let file = self.capture().to_str().unwrap().to_owned();
        let (command, args) = self.row.command(self.path(), self.port);
        let stdio = [script.clone(), "stdio".to_owned(), file.clone(), command].into_iter().chain(args);
        let stdio: Vec<String> = stdio.collect();
        let port = free_port();
        if self.row.wire != Wire::Stdio {
            let mut tap = Command::new(python());
            tap.args([script.as_str(), "http", &file, &port.to_string(), &self.port.to_string()]);
            self.tap = Some(self.run(tap, "tap.log"));
            listening(port, &self.path().join("tap.log")).await;
        }
        self.reached_by(python(), stdio, port)
    }

    /// Where the bytes of a tapped server are.
    pub(crate) fn capture(&self) -> PathBuf {
        self.path().join("captured")
    }

    fn reached_by(&self, command: String, args: Vec<String>, port: u16) -> McpServerConfig {
        let transport = match self.row.wire {
            Wire::Stdio => TransportConfig::Stdio {
                command,
                args,
                env: self.row.environment(self.path(), port).into_iter().collect(),
                inherit: Vec::new(),
                cwd: None,
            },
            Wire::Http | Wire::Sse => TransportConfig::Http {
                url: format!("http://127.0.0.1:{port}{}", self.row.path()),
                headers: Default::default(),
                kind: HttpKind::Auto,
            },
        };
        let mut config = McpServerConfig::new(NAME, transport);
        config.era = self.row.forced;
        config
    }

    /// The server goes on, but does nothing until it is let go.
    pub(crate) fn hold(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn let_go(&self) {
        self.signal(Signal::CONT);
    }

    /// The server dies in mid-word.
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

    /// The programs that work in this folder, without their guardians.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let link = |name: &str| fs::read_link(entry.path().join(name)).unwrap_or_default();
            if link("cwd") == self.path() && !link("exe").ends_with("stdio_hub") {
                found.push(process);
            }
        }
        found
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.path().join(LOG)).unwrap_or_default();
            eprintln!("what the server said:\n{log}");
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn listening(port: u16, log: &Path) {
    let limit = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < limit, "it does not listen: {}", fs::read_to_string(log).unwrap());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
