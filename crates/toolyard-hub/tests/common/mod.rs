//! Tools that follow a script and remember what was done to them.

#![expect(dead_code, reason = "each test file uses a part of this")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test helper fails its test")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use toolyard_core::{
    BoxFuture, CallContext, ErrorKind, SourceInfo, SourceKind, Tool, ToolCallRequest, ToolError, ToolHints,
    ToolOutput, ToolSpec,
};
use toolyard_hub::ToolHub;

/// What a scripted tool does when it is called.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Answer(String),
    Fail(ErrorKind),
    Hang,
    Panic,
    /// Answers with its own arguments.
    Echo,
    /// Wants to know something first.
    Ask,
    /// Fails with one after another, and with the last of them from then on.
    FailInTurn(Vec<ErrorKind>),
    /// Panics before there is anything to wait for.
    PanicAtOnce,
}

/// What was done to all tools of one test together.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    running: AtomicUsize,
    pub(crate) most_running: AtomicUsize,
    pub(crate) dropped_unfinished: AtomicUsize,
    /// RegisteredSource ids in the order they were called.
    pub(crate) calls: Mutex<Vec<String>>,
}

impl Ledger {
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    pub(crate) fn still_running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }
}

/// A tool that does the same thing at every call, after a while.
pub(crate) struct Scripted {
    spec: ToolSpec,
    source: String,
    takes: Duration,
    act: Act,
    turn: AtomicUsize,
    ledger: Arc<Ledger>,
}

/// Counts a call as running until it is finished or dropped.
struct Running<'a> {
    ledger: &'a Ledger,
    finished: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.ledger.running.fetch_sub(1, Ordering::SeqCst);
        if !self.finished {
            self.ledger.dropped_unfinished.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Tool for Scripted {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        assert!(!matches!(self.act, Act::PanicAtOnce), "as scripted");
        Box::pin(async move {
            self.ledger.calls.lock().unwrap().push(self.source.clone());
            let running = self.ledger.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.ledger.most_running.fetch_max(running, Ordering::SeqCst);
            let mut running = Running { ledger: &self.ledger, finished: false };
            tokio::time::sleep(self.takes).await;
            let outcome = match &self.act {
                Act::Answer(text) => Ok(ToolOutput::text(text)),
                Act::Fail(kind) => Err(ToolError::new(*kind, "as scripted")),
                Act::Hang => std::future::pending().await,
                Act::Panic | Act::PanicAtOnce => panic!("as scripted"),
                Act::FailInTurn(kinds) => {
                    let turn = self.turn.fetch_add(1, Ordering::SeqCst).min(kinds.len() - 1);
                    Err(ToolError::new(*kinds.get(turn).unwrap(), "as scripted"))
                }
                Act::Ask => Ok(ToolOutput { input_required: true, ..ToolOutput::default() }),
                Act::Echo => Ok(ToolOutput::text(request.arguments.get())),
            };
            running.finished = true;
            outcome
        })
    }
}

/// One tool of one source, for a test.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) tool: String,
    pub(crate) source: String,
    pub(crate) kind: SourceKind,
    pub(crate) trusted: bool,
    pub(crate) exclusive: bool,
    pub(crate) hints: ToolHints,
    pub(crate) takes: Duration,
    pub(crate) act: Act,
    pub(crate) description: String,
    pub(crate) schema: serde_json::Value,
}

/// A trusted, read-only server's tool that answers with the server's name.
pub(crate) fn part(tool: &str, source: &str) -> Part {
    Part {
        tool: tool.to_owned(),
        source: source.to_owned(),
        kind: if source == "native" { SourceKind::Native } else { SourceKind::Mcp },
        trusted: true,
        exclusive: false,
        hints: ToolHints::READ_ONLY,
        takes: Duration::from_millis(10),
        act: Act::Answer(source.to_owned()),
        description: String::new(),
        schema: serde_json::json!({"type": "object"}),
    }
}

impl Part {
    pub(crate) fn act(mut self, act: Act) -> Self {
        self.act = act;
        self
    }

    pub(crate) fn takes(mut self, milliseconds: u64) -> Self {
        self.takes = Duration::from_millis(milliseconds);
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

    /// Takes only objects with this key.
    pub(crate) fn requires(mut self, key: &str) -> Self {
        self.schema = serde_json::json!({"type": "object", "required": [key]});
        self
    }

    pub(crate) fn untrusted(mut self) -> Self {
        self.trusted = false;
        self
    }

    pub(crate) fn described(mut self, description: &str) -> Self {
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

    pub(crate) fn tool(&self, ledger: &Arc<Ledger>) -> Arc<dyn Tool> {
        Arc::new(Scripted {
            spec: ToolSpec::new(self.tool.as_str(), self.description.as_str())
                .with_hints(self.hints)
                .with_input_schema(self.schema.clone()),
            source: self.source.clone(),
            takes: self.takes,
            act: self.act.clone(),
            turn: AtomicUsize::new(0),
            ledger: Arc::clone(ledger),
        })
    }
}

/// Registers each part as a source of its own, parts of the same source together.
pub(crate) fn register(hub: &ToolHub, parts: &[Part]) -> Arc<Ledger> {
    let ledger = Arc::new(Ledger::default());
    let mut sources: Vec<&str> = Vec::new();
    for part in parts {
        if !sources.contains(&part.source.as_str()) {
            sources.push(&part.source);
            let same: Vec<&Part> = parts.iter().filter(|other| other.source == part.source).collect();
            hub.register(part.info(), same.iter().map(|part| part.tool(&ledger)).collect());
        }
    }
    ledger
}

pub(crate) fn request(tool: &str) -> ToolCallRequest {
    ToolCallRequest::new(tool, serde_json::json!({}))
}
