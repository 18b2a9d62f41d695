//! Legacy and modern clients, and the gateway they connect to.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::test_home::TestHome;

/// The `_meta` of a modern request.
pub(crate) fn modern_meta(client: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
    })
}

/// The parameters of a modern request.
pub(crate) fn modern_params(mut params: Value) -> Value {
    params["_meta"] = modern_meta("a-test");
    params
}

pub(crate) fn tool_names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// A gateway on stdio.
pub(crate) struct StdioGateway {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl StdioGateway {
    pub(crate) fn new(home: &TestHome, args: &[&str]) -> Self {
        let mut command = home.command(&[&["serve", "--stdio"], args].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn send_request(&mut self, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        self.receive()
    }

    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Closes stdin and waits for the process to end. Returns whether it succeeded.
    pub(crate) fn close(mut self) -> bool {
        drop(self.input.take());
        self.child.wait().unwrap().success()
    }
}

impl Drop for StdioGateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A gateway on HTTP.
pub(crate) struct HttpGateway {
    child: Child,
    pub(crate) url: String,
    stderr_text: Arc<Mutex<String>>,
    stderr_thread: Option<std::thread::JoinHandle<()>>,
    pub(crate) http: reqwest::Client,
    pub(crate) token: Option<String>,
}

/// The response to an HTTP request.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) body: Value,
}

impl HttpGateway {
    pub(crate) fn start(home: &TestHome, args: &[&str]) -> Self {
        Self::at(home, "127.0.0.1:0", args)
    }

    pub(crate) fn at(home: &TestHome, address: &str, args: &[&str]) -> Self {
        Self::spawn(home, home.command(&[&["serve", "--http", address], args].concat()))
    }

    pub(crate) fn spawn(home: &TestHome, mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // A slow machine may print warnings before the address.
        let mut warnings = String::new();
        let url = loop {
            let Some(Ok(line)) = lines.next() else { panic!("{warnings}") };
            // As text, or in a line of JSON.
            match line.split_once("serving at ") {
                Some((_, url)) => break url.split(['"', ' ']).next().unwrap().to_owned(),
                None => warnings.push_str(&line),
            }
        };
        let stderr_text = Arc::new(Mutex::new(String::new()));
        let shared_text = Arc::clone(&stderr_text);
        let stderr_thread = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                shared_text.lock().push_str(&(line + "\n"));
            }
        });
        let token = std::fs::read_to_string(home.path("data/toolyard/serve/token")).ok();
        let token = token.map(|token| token.trim().to_owned());
        let (http, stderr_thread) = (reqwest::Client::new(), Some(stderr_thread));
        Self { child, url, stderr_text, stderr_thread, http, token }
    }

    /// What it wrote to stderr so far, after the line with its address.
    pub(crate) fn stderr(&self) -> String {
        self.stderr_text.lock().clone()
    }

    pub(crate) fn port(&self) -> u16 {
        self.url.split([':', '/']).nth(4).unwrap().parse().unwrap()
    }

    pub(crate) fn build_request(
        &self,
        path_suffix: &str,
        method: &str,
        params: &Value,
    ) -> reqwest::RequestBuilder {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut request = self
            .http
            .post(format!("{}{path_suffix}", self.url))
            .header("Accept", "application/json, text/event-stream")
            .json(&body);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let name = params.get("name").or(params.get("uri")).and_then(Value::as_str);
        if params.get("_meta").is_some() {
            request = request.header("MCP-Protocol-Version", "2026-07-28").header("Mcp-Method", method);
            if let Some(name) = name.filter(|_| method != "completion/complete") {
                request = request.header("Mcp-Name", name);
            }
        }
        request
    }

    /// Sends a modern request to `/mcp` and this path.
    pub(crate) async fn send_request(&self, path_suffix: &str, method: &str, params: Value) -> Value {
        let answer = send(self.build_request(path_suffix, method, &modern_params(params))).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_raw(self.child.id().try_into().unwrap()).unwrap()
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        rustix::process::kill_process(self.pid(), rustix::process::Signal::TERM).unwrap();
    }

    /// Waits for the process to end. Returns whether it succeeded.
    pub(crate) fn wait(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }

    /// Sends SIGTERM and waits for the end. Returns what it wrote to stderr, after the line with its address.
    pub(crate) async fn stop(mut self) -> String {
        self.terminate();
        tokio::task::spawn_blocking(move || {
            assert!(self.wait(), "{}", self.stderr());
            self.stderr_thread.take().map(std::thread::JoinHandle::join);
            self.stderr()
        })
        .await
        .unwrap()
    }

    /// Sends SIGHUP and waits until the log has this text once more than before.
    pub(crate) async fn hang_up(&self, expected: &str) {
        let count = || self.stderr().matches(expected).count();
        let before = count();
        rustix::process::kill_process(self.pid(), rustix::process::Signal::HUP).unwrap();
        for _ in 0..500 {
            if count() > before {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the log does not say `{expected}`: {}", self.stderr());
    }

    /// Status and body of a GET of a path beside `/mcp`, with or without the token.
    pub(crate) async fn get(&self, path: &str, token: Option<&str>) -> (u16, String) {
        let mut request = self.http.get(self.url.replace("/mcp", path));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }
}

/// Sends a request and reads its response: JSON, or the last event of a stream.
pub(crate) async fn send(request: reqwest::RequestBuilder) -> HttpResponse {
    let response = request.timeout(Duration::from_secs(30)).send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let session = headers.get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    let text = response.text().await.unwrap();
    let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
    let body = serde_json::from_str(last.unwrap_or(&text)).unwrap_or(Value::Null);
    HttpResponse { status, session, body }
}

impl Drop for HttpGateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
