//! Requests on behalf of a caller, repeated until the server needs no more input.

use std::{sync::Arc, time::Duration};

use toolyard_core::{Caller, ExtendableDeadline, RawJson, RevisionFamily, telemetry::SpanContext};
use toolyard_mcp::{CallResult, InputRequired, JsonObject, ResultKind, WireError};

use crate::session::{error::RequestError, handle::Session, inner::OutgoingRequest, operation};

/// How often a server may ask for input during one call.
const MAX_INPUT_ROUNDS: usize = 10;

/// A call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// The name of the tool on the server.
    pub name: &'a str,
    /// The arguments as they were given.
    pub arguments: &'a RawJson,
    /// Headers that repeat arguments, for HTTP transports.
    pub headers: &'a [(String, String)],
    /// How long the server may send neither response nor progress.
    pub idle_timeout: Option<Duration>,
    /// Takes progress and log messages, and answers input requests.
    pub caller: Option<&'a Arc<dyn Caller>>,
    /// A deadline that progress extends.
    pub deadline: Option<&'a Arc<ExtendableDeadline>>,
    /// The span that causes the call, in place of the span of `caller`.
    pub span: Option<SpanContext>,
}

impl<'a> ToolCall<'a> {
    /// A call without caller and timeouts.
    pub fn new(name: &'a str, arguments: &'a RawJson) -> Self {
        Self { name, arguments, headers: &[], idle_timeout: None, caller: None, deadline: None, span: None }
    }

    /// Adds a caller.
    #[must_use]
    pub fn with_caller(mut self, caller: &'a Arc<dyn Caller>) -> Self {
        self.caller = Some(caller);
        self
    }
}

#[derive(Clone, Copy)]
struct CallerRequest<'a> {
    method: &'static str,
    subject: Option<&'a str>,
    call: ToolCall<'a>,
}

/// A result as it was understood.
struct Response<T> {
    result: T,
    /// The input that the server needs before it completes the call.
    input: Option<InputRequired>,
    /// Whether the tool reported an error.
    is_error: bool,
}

impl Session {
    /// Calls a tool. Input requests are answered by the caller, unless it accepts them as the result.
    pub async fn call_tool(&self, call: ToolCall<'_>) -> Result<CallResult, RequestError> {
        let request = CallerRequest { method: "tools/call", subject: Some(call.name), call };
        let fields = || JsonObject::new().with_text("name", call.name).with_raw("arguments", call.arguments);
        let read = |raw: &RawJson| {
            let result = CallResult::read(raw);
            let input = match &result.kind {
                ResultKind::InputRequired(input) => Some(input.clone()),
                _ => None,
            };
            let is_error = result.is_error;
            Response { result, input, is_error }
        };
        self.call_until_complete(request, fields, read).await
    }

    /// Makes any other request on behalf of a caller, such as `prompts/get`.
    pub async fn request_for(
        &self,
        method: &'static str,
        subject: Option<&str>,
        fields: &JsonObject,
        idle_timeout: Option<Duration>,
        caller: Option<&Arc<dyn Caller>>,
    ) -> Result<RawJson, RequestError> {
        let arguments = RawJson::empty_object();
        let call =
            ToolCall { idle_timeout, caller, ..ToolCall::new(subject.unwrap_or_default(), &arguments) };
        let read = |raw: &RawJson| Response {
            result: raw.clone(),
            input: InputRequired::read(raw),
            is_error: false,
        };
        self.call_until_complete(CallerRequest { method, subject, call }, || fields.clone(), read).await
    }

    /// Repeats a request with answers until its result, as `read` understands it, requires no more input or the caller
    /// accepts that result.
    async fn call_until_complete<T>(
        &self,
        request: CallerRequest<'_>,
        fields: impl Fn() -> JsonObject,
        read: impl Fn(&RawJson) -> Response<T>,
    ) -> Result<T, RequestError> {
        let _count = self.count_call();
        let CallerRequest { method, subject, call } = request;
        let mut answers = self.earlier_answers(call.caller)?;
        for _ in 0..MAX_INPUT_ROUNDS {
            let fields = match &answers {
                Some(answers) => fields().merged_with(answers),
                None => fields(),
            };
            let outgoing = OutgoingRequest {
                subject,
                headers: call.headers,
                idle_timeout: call.idle_timeout,
                span: call.span,
                ..OutgoingRequest::new(method, fields).on_behalf_of(call.caller, call.deadline)
            };
            let (response, operation) = self.inner.request_operation(outgoing).await;
            let is_continued = answers.is_some();
            let raw =
                response.map_err(|error| if is_continued { error.into_interrupted() } else { error })?;
            // Every result is an object. Clients would get anything else as it is.
            if !raw.get().trim_start().starts_with('{') {
                let problem = "not a JSON object".to_owned();
                let error = RequestError::Malformed(WireError::InvalidResult { method, problem });
                operation::end_with_error(operation, &error);
                return Err(error);
            }
            let Response { result, input, is_error } = read(&raw);
            operation::end_with_result(operation, is_error);
            let Some(input) = input else { return Ok(result) };
            match self.inner.collect_input(&input, call.caller, call.deadline).await? {
                Some(new_answers) => answers = Some(new_answers),
                None => return Ok(result),
            }
        }
        Err(RequestError::TooManyInputRounds(MAX_INPUT_ROUNDS))
    }

    /// The caller's answers to the input requests of an earlier call that this one continues.
    fn earlier_answers(&self, caller: Option<&Arc<dyn Caller>>) -> Result<Option<JsonObject>, RequestError> {
        let Some(answers) = caller.and_then(|caller| caller.input_responses()) else { return Ok(None) };
        match (self.revision_family(), &answers.state) {
            (RevisionFamily::Modern, _) => {}
            (RevisionFamily::Legacy, Some(_)) => return Err(RequestError::CannotResume),
            // A legacy server starts the call anew and asks again; the caller then answers with what it has already.
            (RevisionFamily::Legacy, None) => return Ok(None),
        }
        let fields = JsonObject::new().with_raw("inputResponses", &answers.responses);
        Ok(Some(match &answers.state {
            Some(state) => fields.with_text("requestState", state),
            None => fields,
        }))
    }
}
