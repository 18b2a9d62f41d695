//! Tools for tests, which record their calls.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use toolyard_core::{
    ArgumentProblem, BoxFuture, CallInputKind, CallInputRequest, CallProgress, Caller, Catalogue, ClientInfo,
    ErrorKind, ListedTool, RawJson, RawToolError, ResultRef, ServiceCall, SignInLink, ToolError, ToolOutput,
    ToolService, Truncation,
};

#[derive(Debug)]
pub(crate) struct TestTools {
    catalogue: Mutex<Arc<Catalogue>>,
    version: watch::Sender<u64>,
    /// Releases `slow`.
    pub(crate) release: Notify,
    /// Calls of `slow` that started, finished, and were dropped before they finished.
    pub(crate) started: AtomicUsize,
    pub(crate) finished: AtomicUsize,
    pub(crate) dropped: AtomicUsize,
    /// Whether the tool `sign_in` succeeds.
    pub(crate) is_signed_in: AtomicBool,
    /// The recorded calls.
    pub(crate) calls: Mutex<Vec<ServiceCall>>,
    /// Tasks that were alive while `echo` ran.
    pub(crate) tasks: AtomicUsize,
    /// What the sources of the tools say to clients of this name.
    pub(crate) instructions: Mutex<Option<(String, String)>>,
}

impl Default for TestTools {
    fn default() -> Self {
        Self {
            catalogue: Mutex::new(Arc::new(Catalogue { version: 1, tools: definitions(3) })),
            version: watch::Sender::new(1),
            release: Notify::new(),
            started: AtomicUsize::default(),
            finished: AtomicUsize::default(),
            dropped: AtomicUsize::default(),
            is_signed_in: AtomicBool::default(),
            calls: Mutex::default(),
            tasks: AtomicUsize::default(),
            instructions: Mutex::default(),
        }
    }
}

pub(crate) fn definitions(count: usize) -> Vec<ListedTool> {
    (0..count)
        .map(|number| {
            let name = format!("tool_{number:05}");
            let definition =
                json!({"name": name, "description": "Does something", "inputSchema": {"type": "object"}});
            ListedTool { name: name.into(), definition: RawJson::from_value(&definition) }
        })
        .collect()
}

fn sign_in_required() -> ToolError {
    let link = SignInLink::new("notes", "e1", "https://tools.example/sign-in/t1cket".to_owned());
    ToolError::new(ErrorKind::SignInRequired, "server `notes` requires authentication")
        .on_source(&"notes".into())
        .with_sign_in(link)
}

impl TestTools {
    /// Replaces the list; the version grows only if it changed.
    pub(crate) fn offer(&self, tools: Vec<ListedTool>) {
        let mut catalogue = self.catalogue.lock();
        if catalogue.tools != tools {
            let version = catalogue.version + 1;
            *catalogue = Arc::new(Catalogue { version, tools });
            self.version.send_replace(version);
        }
    }

