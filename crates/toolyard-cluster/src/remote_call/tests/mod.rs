//! Calls between processes in memory: what crosses, what fails, what is cancelled.

mod calls;
mod failures;
mod hostile;
mod round_trip;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;
use toolyard_core::{
    BoxFuture, CallContext, CallInputError, CallInputKind, CallInputRequest, CallProgress, Caller,
    ContentHash, ErrorKind, Peers as _, RawJson, SourceId, Tool, ToolCallRequest, ToolError, ToolOutput,
    ToolSpec,
};

use super::{CallTarget, LocalTools, TOOL_CALL_SERVICE, ToolCallService, call_remote};
use crate::testing::{MemoryCluster, MemoryPeers};

const CALLER: u64 = 1;
const EXECUTOR: u64 = 2;

type Outcome = Result<ToolOutput, ToolError>;
type Function = dyn Fn(ToolCallRequest, CallContext) -> BoxFuture<'static, Outcome> + Send + Sync;

/// A tool of one function.
struct TestTool {
    spec: ToolSpec,
    needs_conversation: bool,
    function: Arc<Function>,
}

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, request: &'a ToolCallRequest, context: &'a CallContext) -> BoxFuture<'a, Outcome> {
        (self.function)(request.clone(), context.clone())
    }

    fn needs_conversation(&self) -> bool {
        self.needs_conversation
    }
}

/// Offers one tool of the source `files`.
struct TestTools(Arc<TestTool>);

impl LocalTools for TestTools {
    fn find(
        &self,
        source: &SourceId,
        tool: &str,
        definition: Option<&ContentHash>,
    ) -> Result<Arc<dyn Tool>, ToolError> {
        let is_current = definition.is_none_or(|definition| *definition == ContentHash::of("definition"));
        if source.as_str() != "files" || *tool != *self.0.spec.name || !is_current {
            return Err(ToolError::new(ErrorKind::UnknownTool, "no such tool here"));
        }
        Ok(Arc::clone(&self.0) as Arc<dyn Tool>)
    }
}

/// Two processes: one accepts calls, one has the tool.
struct TestCluster {
    cluster: MemoryCluster,
    caller: Arc<MemoryPeers>,
    _executor: Arc<MemoryPeers>,
}

impl TestCluster {
    fn new<F>(function: impl Fn(ToolCallRequest, CallContext) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let function = Arc::new(move |request, context| -> BoxFuture<'static, Outcome> {
            Box::pin(function(request, context))
        });
        Self::with_tool(TestTool { spec: ToolSpec::new("read", ""), needs_conversation: false, function })
    }

    fn with_tool(tool: TestTool) -> Self {
        let cluster = MemoryCluster::new();
        let (caller, executor) = (cluster.join(CALLER), cluster.join(EXECUTOR));
        executor.serve(TOOL_CALL_SERVICE, Arc::new(ToolCallService::new(TestTools(Arc::new(tool)))));
        Self { cluster, caller, _executor: executor }
    }

    async fn call(&self, context: &CallContext) -> Outcome {
        call_remote(&*self.caller, EXECUTOR, &target(), &request(), context).await
    }

    /// Sends a request as it is, and returns the first message that comes back.
    async fn send_raw(&self, request: &[u8]) -> Option<String> {
        let mut exchange = self.caller.open(EXECUTOR, TOOL_CALL_SERVICE, request.to_vec()).await.unwrap();
        let message = exchange.receive().await.unwrap()?;
        Some(String::from_utf8(message).unwrap())
    }
}

fn target() -> CallTarget {
    CallTarget { source: "files".into(), definition: None }
}

fn request() -> ToolCallRequest {
    ToolCallRequest {
        id: "call_7".to_owned(),
        tool_name: "read".to_owned(),
        arguments: RawJson::parse(r#"{"b":1.50,"a":[ ]}"#.to_owned()).unwrap(),
        source: None,
    }
}

fn within(duration: Duration) -> CallContext {
    CallContext::until((Instant::now() + duration).into_std())
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Records what it is told, and answers input requests after a while.
#[derive(Debug)]
struct TestCaller {
    told: Mutex<Vec<String>>,
    answer: Result<Vec<RawJson>, CallInputError>,
    answer_delay: Duration,
}

impl Default for TestCaller {
    fn default() -> Self {
        let answer = Ok(vec![json!({"action": "accept"}).into()]);
        Self { told: Mutex::default(), answer, answer_delay: Duration::ZERO }
    }
}

impl TestCaller {
    fn tell(&self, text: String) {
        self.told.lock().push(text);
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().clone()
    }
}

impl Caller for TestCaller {
    fn session_id(&self) -> u64 {
        7
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, progress: &CallProgress) {
        self.tell(format!("progress {}", progress.progress));
    }

    fn log(&self, message: &RawJson) {
        self.tell(format!("log {}", message.get()));
    }

    fn request_input<'a>(
        &'a self,
        requests: &'a [CallInputRequest],
    ) -> BoxFuture<'a, Result<Vec<RawJson>, CallInputError>> {
        Box::pin(async move {
            for request in requests {
                self.tell(format!("input {request:?}"));
            }
            let mut waiting = InputWait { caller: self, is_over: false };
            tokio::time::sleep(self.answer_delay).await;
            waiting.is_over = true;
            self.answer.clone()
        })
    }

    fn note_unsupported(&self, request: &CallInputRequest) {
        self.tell(format!("unsupported {}", request.key));
    }
}

/// Tells when an input request is dropped before it is answered.
struct InputWait<'a> {
    caller: &'a TestCaller,
    is_over: bool,
}

impl Drop for InputWait<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.caller.tell("input withdrawn".to_owned());
        }
    }
}

fn question(key: &str) -> CallInputRequest {
    CallInputRequest {
        key: key.to_owned(),
        source: "files".into(),
        kind: CallInputKind::Elicitation,
        params: Some(json!({"message": "sure?"}).into()),
    }
}
