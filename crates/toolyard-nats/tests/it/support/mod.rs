//! A real NATS server for tests.

use std::{
    env,
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use toolyard_nats::{NatsConnection, NatsPeers, NatsSettings};

/// A NATS server that ends with this value.
pub(crate) struct NatsServer {
    port: u16,
    child: Child,
    arguments: Vec<String>,
    _folder: tempfile::TempDir,
}

impl NatsServer {
    pub(crate) fn start() -> Self {
        Self::with_arguments(&[])
    }

    pub(crate) fn with_jetstream() -> Self {
        Self::with_configuration("")
    }

    /// With JetStream, and more settings of the server.
    pub(crate) fn with_configuration(configuration: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, store) = (folder.path().join("nats.conf"), folder.path().join("jetstream"));
        let jetstream = format!("jetstream: {{ store_dir: \"{}\" }}\n{configuration}", store.display());
        std::fs::write(&file, jetstream).unwrap();
        Self::start_in(folder, &["-c", file.to_str().unwrap()])
    }

    pub(crate) fn with_arguments(arguments: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), arguments)
    }

    fn start_in(folder: tempfile::TempDir, arguments: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let child = launch(port, &arguments);
        let server = Self { port, child, arguments, _folder: folder };
        server.wait();
        server
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn restart(&mut self) {
        self.child = launch(self.port, &self.arguments);
        self.wait();
    }

    pub(crate) fn settings(&self) -> NatsSettings {
        NatsSettings::new([format!("nats://127.0.0.1:{}", self.port)])
    }

    pub(crate) async fn join(&self, number: u64) -> NatsPeers {
        let connection = NatsConnection::connect(&self.settings(), "test").await.unwrap();
        NatsPeers::join(connection, number).await.unwrap()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn wait(&self) {
        let start = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(start.elapsed() < Duration::from_secs(10), "NATS does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn launch(port: u16, arguments: &[String]) -> Child {
    let cache = || PathBuf::from(env::var_os("HOME").unwrap()).join(".cache");
    let cache = || env::var_os("XDG_CACHE_HOME").map_or_else(cache, PathBuf::from);
    let parts = env::var_os("TOOLYARD_PARTS").map_or_else(|| cache().join("toolyard-parts"), PathBuf::from);
    let program = parts.join("nats/bin/nats-server");
    assert!(program.exists(), "{} is missing; scripts/parts installs it", program.display());
    Command::new(program)
        .args(["-a", "127.0.0.1", "-p", &port.to_string()])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
