//! An OpenAI-compatible server with scripted replies that logs every request, for tests that count model calls across
//! processes.
//!
//! `scripted_model_server --script FILE [--port N] [--log FILE] [--delay-ms N]` prints its base URL as its first line.
//!
//! Each line of the script is a rule, a JSON object. The first rule that matches a request answers it; a request without a
//! rule gets status 500. The fields of a rule:
//!
//! | field | meaning |
//! |---|---|
//! | `contains` | matches if the last message contains this text, or each of these texts |
//! | `anywhere` | matches if the messages together contain this text, or each of these texts |
//! | `nth` | matches only the request with this number, from 1, among those that the other fields match |
//! | `text`, `reasoning` | the reply |
//! | `calls` | native tool calls: `[{"name": …, "arguments": {…}}]` |
//! | `finish` | the finish reason |
//! | `usage` | `[input, output]` tokens; estimated by default |
//! | `status`, `error`, `retry_after` | an error in place of a reply |
//! | `delay_ms` | the delay before the response |
//! | `cut` | breaks the connection after this many chunks |
//!
//! Requests are counted in the log file, so that a restarted server continues the numbering.

#![expect(clippy::print_stdout, reason = "prints its base URL")]

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use hyper::{Request, Response, body::Frame, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, std::io::Error>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rule {
    contains: Texts,
    anywhere: Texts,
    nth: Option<usize>,
    text: String,
    reasoning: String,
    calls: Vec<Value>,
    finish: Option<String>,
    usage: Option<(u64, u64)>,
    status: Option<u16>,
    error: Option<String>,
    retry_after: Option<String>,
    delay_ms: Option<u64>,
    cut: Option<usize>,
}

/// One text or several.
#[derive(Debug, Clone, Default)]
struct Texts(Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(vec![text])),
            value => serde_json::from_value(value).map(Self).map_err(serde::de::Error::custom),
        }
    }
}

impl Texts {
    fn are_in(&self, text: &str) -> bool {
        self.0.iter().all(|part| text.contains(part.as_str()))
    }
}

#[derive(Debug)]
struct Server {
    rules: Vec<Rule>,
    delay: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    log: Option<File>,
    /// How many requests matched the texts of each rule.
    matches: Vec<usize>,
    requests: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let mut options = std::env::args().skip(1);
    let (mut port, mut script, mut log, mut delay) = (0, None, None, 0);
    while let Some(option) = options.next() {
        let value = options.next().ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--port" => port = value.parse()?,
            "--script" => script = Some(value),
            "--log" => log = Some(value),
            "--delay-ms" => delay = value.parse()?,
            _ => return Err(format!("unknown option {option}").into()),
        }
    }
    let script = std::fs::read_to_string(script.ok_or("--script FILE is missing")?)?;
    let server = Arc::new(Server::new(&script, log.as_deref(), Duration::from_millis(delay))?);
    let listener = tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port))).await?;
    println!("http://{}/v1", listener.local_addr()?);
    loop {
        let (connection, _) = listener.accept().await?;
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            let service = service_fn(|request| server.serve(request));
            // Clients may disconnect at any time.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
        });
    }
}

impl Server {
    fn new(script: &str, log: Option<&str>, delay: Duration) -> Result<Self, BoxError> {
        let lines = script.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let rules: Vec<Rule> = lines
            .map(|line| serde_json::from_str(line).map_err(|error| format!("{error} in {line}")))
            .collect::<Result<_, _>>()?;
        let mut state = State { log: None, matches: vec![0; rules.len()], requests: 0 };
        if let Some(path) = log {
            if let Ok(file) = File::open(path) {
                for line in BufReader::new(file).lines() {
                    let entry: Value = serde_json::from_str(&line?)?;
                    state.count(&rules, entry.get("request").unwrap_or(&Value::Null));
                }
            }
            state.log = Some(OpenOptions::new().append(true).create(true).open(path)?);
        }
        Ok(Self { rules, delay, state: Mutex::new(state) })
    }

