//! Tools that follow a script and record their calls.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError, ToolHints,
    ToolOutput, ToolSpec,
};
use toolyard_hub::ToolHub;

/// What a scripted tool does when it is called.
#[derive(Debug, Clone)]
pub(crate) enum Behavior {
    Answer(String),
    Fail(ErrorKind),
    Hang,
    Panic,
    /// Returns its arguments.
    Echo,
    /// Returns an input request.
    RequireInput,
    /// Fails with these errors in turn, and with the last one from then on.
    FailInTurn(Vec<ErrorKind>),
    /// Sends nothing in so many attempts, and fails with the error in every attempt from then on.
    NeverSent(usize, ErrorKind),
    /// Panics in `call`, before it returns a future.
    PanicBeforeFuture,
}

/// The calls of all tools of a test.
#[derive(Debug, Default)]
pub(crate) struct CallLog {
    running: AtomicUsize,
    pub(crate) max_running: AtomicUsize,
    pub(crate) dropped_unfinished: AtomicUsize,
    /// The source of each call, in order.
    pub(crate) calls: Mutex<Vec<String>>,
}

impl CallLog {
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().clone()
    }

    pub(crate) fn still_running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }
}

/// A tool that behaves as scripted at every call, after a delay.
pub(crate) struct ScriptedTool {
    spec: ToolSpec,
    source: String,
    delay: Duration,
    behavior: Behavior,
    next_failure: AtomicUsize,
    call_log: Arc<CallLog>,
}

/// Counts a call as running until it is finished or dropped.
struct RunningCall<'a> {
    call_log: &'a CallLog,
    finished: bool,
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.call_log.running.fetch_sub(1, Ordering::SeqCst);
        if !self.finished {
            self.call_log.dropped_unfinished.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Tool for ScriptedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        assert!(!matches!(self.behavior, Behavior::PanicBeforeFuture), "as scripted");
        Box::pin(async move {
            self.call_log.calls.lock().push(self.source.clone());
            let running = self.call_log.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.call_log.max_running.fetch_max(running, Ordering::SeqCst);
            let mut running = RunningCall { call_log: &self.call_log, finished: false };
            tokio::time::sleep(self.delay).await;
            let outcome = match &self.behavior {
                Behavior::Answer(text) => Ok(ToolOutput::text(text)),
                Behavior::Fail(kind) => Err(ToolError::new(*kind, "as scripted")),
                Behavior::Hang => std::future::pending().await,
                Behavior::Panic | Behavior::PanicBeforeFuture => panic!("as scripted"),
                Behavior::FailInTurn(kinds) => {
                    let next_failure = self.next_failure.fetch_add(1, Ordering::SeqCst).min(kinds.len() - 1);
                    Err(ToolError::new(*kinds.get(next_failure).unwrap(), "as scripted"))
                }
                Behavior::NeverSent(attempts, kind) => {
                    let is_sent = self.next_failure.fetch_add(1, Ordering::SeqCst) >= *attempts;
                    let unsent = || ToolError::new(ErrorKind::Unavailable, "as scripted").mark_never_sent();
                    Err(if is_sent { ToolError::new(*kind, "as scripted") } else { unsent() })
                }
                Behavior::RequireInput => Ok(ToolOutput { input_required: true, ..ToolOutput::default() }),
                Behavior::Echo => Ok(ToolOutput::text(request.arguments.get())),
            };
            running.finished = true;
            outcome
        })
    }
}

/// A scripted tool and its source.
#[derive(Debug, Clone)]
pub(crate) struct TestTool {
    pub(crate) tool: String,
    pub(crate) source: String,
    pub(crate) kind: SourceKind,
    pub(crate) trusted: bool,
    pub(crate) exclusive: bool,
    pub(crate) hints: ToolHints,
    pub(crate) delay: Duration,
    pub(crate) behavior: Behavior,
    pub(crate) description: String,
    pub(crate) schema: serde_json::Value,
}

/// A read-only tool of a trusted source that returns the name of the source.
pub(crate) fn test_tool(tool: &str, source: &str) -> TestTool {
    TestTool {
        tool: tool.to_owned(),
        source: source.to_owned(),
        kind: if source == "native" { SourceKind::Native } else { SourceKind::Mcp },
        trusted: true,
        exclusive: false,
        hints: ToolHints::READ_ONLY,
        delay: Duration::from_millis(10),
        behavior: Behavior::Answer(source.to_owned()),
        description: String::new(),
        schema: serde_json::json!({"type": "object"}),
    }
}

impl TestTool {
    pub(crate) fn with_behavior(mut self, behavior: Behavior) -> Self {
        self.behavior = behavior;
        self
    }

    pub(crate) fn with_delay_ms(mut self, milliseconds: u64) -> Self {
        self.delay = Duration::from_millis(milliseconds);
        self
    }

    pub(crate) fn writes(mut self) -> Self {
        self.hints = ToolHints::default();
        self
    }

    pub(crate) fn idempotent(mut self) -> Self {
        self.hints = ToolHints::IDEMPOTENT;
        self
    }

    /// Accepts only arguments with this key.
    pub(crate) fn requires(mut self, key: &str) -> Self {
        self.schema = serde_json::json!({"type": "object", "required": [key]});
        self
    }

    pub(crate) fn untrusted(mut self) -> Self {
        self.trusted = false;
        self
    }

    pub(crate) fn with_description(mut self, description: &str) -> Self {
        self.description = description.to_owned();
        self
    }

    pub(crate) fn skill(mut self) -> Self {
        self.kind = SourceKind::Skill;
        self
    }

    pub(crate) fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    pub(crate) fn info(&self) -> SourceInfo {
        SourceInfo::new(self.source.as_str(), self.kind).trusted(self.trusted).exclusive(self.exclusive)
    }

    pub(crate) fn tool(&self, call_log: &Arc<CallLog>) -> Arc<dyn Tool> {
        Arc::new(ScriptedTool {
            spec: ToolSpec::new(self.tool.as_str(), self.description.as_str())
                .with_hints(self.hints)
                .with_input_schema(self.schema.clone()),
            source: self.source.clone(),
            delay: self.delay,
            behavior: self.behavior.clone(),
            next_failure: AtomicUsize::new(0),
            call_log: Arc::clone(call_log),
        })
    }
}

/// Registers the tools, each with its source.
pub(crate) fn register(hub: &ToolHub, test_tools: &[TestTool]) -> Arc<CallLog> {
    let call_log = Arc::new(CallLog::default());
    let mut sources: Vec<&str> = Vec::new();
    for test_tool in test_tools {
        if !sources.contains(&test_tool.source.as_str()) {
            sources.push(&test_tool.source);
            let of_source: Vec<&TestTool> =
                test_tools.iter().filter(|other| other.source == test_tool.source).collect();
            hub.register(
                test_tool.info(),
                of_source.iter().map(|test_tool| test_tool.tool(&call_log)).collect(),
            );
        }
    }
    call_log
}

pub(crate) fn request(tool: &str) -> ToolCallRequest {
    ToolCallRequest::new(tool, serde_json::json!({}))
}
