//! One gateway process, started and stopped as by an operator.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    time::{sleep, timeout},
};

/// The bearer token of all replicas.
pub(crate) const TOKEN: &str = "a-token-of-more-than-thirty-two-characters";

/// One replica at an address that stays the same.
pub(crate) struct Replica {
    pub(crate) address: SocketAddr,
    shared_folder: PathBuf,
    process: Option<Child>,
}

/// The settings of all replicas, which share the store beside the settings file.
pub(crate) const SETTINGS: &str = "store = \"shared.db\"\n[serve]\ntoken = \"${SERVE_TOKEN}\"\n";

impl Replica {
    /// A replica at a free port. Replicas share a folder with the settings.
    pub(crate) fn new(shared_folder: &Path, settings_text: &str) -> Self {
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let settings = shared_folder.join("toolyard.toml");
        std::fs::write(settings, settings_text).unwrap();
        Self { address, shared_folder: shared_folder.to_owned(), process: None }
    }

    /// Starts the replica and waits until it responds.
    pub(crate) async fn start(&mut self) {
        let home = self.shared_folder.join(self.address.port().to_string());
        std::fs::create_dir_all(&home).unwrap();
        let program =
            std::env::var("TOOLYARD_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_toolyard").to_owned());
        let process = Command::new(program)
            .args(["--config", self.shared_folder.join("toolyard.toml").to_str().unwrap(), "serve", "--http"])
            .arg(self.address.to_string())
            .env_clear()
            .env("HOME", &home)
            .env("SERVE_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        self.process = Some(process);
        for _ in 0..600 {
            if TcpStream::connect(self.address).await.is_ok() {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
        panic!("the replica at {} does not accept connections", self.address);
    }

    /// Sends SIGTERM and waits for the end.
    pub(crate) async fn stop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let id = process.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(id.unwrap(), rustix::process::Signal::TERM).unwrap();
        let ended = timeout(Duration::from_secs(30), process.wait()).await;
        assert!(ended.is_ok(), "the replica does not stop");
        // The port must be free again before the next start.
        drop(TcpListener::bind(self.address).await.unwrap());
    }
}
