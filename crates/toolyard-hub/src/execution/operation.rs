//! Reports calls to telemetry.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, PoisonError},
};

use toolyard_core::{
    ErrorKind, ToolCallRequest, ToolError, ToolOutput,
    telemetry::{CallContent, OperationKind, RunningOperation, SpanContext, Telemetry},
};

use crate::execution::options::CallOptions;

/// The `error.type` of a tool that reports an error.
const TOOL_ERROR: &str = "tool_error";
/// Longer names are truncated: clients choose them.
const MAX_NAME_BYTES: usize = 256;

/// The operation of a call: started, and ended at most once.
#[derive(Debug)]
pub(crate) struct CallOperation {
    running: Mutex<Option<RunningOperation>>,
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
        let name = &request.tool_name;
        let tool = name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default().into();
        let kind = OperationKind::ToolCall { tool, source: None, attempts: 0, content: None };
        let running = RunningOperation::start(telemetry, parent, kind);
        let (span, captures_content) = (running.context(), telemetry.captures_content());
        Self { running: Mutex::new(Some(running)), captures_content, span }
    }

    fn take(&self) -> Option<RunningOperation> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn end(
        &self,
        request: &ToolCallRequest,
        called: u32,
        outcome: &Result<ToolOutput, ToolError>,
    ) {
        let Some(mut running) = self.take() else { return };
        if let Some(OperationKind::ToolCall { source, attempts, content, .. }) = running.kind_mut() {
            *source = match outcome {
                Ok(output) => output.meta.source.clone(),
                Err(error) => error.source_id().cloned(),
            };
            *attempts = called;
            if self.captures_content {
                let result = outcome.as_ref().map_or_else(ToString::to_string, ToolOutput::to_text);
                *content = Some(Box::new(CallContent { arguments: request.arguments.clone(), result }));
            }
        }
        running.end(outcome.as_ref().err().map(|error| Cow::Borrowed(error_type(error.kind()))));
    }

    /// Ends the operation of a call that nobody waits for any more.
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

fn error_type(kind: ErrorKind) -> &'static str {
    if kind == ErrorKind::Failed { TOOL_ERROR } else { kind.as_str() }
}
