//! An OpenAI-compatible server that answers from a script and writes down every request, for tests that count model
//! calls across processes.
//!
//! `scripted_model_server --script FILE [--port N] [--log FILE] [--delay-ms N]` prints its address as its first line.
//!
//! Every line of the script is a rule, a JSON object; the first that fits a request answers it, and a request that none
//! fits is answered with status 500. What a rule may say:
//!
//! | field | meaning |
//! |---|---|
//! | `contains` | fits if this (or each of these) stands in the last message |
//! | `anywhere` | fits if this (or each of these) stands in any message |
//! | `nth` | fits only the request with this number, from 1, among those its other fields fit |
//! | `text`, `reasoning` | what is said |
//! | `calls` | `[{"name": …, "arguments": {…}}]`, said natively |
//! | `finish` | why it stops |
//! | `usage` | `[input, output]` tokens; estimated otherwise |
//! | `status`, `error`, `retry_after` | a failure in place of an answer |
//! | `delay_ms` | how long it takes to begin |
//! | `cut` | breaks the connection off after so many pieces |
//!
//! The numbers of requests are counted in the log file, so that they go on where a server before it ended.

#![expect(clippy::print_stdout, reason = "the address goes there")]

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use hyper::{Request, Response, body::Frame, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, std::io::Error>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rule {
    contains: Words,
    anywhere: Words,
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
struct Words(Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(word) => Ok(Self(vec![word])),
            value => serde_json::from_value(value).map(Self).map_err(serde::de::Error::custom),
        }
    }
}

impl Words {
    fn fit(&self, text: &str) -> bool {
        self.0.iter().all(|word| text.contains(word.as_str()))
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
    /// How often each rule's words fitted.
    seen: Vec<usize>,
    requests: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
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
            // A client that goes away in the middle is no news.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
        });
    }
}

impl Server {
    fn new(script: &str, log: Option<&str>, delay: Duration) -> Result<Self, Failure> {
        let lines = script.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let rules: Vec<Rule> = lines
            .map(|line| serde_json::from_str(line).map_err(|error| format!("{error} in {line}")))
            .collect::<Result<_, _>>()?;
        let mut state = State { log: None, seen: vec![0; rules.len()], requests: 0 };
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

    async fn serve(&self, request: Request<Incoming>) -> Result<Response<Body>, Failure> {
        let path = request.uri().path().to_owned();
        if path.ends_with("/models") {
            let list = json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]});
            return answer(200, "application/json", vec![list.to_string()], None);
        }
        if !path.ends_with("/chat/completions") {
            return answer(404, "application/json", vec![error("no such path")], None);
        }
        let body = request.into_body().collect().await?.to_bytes();
        let request: Value = serde_json::from_slice(&body)?;
        let rule = self.next(&request)?;
        let Some(rule) = rule else {
            return answer(500, "application/json", vec![error("no rule of the script fits")], None);
        };
        let delay = rule.delay_ms.map_or(self.delay, Duration::from_millis);
        tokio::time::sleep(delay).await;
        if let Some(status) = rule.status {
            let body = error(rule.error.as_deref().unwrap_or("as the script says"));
            let mut response = answer(status, "application/json", vec![body], None)?;
            if let Some(wait) = &rule.retry_after {
                response.headers_mut().insert("retry-after", wait.parse()?);
            }
            return Ok(response);
        }
        if request.get("stream").and_then(Value::as_bool) == Some(true) {
            return answer(200, "text/event-stream", pieces(&rule), rule.cut);
        }
        answer(200, "application/json", vec![whole(&rule).to_string()], None)
    }

    /// Writes the request down, and finds the rule that answers it.
    fn next(&self, request: &Value) -> Result<Option<Rule>, Failure> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let found = state.count(&self.rules, request);
        let number = state.requests;
        if let Some(log) = &mut state.log {
            // One write, on the disk before it is answered: whoever counts must not miss one.
            let line = json!({"number": number, "rule": found, "request": request}).to_string() + "\n";
            log.write_all(line.as_bytes())?;
            log.sync_data()?;
        }
        Ok(found.and_then(|index| self.rules.get(index).cloned()))
    }
}

impl State {
    /// Counts a request and finds the rule for it.
    fn count(&mut self, rules: &[Rule], request: &Value) -> Option<usize> {
        self.requests += 1;
        let none = Vec::new();
        let messages = request.get("messages").and_then(Value::as_array).unwrap_or(&none);
        let texts: Vec<String> = messages.iter().map(text_of).collect();
        let (last, all) = (texts.last().cloned().unwrap_or_default(), texts.join("\n"));
        let mut found = None;
        for (index, (rule, seen)) in rules.iter().zip(&mut self.seen).enumerate() {
            if rule.contains.fit(&last) && rule.anywhere.fit(&all) {
                *seen += 1;
                if found.is_none() && rule.nth.is_none_or(|nth| nth == *seen) {
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

fn error(message: &str) -> String {
    json!({"error": {"message": message, "type": "scripted"}}).to_string()
}

fn answer(
    status: u16,
    content_type: &str,
    pieces: Vec<String>,
    cut: Option<usize>,
) -> Result<Response<Body>, Failure> {
    let kept = cut.unwrap_or(pieces.len());
    let frames: Vec<_> =
        pieces.into_iter().take(kept).map(|piece| Ok(Frame::data(Bytes::from(piece)))).collect();
    // What was said so far is on its way before the connection breaks.
    let broken = stream::iter(cut).then(|_| async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Err(std::io::Error::other("as the script says"))
    });
    let body = StreamBody::new(stream::iter(frames).chain(broken)).boxed_unsync();
    Ok(Response::builder().status(status).header("content-type", content_type).body(body)?)
}

/// An answer as a stream: texts word by word.
fn pieces(rule: &Rule) -> Vec<String> {
    let event = |delta: &Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let event = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "scripted", "choices": [choice]});
        format!("data: {event}\n\n")
    };
    let mut pieces = vec![event(&json!({"role": "assistant", "content": ""}), None)];
    let words = |text: &str| text.split_inclusive(' ').map(str::to_owned).collect::<Vec<_>>();
    pieces.extend(words(&rule.reasoning).iter().map(|word| event(&json!({"reasoning_content": word}), None)));
    pieces.extend(words(&rule.text).iter().map(|word| event(&json!({"content": word}), None)));
    for call in native_calls(rule) {
        pieces.push(event(&json!({"tool_calls": [call]}), None));
    }
    pieces.push(event(&json!({}), Some(finish(rule))));
    let usage = json!({"object": "chat.completion.chunk", "choices": [], "usage": usage(rule)});
    pieces.push(format!("data: {usage}\n\n"));
    pieces.push("data: [DONE]\n\n".to_owned());
    pieces
}

/// The same at once.
fn whole(rule: &Rule) -> Value {
    let mut message = json!({"role": "assistant", "content": rule.text, "reasoning_content": rule.reasoning});
    if let Some(fields) = message.as_object_mut().filter(|_| !rule.calls.is_empty()) {
        fields.insert("tool_calls".to_owned(), native_calls(rule).into());
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish(rule)});
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

fn finish(rule: &Rule) -> &str {
    let usual = if rule.calls.is_empty() { "stop" } else { "tool_calls" };
    rule.finish.as_deref().unwrap_or(usual)
}

fn usage(rule: &Rule) -> Value {
    let (input, output) = rule.usage.unwrap_or((100, rule.text.len() as u64 / 4 + 1));
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}
