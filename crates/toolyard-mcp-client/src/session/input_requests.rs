//! Input requests of a server: finds who can answer them and passes them on.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use toolyard_core::{CallInputKind, CallInputRequest, Caller, CallerIdentity, ExtendableDeadline, RawJson};
use toolyard_mcp::{
    InputRequired, JsonObject, RpcError, WireError,
    error_code::{INTERNAL_ERROR, METHOD_NOT_FOUND},
    input_method::{input_error_code, input_kind, input_method},
    raw_field,
};

use crate::{
    session::{client_capabilities::check_supported, error::RequestError, inner::SessionInner},
    transport::requests::in_flight::{InFlightRequest, Recipient},
};

/// The `_meta` field in which another Toolyard, as a gateway in front of the server, names an input request.
const KEY_FIELD: &str = "toolyard/key";
const MAX_KEY_BYTES: usize = 256;
/// The delay before an unsupported request is declined, so that supported requests that the server
/// sends at the same time reach the client before the server gives up.
const DECLINE_DELAY: Duration = Duration::from_millis(200);
const FINISHED: &str = "the call that this request belongs to is finished";

/// An input request inside an `input_required` result.
#[derive(serde::Deserialize)]
struct EmbeddedRequest {
    method: String,
    #[serde(default)]
    params: Option<RawJson>,
}

impl SessionInner {
    /// Answers an input request of a legacy server, which came on the stream of a request or on a shared stream. Returns the
    /// answer and who gave it.
    pub(super) async fn answer_input_request(
        &self,
        method: String,
        params: Option<RawJson>,
        related_request: Option<u64>,
    ) -> (Result<RawJson, RpcError>, Option<Arc<CallerIdentity>>) {
        let params = params.map(|params| self.secrets.redact_params(&params));
        if related_request.is_none() {
            self.requests.in_flight.note_unrelated_request();
        }
        let unanswerable = match self.requests.in_flight.recipient(related_request) {
            Recipient::Caller(caller, call) => {
                let answer = self.ask_caller(&*caller, &call, method, params).await;
                return (answer, caller.identity().cloned());
            }
            Recipient::NoCaller => return (answer_without_caller(&method), None),
            Recipient::Finished => FINISHED,
            Recipient::Ambiguous => {
                "several clients use this server at once, and the request does not say which of them it is for; \
                 with `isolation = \"session\"` in its settings, each session has an instance of its own"
            }
            Recipient::MaybeAbandoned => {
                "another client cancelled a call of this server a moment ago, \
                 and the request does not say which call it is for; call again in a minute"
            }
        };
        (Err(internal_error(unanswerable)), None)
    }

    /// Passes an input request on to the caller of a request in flight.
    async fn ask_caller(
        &self,
        caller: &dyn Caller,
        call: &Arc<InFlightRequest>,
        method: String,
        params: Option<RawJson>,
    ) -> Result<RawJson, RpcError> {
        // Before the check, so that no end is missed.
        let finished = call.finished();
        if call.is_finished() {
            return Err(internal_error(FINISHED));
        }
        let kind = input_kind(&method).ok_or_else(|| unsupported_method(&method))?;
        let key = request_key(&method, params.as_ref());
        let request = CallInputRequest { key, source: self.server.clone(), kind, params };
        if let Err(unsupported) = check_caller(caller, &request) {
            tokio::time::sleep(DECLINE_DELAY).await;
            return Err(unsupported);
        }
        let _pause = call.pause_for_input();
        tokio::select! {
            answers = caller.request_input(std::slice::from_ref(&request)) => {
                let answers = answers.map_err(|error| {
                    RpcError { code: input_error_code(&error), message: error.to_string(), data: None }
                })?;
                answers.into_iter().next().ok_or_else(|| internal_error("the client sent no answer"))
            }
            () = finished => Err(internal_error(FINISHED)),
        }
    }

