//! An independent MCP client (rmcp), and a running hub to connect to.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rmcp::{
    RoleClient, ServiceExt as _,
    service::RunningService,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};

pub(crate) type Client = RunningService<RoleClient, ()>;

/// Starts a program, which ends with its standard input, and speaks MCP with it.
pub(crate) async fn start(mut command: tokio::process::Command) -> Client {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    ().serve((child.stdout.take().unwrap(), child.stdin.take().unwrap())).await.unwrap()
}

/// Speaks MCP with the server at a URL.
pub(crate) async fn connect(url: &str, token: &str) -> Client {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.to_owned());
    config.auth_header = Some(token.to_owned());
    ().serve(StreamableHttpClientTransport::from_config(config)).await.unwrap()
}

/// A running `toolyard serve --http`.
pub(crate) struct HttpGateway {
    child: Child,
    pub(crate) url: String,
    log: Arc<Mutex<String>>,
}

impl HttpGateway {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let url =
            lines.find_map(|line| Some(line.split_once("serving at ")?.1.split(' ').next()?.to_owned()));
        let log = Arc::new(Mutex::new(String::new()));
        let shared = Arc::clone(&log);
        std::thread::spawn(move || lines.for_each(|line| shared.lock().push_str(&(line + "\n"))));
        Self { child, url: url.unwrap(), log }
    }

    /// Waits until the log contains a text.
    pub(crate) fn wait_for(&self, text: &str) {
        let started = Instant::now();
        while !self.log.lock().contains(text) {
            assert!(started.elapsed() < Duration::from_secs(10), "{}", self.log.lock());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn stop(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for HttpGateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
