//! Tools for tests, which record their calls.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use toolyard_core::{
    ArgumentProblem, BoxFuture, CallInputKind, CallInputRequest, CallProgress, Caller, Catalogue, ClientInfo,
    ErrorKind, OfferedTool, RawJson, RawToolError, ResultRef, ServiceCall, ToolError, ToolOutput,
    ToolService, Truncation,
};

/// Tools for tests.
#[derive(Debug)]
pub(crate) struct TestTools {
    catalogue: Mutex<Arc<Catalogue>>,
    version: watch::Sender<u64>,
    /// Releases `slow`.
    pub(crate) release: Notify,
    pub(crate) started: AtomicUsize,
    pub(crate) finished: AtomicUsize,
    pub(crate) dropped: AtomicUsize,
    /// The recorded calls.
    pub(crate) calls: Mutex<Vec<ServiceCall>>,
    /// Tasks that were alive while `echo` ran.
    pub(crate) tasks: AtomicUsize,
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
            calls: Mutex::default(),
            tasks: AtomicUsize::default(),
        }
    }
}

/// This many tools.
pub(crate) fn definitions(count: usize) -> Vec<OfferedTool> {
    (0..count)
        .map(|number| {
            let name = format!("tool_{number:05}");
            let definition =
                json!({"name": name, "description": "Does something", "inputSchema": {"type": "object"}});
            OfferedTool { name: name.into(), definition: RawJson::from_value(&definition) }
        })
        .collect()
}

impl TestTools {
    /// Replaces the list; the version grows only if it changed.
    pub(crate) fn offer(&self, tools: Vec<OfferedTool>) {
        let mut catalogue = self.catalogue.lock().unwrap();
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
        struct Watched<'a>(&'a TestTools, bool);
        impl Drop for Watched<'_> {
            fn drop(&mut self) {
                let counter = if self.1 { &self.0.finished } else { &self.0.dropped };
                counter.fetch_add(1, Ordering::SeqCst);
            }
        }
        let mut watched = Watched(self, false);
        self.started.fetch_add(1, Ordering::SeqCst);
        self.release.notified().await;
        watched.1 = true;
        ToolOutput::text("done")
    }

    async fn answer(&self, call: &ServiceCall) -> Result<ToolOutput, ToolError> {
        self.calls.lock().unwrap().push(call.clone());
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
            "ask" => ToolOutput::text(ask(caller, &[question("name")]).await?),
            "tell_and_ask" => {
                progress(caller, 1.0);
                ToolOutput::text(ask(caller, &[question("name")]).await?)
            }
            "ask_both" => ToolOutput::text(ask(caller, &[question("name"), question("place")]).await?),
            "ask_apart" => {
                let (one, other) = ([question("name")], [question("name")]);
                let (one, other) = tokio::join!(ask(caller, &one), ask(caller, &other));
                ToolOutput::text(format!("{} {}", one?, other?))
            }
            "ask_twice" => {
                let first = ask(caller, &[question("first")]).await?;
                ToolOutput::text(format!("{first} {}", ask(caller, &[question("second")]).await?))
            }
            "upstream" => upstream(call, caller),
            _ => return outcomes(call.request.tool_name.as_str()),
        })
    }
}

/// Results and errors of all kinds.
fn outcomes(name: &str) -> Result<ToolOutput, ToolError> {
    let parse = |text: &str| RawJson::parse(text.to_owned()).unwrap();
    Ok(match name {
        "numbers" => ToolOutput::json(json!([1, 2])),
        "cut" => {
            let mut output = ToolOutput::text("beginning");
            let reference = Some(ResultRef::new("r_1"));
            output.meta.truncation = Some(Truncation { kept: 9, omitted: 1, total: 10, reference });
            output
        }
        "failed" => return Err(ToolError::failed("it broke").with_hint("mend it")),
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

/// A tool of a modern server that requests input without waiting.
fn upstream(call: &ServiceCall, caller: &dyn Caller) -> ToolOutput {
    assert!(caller.accepts_input_required());
    match caller.input_responses() {
        Some(answers) => {
            let said = json!({"source": call.request.source, "state": answers.state, "responses": answers.responses.to_value()});
            ToolOutput::text(said.to_string())
        }
        None => {
            let asked = r#"{"resultType":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":{"message":"?"}}},"requestState":"theirs","x-kept":1.0}"#;
            let mut output = raw(asked);
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

fn question(key: &str) -> CallInputRequest {
    let params = json!({"message": format!("What is your {key}?"), "requestedSchema": {"type": "object"}});
    CallInputRequest {
        key: key.to_owned(),
        source: "native".into(),
        kind: CallInputKind::Elicitation,
        params: Some(RawJson::from_value(&params)),
    }
}

async fn ask(caller: &dyn Caller, questions: &[CallInputRequest]) -> Result<String, ToolError> {
    let answers =
        caller.request_input(questions).await.map_err(|error| ToolError::failed(error.to_string()))?;
    let said = answers.iter().map(|answer| answer.to_value()["content"]["is"].as_str().unwrap().to_owned());
    Ok(said.collect::<Vec<_>>().join(" "))
}

impl ToolService for TestTools {
    fn catalogue(&self, _viewer: &ClientInfo) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.lock().unwrap())
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, u64> {
        let mut version = self.version.subscribe();
        Box::pin(async move {
            let changed = version.wait_for(|version| *version != seen).await.map(|version| *version);
            changed.unwrap_or(seen)
        })
    }

    fn describe(&self, name: &str) -> Option<RawJson> {
        let catalogue = self.catalogue.lock().unwrap();
        catalogue.tools.iter().find(|tool| tool.name.as_ref() == name).map(|tool| tool.definition.clone())
    }

    fn call<'a>(&'a self, call: &'a ServiceCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.answer(call))
    }
}
