//! [`TestCaller`]: records progress and log messages, and answers input requests.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolyard_core::{
    BoxFuture, CallInputError, CallInputKind, CallInputRequest, CallInputResponses, CallProgress, Caller,
    RawJson,
};

/// A caller with fixed responses.
#[derive(Debug)]
pub(crate) struct TestCaller {
    session_id: u64,
    capabilities: Value,
    accepts_input_required: bool,
    responses: Option<CallInputResponses>,
    /// How long it waits before it responds.
    response_delay: Duration,
    trace: Vec<(String, String)>,
    request_meta: Option<RawJson>,
    pub(crate) progress: Mutex<Vec<CallProgress>>,
    pub(crate) logged: Mutex<Vec<Value>>,
    /// Input requests, grouped as they arrived.
    pub(crate) requests: Mutex<Vec<Vec<CallInputRequest>>>,
}

impl TestCaller {
    /// A caller of this session that supports all input requests.
    pub(crate) fn with_session(session_id: u64) -> Self {
        Self {
            session_id,
            capabilities: json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}),
            accepts_input_required: false,
            responses: None,
            response_delay: Duration::ZERO,
            trace: Vec::new(),
            request_meta: None,
            progress: Mutex::default(),
            logged: Mutex::default(),
            requests: Mutex::default(),
        }
    }

    pub(crate) fn with_capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    pub(crate) fn accepting_input_required(mut self, responses: Option<CallInputResponses>) -> Self {
        (self.accepts_input_required, self.responses) = (true, responses);
        self
    }

    pub(crate) fn with_delay(mut self, delay: Duration) -> Self {
        self.response_delay = delay;
        self
    }

    pub(crate) fn with_trace(mut self, key: &str, value: &str) -> Self {
        self.trace.push((key.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn with_meta(mut self, meta: Value) -> Self {
        self.request_meta = Some(meta.into());
        self
    }

    pub(crate) fn shared(self) -> Arc<Self> {
        Arc::new(self)
    }

    /// The methods of its input requests except `roots/list`, which the official server sends soon after the handshake,
    /// whichever call is in flight.
    pub(crate) fn methods(&self) -> Vec<String> {
        let requests = self.requests.lock();
        let methods = requests
            .iter()
            .flatten()
            .map(|request| toolyard_mcp::input_method::input_method(request.kind).to_owned());
        methods.filter(|method| method != "roots/list").collect()
    }

    pub(crate) fn progress_values(&self) -> Vec<f64> {
        self.progress.lock().iter().map(|progress| progress.progress).collect()
    }
}

impl Caller for TestCaller {
    fn capabilities(&self) -> RawJson {
        RawJson::from_value(&self.capabilities)
    }

    fn session_id(&self) -> u64 {
        self.session_id
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, progress: &CallProgress) {
        self.progress.lock().push(progress.clone());
    }

    fn log(&self, message: &RawJson) {
        self.logged.lock().push(message.to_value());
    }

    fn log_level(&self) -> Option<&str> {
        Some("debug")
    }

    fn trace_context(&self) -> &[(String, String)] {
        &self.trace
    }

    fn request_meta(&self) -> Option<&RawJson> {
        self.request_meta.as_ref()
    }

    fn request_input<'a>(
        &'a self,
        requests: &'a [CallInputRequest],
    ) -> BoxFuture<'a, Result<Vec<RawJson>, CallInputError>> {
        self.requests.lock().push(requests.to_vec());
        Box::pin(async move {
            tokio::time::sleep(self.response_delay).await;
            Ok(requests.iter().map(|request| response_to(request).into()).collect())
        })
    }

    fn accepts_input_required(&self) -> bool {
        self.accepts_input_required
    }

    fn input_responses(&self) -> Option<&CallInputResponses> {
        self.responses.as_ref()
    }
}

/// The response to an input request.
pub(crate) fn response_to(request: &CallInputRequest) -> Value {
    match request.kind {
        CallInputKind::Elicitation => {
            let params = request.params.as_ref().unwrap().to_value();
            let is_requested =
                |name: &str| params.pointer(&format!("/requestedSchema/properties/{name}")).is_some();
            let answers = [("name", json!("Ada")), ("place", json!("London")), ("check", json!(true))];
            let content: BTreeMap<_, _> =
                answers.into_iter().filter(|(name, _)| is_requested(name)).collect();
            json!({"action": "accept", "content": content})
        }
        CallInputKind::Sampling => json!({
            "role": "assistant", "model": "a-model", "stopReason": "endTurn",
            "content": {"type": "text", "text": "sampled words"},
        }),
        CallInputKind::Roots => json!({"roots": [{"uri": "file:///tmp/a-root", "name": "a root"}]}),
    }
}
