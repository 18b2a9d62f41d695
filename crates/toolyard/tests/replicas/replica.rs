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

/// What replicas share besides their settings.
pub(crate) const TOKEN: &str = "a-token-of-more-than-thirty-two-characters";

/// One replica at an address that stays the same.
pub(crate) struct Replica {
    pub(crate) address: SocketAddr,
    house: PathBuf,
    process: Option<Child>,
}

impl Replica {
    /// A replica at a free port, with a home that it may share.
    pub(crate) fn new(house: &Path) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let settings = house.join("toolyard.toml");
        let text = "[serve]\ntoken = \"${SERVE_TOKEN}\"\nsession_keys = [\"${SERVE_KEY}\"]\n";
        std::fs::write(settings, text).unwrap();
        Self { address: free, house: house.to_owned(), process: None }
    }

    /// Starts the replica and waits until it responds.
    pub(crate) async fn start(&mut self) {
        let own = self.house.join(self.address.port().to_string());
        std::fs::create_dir_all(&own).unwrap();
        let program =
            std::env::var("TOOLYARD_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_toolyard").to_owned());
        let process = Command::new(program)
            .args(["--config", self.house.join("toolyard.toml").to_str().unwrap(), "serve", "--http"])
            .arg(self.address.to_string())
            .env_clear()
            .env("HOME", &own)
            .env("SERVE_TOKEN", TOKEN)
            .env("SERVE_KEY", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
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
        panic!("the replica at {} does not answer", self.address);
    }

    /// Sends SIGTERM and waits for the end.
    pub(crate) async fn stop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let id = process.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(id.unwrap(), rustix::process::Signal::TERM).unwrap();
        let ended = timeout(Duration::from_secs(30), process.wait()).await;
        assert!(ended.is_ok(), "the replica does not stop");
        // Its home must be free again, or the next one cannot take it.
        drop(TcpListener::bind(self.address).await.unwrap());
    }
}
