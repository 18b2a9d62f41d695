//! A scripted model behind an OpenAI-compatible HTTP endpoint.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::{Value, json};

/// A server on its own thread, which ends with the test.
pub(crate) struct ModelServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

/// What a request demands of the reply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyFormat {
    /// JSON of a schema, as for plans (`response_format` is set).
    Json,
    /// Free text, as for answers.
    Text,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    requests: Vec<Value>,
}

/// The reply to a request whose last message contains this text.
struct Rule {
    contains: String,

    format: ReplyFormat,
    text: String,
}

impl ModelServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve_connection(stream, &state));
            }
        });
        Self { address, state }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Replies with this plan if the task contains these words.
    pub(crate) fn script_plan(&self, contains: &str, steps: &Value) {
        self.script_reply(contains, ReplyFormat::Json, &json!({ "steps": steps }).to_string());
    }

    /// Replies to the request for a plan with an answer instead.
    pub(crate) fn script_direct_answer(&self, contains: &str, answer: &str) {
        self.script_reply(contains, ReplyFormat::Json, &json!({"steps": [], "answer": answer}).to_string());
    }

    /// Replies with this answer once the plan was executed.
    pub(crate) fn script_answer(&self, contains: &str, answer: &str) {
        self.script_reply(contains, ReplyFormat::Text, answer);
    }

    /// Replies with this text to a request of this format whose last message contains these words.
    pub(crate) fn script_reply(&self, contains: &str, format: ReplyFormat, text: &str) {
        let rule = Rule { contains: contains.to_owned(), format, text: text.to_owned() };
        self.lock().rules.push(rule);
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.lock().requests.clone()
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Replies to one request and closes the connection.
fn serve_connection(mut stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let reply = {
        let mut state = state.lock();
        state.requests.push(request.clone());
        let last = request.pointer("/messages").and_then(Value::as_array).and_then(|all| all.last());
        let last = last.and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned();
        let has_schema = request.get("response_format").is_some();
        let format = if has_schema { ReplyFormat::Json } else { ReplyFormat::Text };
        let rule =
            state.rules.iter().rev().find(|rule| rule.format == format && last.contains(&rule.contains));
        rule.map(|rule| rule.text.clone())
    };
    let _ = stream.write_all(&http_response(reply.as_deref()));
}

/// The reply as server-sent events, word by word; an error if no rule fits.
fn http_response(reply: Option<&str>) -> Vec<u8> {
    let Some(reply) = reply else {
        let body = r#"{"error":{"message":"no rule fits this request"}}"#;
        let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n";
        return format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes();
    };
    let mut text =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_owned();
    for word in reply.split_inclusive(' ') {
        let chunk = json!({"choices": [{"index": 0, "delta": {"content": word}}]});
        let _ = write!(text, "data: {chunk}\n\n");
    }
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 20});
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage});
    let _ = write!(text, "data: {last}\n\ndata: [DONE]\n\n");
    text.into_bytes()
}
