//! Reports calls to telemetry.

use std::{borrow::Cow, sync::Arc};

use parking_lot::Mutex;
use toolyard_core::{
    ContentBlock, ErrorKind, SourceId, ToolCallRequest, ToolError, ToolOutput,
    telemetry::{CallContent, OperationKind, RunningOperation, SpanContext, Telemetry},
};

use crate::{
    execution::{attempt::ToolAndSource, options::CallOptions},
    registry::candidate::ToolCandidate,
};

/// The `error.type` of a tool that reports an error.
const TOOL_ERROR: &str = "tool_error";
/// Longer names and ids are truncated: clients choose them.
const MAX_NAME_BYTES: usize = 256;

/// The operation of a call: started, and ended at most once.
#[derive(Debug)]
pub(crate) struct CallOperation {
    running: Mutex<Option<RunningOperation>>,
    /// Tools that were called before the one in `running`; empty for most calls.
    called_before: Mutex<Vec<ToolAndSource>>,
    /// Only if the span is sampled: the content of other spans is never exported.
    captures_content: bool,
    /// The parent of what the tool calls.
    pub(crate) span: Option<SpanContext>,
}

impl CallOperation {
    pub(crate) fn start(
        telemetry: &Arc<dyn Telemetry>,
        request: &ToolCallRequest,
        options: &CallOptions,
    ) -> Self {
        let caller_span = || options.caller.as_ref().filter(|_| telemetry.records_spans())?.span();
        let parent = options.span.or_else(caller_span);
        let tool = bounded(&request.tool_name).into();
        let kind = OperationKind::ToolCall { tool, source: None, attempts: 0, call: None, content: None };
        let mut running = RunningOperation::start(telemetry, parent, kind);
        let span = running.context();
        let is_sampled = span.is_some_and(|span| span.is_sampled);
        if is_sampled && let Some(OperationKind::ToolCall { call, .. }) = running.kind_mut() {
            *call = Some(bounded(&request.id).to_owned());
        }
        let captures_content = is_sampled && telemetry.captures_content();
        Self { running: Mutex::new(Some(running)), called_before: Mutex::default(), captures_content, span }
    }

    /// Remembers the tool that is called now, by its own name: the request may call it `add@ledger`, and it may be cancelled
    /// before it answers.
    pub(crate) fn set_called(&self, candidate: &ToolCandidate) {
        let mut running = self.running.lock();
        let Some(OperationKind::ToolCall { tool, source, .. }) =
            running.as_mut().and_then(RunningOperation::kind_mut)
        else {
            return;
        };
        if source.as_ref() == Some(candidate.source_id()) && **tool == *candidate.name {
            return;
        }
        let tool = std::mem::replace(tool, Arc::clone(&candidate.name));
        if let Some(source) = source.replace(candidate.source_id().clone()) {
            self.called_before.lock().push((tool, source));
        }
    }

    /// The name of the tool of this source that was called, unless it was called last.
    fn tool_called_before(&self, source: &SourceId) -> Option<Arc<str>> {
        let called_before = self.called_before.lock();
        called_before.iter().find(|(_, called)| called == source).map(|(tool, _)| Arc::clone(tool))
    }

    fn take(&self) -> Option<RunningOperation> {
        self.running.lock().take()
    }

    pub(crate) fn end(
        &self,
        request: &ToolCallRequest,
        called: u32,
        outcome: &Result<ToolOutput, ToolError>,
    ) {
        let Some(mut running) = self.take() else { return };
        if let Some(OperationKind::ToolCall { tool, source, attempts, content, .. }) = running.kind_mut() {
            let answered = match outcome {
                Ok(output) => output.meta.source.as_ref(),
                Err(error) => error.source_id(),
            };
            // Several tools may have been called, or the call was refused before its tool was called.
            if let Some(answered) = answered.filter(|answered| source.as_ref() != Some(*answered)) {
                let refused = || outcome.as_ref().err().and_then(ToolError::tool).map(Arc::from);
                if let Some(name) = self.tool_called_before(answered).or_else(refused) {
                    *tool = name;
                }
                *source = Some(answered.clone());
            }
            *attempts = called;
            if self.captures_content {
                *content = Some(Box::new(call_content(request, outcome)));
            }
        }
        running.end(outcome.as_ref().err().map(|error| Cow::Borrowed(error_type(error.kind()))));
    }

    /// Ends the operation of a call after its caller has gone.
    pub(crate) fn cancel(&self, called: u32) {
        if let Some(mut running) = self.take()
            && let Some(OperationKind::ToolCall { attempts, .. }) = running.kind_mut()
        {
            *attempts = called;
        }
    }

    /// Forgets a call that was not executed because its outcome is recorded.
    pub(crate) fn discard(&self) {
        if let Some(running) = self.take() {
            running.discard();
        }
    }
}

fn bounded(name: &str) -> &str {
    name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default()
}

fn call_content(request: &ToolCallRequest, outcome: &Result<ToolOutput, ToolError>) -> CallContent {
    let arguments = request.arguments.get();
    match outcome {
        Ok(output) => match output.content.as_slice() {
            // Not copied as a whole.
            [ContentBlock::Text { text }] => CallContent::new(arguments, text),
            _ => CallContent::new(arguments, &output.to_text()),
        },
        Err(error) => CallContent::new(arguments, &error.to_string()),
    }
}

fn error_type(kind: ErrorKind) -> &'static str {
    if kind == ErrorKind::Failed { TOOL_ERROR } else { kind.as_str() }
}