    async fn serve(&self, request: Request<Incoming>) -> Result<Response<Body>, BoxError> {
        let path = request.uri().path().to_owned();
        if path.ends_with("/models") {
            let list = json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]});
            return respond(200, "application/json", vec![list.to_string()], None);
        }
        if !path.ends_with("/chat/completions") {
            return respond(404, "application/json", vec![error_body("no such path")], None);
        }
        let body = request.into_body().collect().await?.to_bytes();
        let request: Value = serde_json::from_slice(&body)?;
        let rule = self.next_rule(&request)?;
        let Some(rule) = rule else {
            return respond(500, "application/json", vec![error_body("no rule of the script matches")], None);
        };
        let delay = rule.delay_ms.map_or(self.delay, Duration::from_millis);
        tokio::time::sleep(delay).await;
        if let Some(status) = rule.status {
            let body = error_body(rule.error.as_deref().unwrap_or("scripted error"));
            let mut response = respond(status, "application/json", vec![body], None)?;
            if let Some(wait) = &rule.retry_after {
                response.headers_mut().insert("retry-after", wait.parse()?);
            }
            return Ok(response);
        }
        if request.get("stream").and_then(Value::as_bool) == Some(true) {
            return respond(200, "text/event-stream", stream_events(&rule), rule.cut);
        }
        respond(200, "application/json", vec![complete_reply(&rule).to_string()], None)
    }

    /// Logs the request and finds its rule.
    fn next_rule(&self, request: &Value) -> Result<Option<Rule>, BoxError> {
        let mut state = self.state.lock();
        let rule = state.count(&self.rules, request);
        let number = state.requests;
        if let Some(log) = &mut state.log {
            // Synced before the response, so that no answered request is missing from the log.
            let line = json!({"number": number, "rule": rule, "request": request}).to_string() + "\n";
            log.write_all(line.as_bytes())?;
            log.sync_data()?;
        }
        Ok(rule.and_then(|index| self.rules.get(index).cloned()))
    }
}

impl State {
    /// Counts a request and finds its rule.
    fn count(&mut self, rules: &[Rule], request: &Value) -> Option<usize> {
        self.requests += 1;
        let no_messages = Vec::new();
        let messages = request.get("messages").and_then(Value::as_array).unwrap_or(&no_messages);
        let texts: Vec<String> = messages.iter().map(text_of).collect();
        let (last, all) = (texts.last().cloned().unwrap_or_default(), texts.join("\n"));
        let mut found = None;
        for (index, (rule, matches)) in rules.iter().zip(&mut self.matches).enumerate() {
            if rule.contains.are_in(&last) && rule.anywhere.are_in(&all) {
                *matches += 1;
                if found.is_none() && rule.nth.is_none_or(|nth| nth == *matches) {
                    found = Some(index);
                }
            }
        }
        found
    }
}

fn text_of(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn error_body(message: &str) -> String {
    json!({"error": {"message": message, "type": "scripted"}}).to_string()
}

fn respond(
    status: u16,
    content_type: &str,
    chunks: Vec<String>,
    cut: Option<usize>,
) -> Result<Response<Body>, BoxError> {
    let count = cut.unwrap_or(chunks.len());
    let frames: Vec<_> =
        chunks.into_iter().take(count).map(|chunk| Ok(Frame::data(Bytes::from(chunk)))).collect();
    // The chunks reach the client before the connection breaks.
    let broken = stream::iter(cut).then(|_| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Err(std::io::Error::other("scripted disconnect"))
    });
    let body = StreamBody::new(stream::iter(frames).chain(broken)).boxed_unsync();
    Ok(Response::builder().status(status).header("content-type", content_type).body(body)?)
}

/// The events of a streamed reply, with texts word by word.
fn stream_events(rule: &Rule) -> Vec<String> {
    let event = |delta: &Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let event = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": [choice]});
        format!("data: {event}\n\n")
    };
    let mut events = vec![event(&json!({"role": "assistant", "content": ""}), None)];
    let words = |text: &str| text.split_inclusive(' ').map(str::to_owned).collect::<Vec<_>>();
    events.extend(words(&rule.reasoning).iter().map(|word| event(&json!({"reasoning_content": word}), None)));
    events.extend(words(&rule.text).iter().map(|word| event(&json!({"content": word}), None)));
    for call in native_calls(rule) {
        events.push(event(&json!({"tool_calls": [call]}), None));
    }
    events.push(event(&json!({}), Some(finish_reason(rule))));
    let usage = json!({"object": "chat.completion.chunk", "choices": [], "usage": usage(rule)});
    events.push(format!("data: {usage}\n\n"));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// A reply that is not streamed.
fn complete_reply(rule: &Rule) -> Value {
    let mut message = json!({"role": "assistant", "content": rule.text, "reasoning_content": rule.reasoning});
    if let Some(fields) = message.as_object_mut().filter(|_| !rule.calls.is_empty()) {
        fields.insert("tool_calls".to_owned(), native_calls(rule).into());
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(rule)});
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice], "usage": usage(rule)})
}

fn native_calls(rule: &Rule) -> Vec<Value> {
    let call = |(index, call): (usize, &Value)| {
        let arguments = call.get("arguments").cloned().unwrap_or_else(|| json!({})).to_string();
        let function = json!({"name": call.get("name"), "arguments": arguments});
        let id = call.get("id").cloned().unwrap_or_else(|| format!("call_{}", index + 1).into());
        json!({"index": index, "id": id, "type": "function", "function": function})
    };
    rule.calls.iter().enumerate().map(call).collect()
}

fn finish_reason(rule: &Rule) -> &str {
    let default = if rule.calls.is_empty() { "stop" } else { "tool_calls" };
    rule.finish.as_deref().unwrap_or(default)
}

fn usage(rule: &Rule) -> Value {
    let (input, output) = rule.usage.unwrap_or((100, rule.text.len() as u64 / 4 + 1));
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}
