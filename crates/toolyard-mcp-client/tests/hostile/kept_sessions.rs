//! A session with an HTTP server that cannot be reached for a moment goes on if the server still has it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use toolyard_core::RevisionFamily;
use toolyard_mcp_client::config::{HttpKind, McpServerConfig, TransportConfig};

use crate::test_host::TestHost;

const TIMEOUT: Duration = Duration::from_secs(10);
/// While a session has this id, the server begins no other.
const LAST_SESSION: &str = "last";

/// A legacy server that counts the calls of each of its sessions.
struct CountingServer {
    port: u16,
    counts: Arc<Mutex<HashMap<String, u32>>>,
    connections: Option<JoinSet<()>>,
}

impl CountingServer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut server = Self { port, counts: Arc::default(), connections: None };
        server.serve(listener);
        server
    }

    fn serve(&mut self, listener: TcpListener) {
        let (mut tasks, counts) = (JoinSet::new(), Arc::clone(&self.counts));
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve_connection(stream, Arc::clone(&counts)));
            }
        });
        self.connections = Some(tasks);
    }

    /// Cuts all connections and refuses new ones.
    async fn refuse(&mut self) {
        self.connections.take().unwrap().shutdown().await;
    }

    async fn accept_again(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        self.serve(listener);
    }

    fn sessions(&self) -> usize {
        self.counts.lock().len()
    }

    fn config(&self) -> McpServerConfig {
        let url = format!("http://127.0.0.1:{}/mcp", self.port);
        let transport =
            TransportConfig::Http { url, headers: Default::default(), kind: HttpKind::Streamable };
        let mut config = McpServerConfig::new("counter", transport);
        config.revision_family = Some(RevisionFamily::Legacy);
        config
    }
}

async fn serve_connection(stream: TcpStream, counts: Arc<Mutex<HashMap<String, u32>>>) {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut line) = (Vec::new(), String::new());
        loop {
            line.clear();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            head.push(line.trim().to_owned());
        }
        let header = |name: &str| {
            head.iter().skip(1).find_map(|line| {
                line.split_once(": ")
                    .filter(|(key, _)| key.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value)
            })
        };
        let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).await.unwrap();
        let (status, session, answer) = match head.first().is_some_and(|line| line.starts_with("POST")) {
            true => answer(&serde_json::from_slice(&body).unwrap(), header("mcp-session-id"), &counts),
            false => (405, None, Value::Null),
        };
        let body = if answer.is_null() { String::new() } else { answer.to_string() };
        let session = session.map_or_else(String::new, |id| format!("Mcp-Session-Id: {id}\r\n"));
        let response = format!(
            "HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\n{session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.get_mut().write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The status, the id of a new session, and the response.
fn answer(
    message: &Value,
    session: Option<&str>,
    counts: &Mutex<HashMap<String, u32>>,
) -> (u16, Option<String>, Value) {
    let mut counts = counts.lock();
    let response = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    if message["method"] == "initialize" {
        if counts.contains_key(LAST_SESSION) {
            return (503, None, Value::Null);
        }
        let id = format!("session-{}", fastrand::u64(..));
        counts.insert(id.clone(), 0);
        let about = json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "counter", "version": "1"}
        });
        return (200, Some(id), response(about));
    }
    let Some(count) = session.and_then(|session| counts.get_mut(session)) else {
        return (404, None, Value::Null);
    };
    match message["method"].as_str() {
        Some("tools/list") => {
            let tool = json!({"name": "echo", "description": "Counts.", "inputSchema": {"type": "object"}});
            (200, None, response(json!({"tools": [tool]})))
        }
        Some("tools/call") => {
            *count += 1;
            (200, None, response(json!({"content": [{"type": "text", "text": count.to_string()}]})))
        }
        _ if message["id"].is_null() => (202, None, Value::Null),
        _ => (200, None, response(json!({}))),
    }
}

async fn count(host: &TestHost) -> Result<String, String> {
    let outcome = host.call("counter", "", TIMEOUT).await;
    outcome.map(|output| output.to_text()).map_err(|error| error.to_string())
}

/// Calls until the server answers: it is not called again at once after a failure.
async fn count_when_reached(host: &TestHost) -> String {
    for _ in 0..200 {
        if let Ok(count) = count(host).await {
            return count;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server is not reached again: {:?}", count(host).await);
}

/// Calls until it is noticed that the server cannot be reached: the first call may be lost with an open connection.
async fn fail_until_down(host: &TestHost) {
    for _ in 0..200 {
        assert!(count(host).await.is_err());
        if host.manager.server("counter").unwrap().state().label() == "down" {
            return;
        }
    }
    panic!("the server counts as {:?}", host.manager.server("counter").unwrap().state());
}

async fn started() -> (TestHost, CountingServer) {
    let (host, server) = (TestHost::new(), CountingServer::start().await);
    host.manager.apply(vec![server.config()]).await.unwrap();
    host.manager.connect("counter").await.unwrap();
    for expected in ["1", "2"] {
        assert_eq!(count(&host).await.unwrap(), expected);
    }
    (host, server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_outlives_refused_connections() {
    let (host, mut server) = started().await;
    for round in 0..3 {
        server.refuse().await;
        fail_until_down(&host).await;
        // The reconnect task fails, too, and keeps the session.
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.accept_again().await;
        assert_eq!(count_when_reached(&host).await, (3 + round).to_string());
    }
    assert_eq!(server.sessions(), 1, "no other session was begun");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_the_server_forgot_is_replaced() {
    let (host, mut server) = started().await;
    server.refuse().await;
    fail_until_down(&host).await;
    server.counts.lock().clear();
    server.accept_again().await;
    assert_eq!(count_when_reached(&host).await, "1");
    assert_eq!(count(&host).await.unwrap(), "2");
    assert_eq!(server.sessions(), 1);
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_stopped_while_it_cannot_be_reached_begins_a_new_session() {
    let (host, mut server) = started().await;
    server.refuse().await;
    fail_until_down(&host).await;
    host.manager.server("counter").unwrap().stop().await;
    server.accept_again().await;
    assert_eq!(count_when_reached(&host).await, "1");
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_could_not_be_sent_is_marked_and_says_when_to_retry() {
    let (host, mut server) = started().await;
    server.refuse().await;
    // The first call may be lost with an open connection.
    for must_be_unsent in [false, true, true] {
        let mut error = host.call("counter", "", TIMEOUT).await.unwrap_err();
        assert!(error.had_no_effect() || !must_be_unsent, "{error}");
        assert_eq!(error.take_never_sent(), error.had_no_effect(), "{error}");
        assert_eq!(
            error.retry_after().is_some(),
            error.had_no_effect(),
            "the server is contacted again then"
        );
    }
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_in_an_expired_session_was_sent_although_no_new_one_begins() {
    let (host, server) = started().await;
    *server.counts.lock() = HashMap::from([(LAST_SESSION.to_owned(), 0)]);
    // The first call is answered with 404; the second one has no session to be sent in.
    for is_unsent in [false, true] {
        let mut error = host.call("counter", "", TIMEOUT).await.unwrap_err();
        assert!(error.had_no_effect(), "{error}");
        assert_eq!(error.take_never_sent(), is_unsent, "{error}");
    }
    host.close().await;
}