    /// Waits until this many slow calls have started.
    pub(crate) async fn wait_for_started(&self, count: usize) {
        while self.started.load(Ordering::SeqCst) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn slow(&self) -> ToolOutput {
        struct CallGuard<'a> {
            tools: &'a TestTools,
            is_finished: bool,
        }
        impl Drop for CallGuard<'_> {
            fn drop(&mut self) {
                let counter = if self.is_finished { &self.tools.finished } else { &self.tools.dropped };
                counter.fetch_add(1, Ordering::SeqCst);
            }
        }
        let mut guard = CallGuard { tools: self, is_finished: false };
        self.started.fetch_add(1, Ordering::SeqCst);
        self.release.notified().await;
        guard.is_finished = true;
        ToolOutput::text("done")
    }

    async fn execute(&self, call: &ServiceCall) -> Result<ToolOutput, ToolError> {
        self.calls.lock().push(call.clone());
        let caller = call.caller.as_deref().unwrap();
        let arguments = &call.request.arguments;
        Ok(match call.request.tool_name.as_str() {
            "echo" => {
                let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
                self.tasks.store(alive, Ordering::SeqCst);
                let text = Value::from(arguments.get());
                raw(&format!(r#"{{"content":[{{"type":"text","text":{text}}}],"x-kept":1.0}}"#))
            }
            "large" => {
                let text = "x".repeat(200_000);
                raw(&format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#))
            }
            "pretty" => raw("{\n  \"content\": [\n    {\"type\":\"text\",\"text\":\"a\\nb\"}\n  ]\n}"),
            "sign_in" if !self.is_signed_in.load(Ordering::SeqCst) => return Err(sign_in_required()),
            "sign_in" => ToolOutput::text("signed in"),
            "slow" => self.slow().await,
            "progress" => {
                progress(caller, 1.0);
                tokio::time::sleep(Duration::from_millis(5)).await;
                progress(caller, 2.0);
                ToolOutput::text("done")
            }
            "chatty" => {
                for number in 0..arguments.to_value()["count"].as_u64().unwrap() {
                    caller.log(&RawJson::from(json!({"level": "error", "data": number})));
                }
                ToolOutput::text("done")
            }
            "log" => {
                for level in ["debug", "info", "error"] {
                    caller.log(&RawJson::from(json!({"level": level, "data": format!("a {level}")})));
                }
                ToolOutput::text("logged")
            }
            "ask" => ToolOutput::text(request_values(caller, &[input_request("name")]).await?),
            "tell_and_ask" => {
                progress(caller, 1.0);
                ToolOutput::text(request_values(caller, &[input_request("name")]).await?)
            }
            "ask_both" => ToolOutput::text(
                request_values(caller, &[input_request("name"), input_request("place")]).await?,
            ),
            "ask_apart" => {
                let (one, other) = ([input_request("name")], [input_request("name")]);
                let (one, other) = tokio::join!(request_values(caller, &one), request_values(caller, &other));
                ToolOutput::text(format!("{} {}", one?, other?))
            }
            "ask_twice" => {
                let first = request_values(caller, &[input_request("first")]).await?;
                let second = request_values(caller, &[input_request("second")]).await?;
                ToolOutput::text(format!("{first} {second}"))
            }
            "ask_rounds" => ask_rounds(&arguments.to_value(), caller).await?,
            "ask_then_slow" => {
                request_values(caller, &[input_request("name")]).await?;
                self.slow().await
            }
            "ask_then_fail" => {
                let name = request_values(caller, &[input_request("name")]).await?;
                return Err(ToolError::failed(format!("no {name}")));
            }
            "upstream" => upstream(call, caller),
            "send_text" => return send_text(&arguments.to_value(), caller).await,
            _ => return special_outcome(call.request.tool_name.as_str()),
        })
    }
}

/// Results and errors of all kinds.
fn special_outcome(name: &str) -> Result<ToolOutput, ToolError> {
    let parse = |text: &str| RawJson::parse(text.to_owned()).unwrap();
    Ok(match name {
        "numbers" => ToolOutput::json(json!([1, 2])),
        "truncated" => {
            let mut output = ToolOutput::text("beginning");
            let reference = Some(ResultRef::new("r_1"));
            output.meta.truncation = Some(Truncation { kept: 9, omitted: 1, total: 10, reference });
            output
        }
        "shortened" => {
            let mut output = ToolOutput::json(json!({"rows": [1]}));
            output.meta.structured_truncated = true;
            output
        }
        "failed" => return Err(ToolError::failed("it broke").with_hint("repair it")),
        "raw_result" => {
            let raw = parse(r#"{"isError":true,"content":[],"kept":true}"#);
            return Err(ToolError::failed("no").with_raw(RawToolError::ToolResult(raw)));
        }
        "raw_error" => {
            let raw = parse(r#"{"code":-31999,"message":"mine","data":{"a":1}}"#);
            return Err(ToolError::failed("no").with_raw(RawToolError::Protocol(raw)));
        }
        "raw_missing" => {
            let raw = parse(r#"{"code":-32021,"message":"no","data":{"requiredCapabilities":{"roots":{}}}}"#);
            return Err(ToolError::failed("no").with_raw(RawToolError::Protocol(raw)));
        }
        "invalid" => {
            let problem = ArgumentProblem { path: "/a".to_owned(), message: "is missing".to_owned() };
            return Err(ToolError::invalid_arguments(vec![problem]));
        }
        name => {
            let error = ToolError::new(ErrorKind::UnknownTool, format!("tool `{name}` does not exist"));
            return Err(error.with_hint("did you mean `echo`?"));
        }
    })
}

/// Sends a text to the client on the path that the arguments name.
async fn send_text(arguments: &Value, caller: &dyn Caller) -> Result<ToolOutput, ToolError> {
    let (path, text) = (arguments["path"].as_str().unwrap(), arguments["text"].as_str().unwrap());
    let result = json!({"content": [{"type": "text", "text": text}], "structuredContent": {text: [text]}});
    let form = json!({"message": text, "requestedSchema": {"type": "object",
        "properties": {text: {"type": "string", "description": text}}}});
    Ok(match path {
        "result" => ToolOutput::text(text),
        "structured result" => ToolOutput::json(json!({text: text})),
        "raw result" => raw(&result.to_string()),
        "error" => return Err(ToolError::failed(text).with_hint(text)),
        "unknown tool" => return Err(ToolError::new(ErrorKind::UnknownTool, text)),
        "raw error result" => {
            return Err(ToolError::failed("no").with_raw(RawToolError::ToolResult(result.into())));
        }
        "raw protocol error" => {
            let error = json!({"code": -31999, "message": text, "data": {text: text}});
            return Err(ToolError::failed("no").with_raw(RawToolError::Protocol(error.into())));
        }
        "progress" => {
            let message = Some(text.to_owned());
            caller.progress(&CallProgress { progress: 1.0, total: None, message });
            ToolOutput::text("done")
        }
        "log" => {
            caller.log(&RawJson::from(json!({"level": "error", "logger": text, "data": {text: text}})));
            ToolOutput::text("done")
        }
        "elicitation" => {
            let request = CallInputRequest { params: Some(form.into()), ..input_request("name") };
            ToolOutput::text(request_values(caller, &[request]).await?)
        }
        "forwarded elicitation" => {
            let request = json!({"name": {"method": "elicitation/create", "params": form}});
            let result = json!({"resultType": "input_required", "inputRequests": request});
            ToolOutput { input_required: true, ..raw(&result.to_string()) }
        }
        path => panic!("no path `{path}`"),
    })
}

/// Requests input as often as the arguments say, and reports progress and a log message after each response.
async fn ask_rounds(arguments: &Value, caller: &dyn Caller) -> Result<ToolOutput, ToolError> {
    let mut values = Vec::new();
    for round in 0..arguments["rounds"].as_u64().unwrap() {
        values.push(request_values(caller, &[input_request("name")]).await?);
        caller.log(&RawJson::from(json!({"level": "error", "data": round})));
        if caller.wants_progress() {
            let progress = f64::from(u32::try_from(round).unwrap());
            caller.progress(&CallProgress { progress, total: None, message: Some("a\nb".to_owned()) });
        }
    }
    Ok(ToolOutput::text(values.join(" ")))
}

/// A tool of a modern server that requests input without waiting.
fn upstream(call: &ServiceCall, caller: &dyn Caller) -> ToolOutput {
    assert!(caller.accepts_input_required());
    match caller.input_responses() {
        Some(answers) => {
            let echoed = json!({"source": call.request.source, "state": answers.state, "responses": answers.responses.to_value()});
            ToolOutput::text(echoed.to_string())
        }
        None => {
            let result = r#"{"resultType":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":{"message":"?"}}},"requestState":"theirs","x-kept":1.0}"#;
            let mut output = raw(result);
            output.input_required = true;
            output.meta.source = Some("far".into());
            output
        }
    }
}

fn raw(text: &str) -> ToolOutput {
    ToolOutput { raw: Some(RawJson::parse(text.to_owned()).unwrap()), ..ToolOutput::default() }
}

fn progress(caller: &dyn Caller, progress: f64) {
    if caller.wants_progress() {
        caller.progress(&CallProgress { progress, total: Some(2.0), message: Some("working".to_owned()) });
    }
}

fn input_request(key: &str) -> CallInputRequest {
    let params = json!({"message": format!("What is your {key}?"), "requestedSchema": {"type": "object"}});
    CallInputRequest {
        key: key.to_owned(),
        source: "native".into(),
        kind: CallInputKind::Elicitation,
        params: Some(RawJson::from_value(&params)),
    }
}

async fn request_values(caller: &dyn Caller, requests: &[CallInputRequest]) -> Result<String, ToolError> {
    let answers =
        caller.request_input(requests).await.map_err(|error| ToolError::failed(error.to_string()))?;
    let values =
        answers.iter().map(|answer| answer.to_value()["content"]["value"].as_str().unwrap().to_owned());
    Ok(values.collect::<Vec<_>>().join(" "))
}

impl ToolService for TestTools {
    fn catalogue(&self, _client: &ClientInfo) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.lock())
    }

    fn changed(&self, seen_version: u64) -> BoxFuture<'_, u64> {
        let mut version = self.version.subscribe();
        Box::pin(async move {
            let changed = version.wait_for(|version| *version != seen_version).await.map(|version| *version);
            changed.unwrap_or(seen_version)
        })
    }

    fn describe(&self, name: &str, _client: &ClientInfo) -> Option<RawJson> {
        let catalogue = self.catalogue.lock();
        catalogue.tools.iter().find(|tool| tool.name.as_ref() == name).map(|tool| tool.definition.clone())
    }

    fn instructions(&self, client: &ClientInfo) -> Option<String> {
        assert!(client.identity.is_some());
        let (name, instructions) = self.instructions.lock().clone()?;
        (client.name.as_deref() == Some(name.as_str())).then_some(instructions)
    }

    fn call<'a>(&'a self, call: &'a ServiceCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.execute(call))
    }
}