    /// Answers the input requests of an `input_required` result. Returns the fields to repeat the request with; none if
    /// the caller accepts the result as it is.
    pub(super) async fn collect_input(
        &self,
        input: &InputRequired,
        caller: Option<&Arc<dyn Caller>>,
        deadline: Option<&Arc<ExtendableDeadline>>,
    ) -> Result<Option<JsonObject>, RequestError> {
        let requests = input.requests.iter().map(|(key, request)| self.parse_request(key, request));
        let requests = requests.collect::<Result<Vec<_>, _>>()?;
        let answers = match caller {
            None => {
                let answers =
                    requests.iter().map(|request| answer_without_caller(input_method(request.kind)));
                let answers: Result<Vec<RawJson>, RpcError> = answers.collect();
                answers.map_err(|error| RequestError::InputUnavailable(error.message))?
            }
            Some(caller) => {
                for request in &requests {
                    check_caller(&**caller, request)
                        .map_err(|error| RequestError::InputUnavailable(error.message))?;
                }
                if caller.accepts_input_required() {
                    return Ok(None);
                }
                let _pause = deadline.map(|deadline| DeadlinePause::new(deadline));
                let answers = caller.request_input(&requests).await;
                answers.map_err(|error| RequestError::InputUnavailable(error.to_string()))?
            }
        };
        let mut responses = JsonObject::new();
        for (request, answer) in requests.iter().zip(&answers) {
            responses = responses.with_raw(&request.key, answer);
        }
        let fields = JsonObject::new().with_object("inputResponses", &responses);
        Ok(Some(match &input.state {
            Some(state) => fields.with_text("requestState", state),
            None => fields,
        }))
    }

    fn parse_request(&self, key: &str, request: &RawJson) -> Result<CallInputRequest, RequestError> {
        let EmbeddedRequest { method, params } =
            request.read().map_err(|error| WireError::InvalidResult {
                method: "tools/call",
                problem: format!("invalid input request `{key}`: {error}"),
            })?;
        let kind = input_kind(&method)
            .ok_or_else(|| RequestError::InputUnavailable(unsupported_method(&method).message))?;
        Ok(CallInputRequest { key: key.to_owned(), source: self.server.clone(), kind, params })
    }
}

/// The name of an input request of a legacy server: the method, unless a gateway names it.
fn request_key(method: &str, params: Option<&RawJson>) -> String {
    let meta = params.and_then(|params| raw_field(params, "_meta"));
    let key = meta.and_then(|meta| raw_field(&meta, KEY_FIELD)?.read::<String>().ok());
    key.filter(|key| !key.is_empty() && key.len() <= MAX_KEY_BYTES).unwrap_or_else(|| method.to_owned())
}

/// Pauses the deadline of a call while it waits for input.
struct DeadlinePause<'a>(&'a ExtendableDeadline);

impl<'a> DeadlinePause<'a> {
    fn new(deadline: &'a ExtendableDeadline) -> Self {
        deadline.pause();
        Self(deadline)
    }
}

impl Drop for DeadlinePause<'_> {
    fn drop(&mut self) {
        self.0.resume(tokio::time::Instant::now().into_std());
    }
}

/// Checks that the caller supports a request; otherwise the caller is told, too.
fn check_caller(caller: &dyn Caller, request: &CallInputRequest) -> Result<(), RpcError> {
    check_supported(&caller.capabilities(), request.kind, request.params.as_ref())
        .inspect_err(|_| caller.note_unsupported(request))
}

/// The answer to an input request that belongs to no caller. Many servers ask for roots as soon as the session begins: there are
/// none then, which is no error.
fn answer_without_caller(method: &str) -> Result<RawJson, RpcError> {
    if method == input_method(CallInputKind::Roots) {
        return Ok(json!({"roots": []}).into());
    }
    let message = format!("no client is there to answer {method}");
    Err(RpcError { code: METHOD_NOT_FOUND, message, data: None })
}

pub(super) fn unsupported_method(method: &str) -> RpcError {
    let message = format!("this client does not support {method}");
    RpcError { code: METHOD_NOT_FOUND, message, data: None }
}

fn internal_error(message: &str) -> RpcError {
    RpcError { code: INTERNAL_ERROR, message: message.to_owned(), data: None }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn without_a_caller_there_are_no_roots_and_no_answers() {
        assert_eq!(answer_without_caller("roots/list").unwrap().to_value(), json!({"roots": []}));
        for method in ["elicitation/create", "sampling/createMessage"] {
            let error = answer_without_caller(method).unwrap_err();
            assert!(error.message.ends_with(method), "{error:?}");
        }
    }

    #[test]
    fn a_gateway_can_name_an_input_request() {
        let key = |params: Value| request_key("elicitation/create", Some(&params.into()));
        assert_eq!(key(json!({"_meta": {"toolyard/key": "user_name"}})), "user_name");
        for unnamed in [json!({}), json!({"_meta": 7}), json!({"_meta": {"toolyard/key": "x".repeat(257)}})] {
            assert_eq!(key(unnamed), "elicitation/create");
        }
    }
}
