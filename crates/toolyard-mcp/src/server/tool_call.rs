//! `tools/call`: what a call brought back, in the words of the protocol.

use std::{borrow::Cow, sync::Arc};

use http::StatusCode;
use serde_json::{Value, json};
use toolyard_core::{
    BoxFuture, CallAnswers, ContentBlock, ErrorKind, RawFailure, RawJson, ServiceCall, ToolCallRequest,
    ToolError, ToolOutput,
};

use super::{
    McpServer,
    answer::Outcome,
    asked::Asked,
    line::{Line, MISSING_CAPABILITY},
    session::Seat,
    speaker::{Era, Speaker, fields, text_field},
    state::{Marked, RequestState},
    work::Work,
};
use crate::wire::JsonObject;

/// Where whole results are that were too long to be shown.
const RESULTS: &str = "toolyard://results/";

impl McpServer {
    /// Begins a call.
    pub(super) fn call_tool(self: &Arc<Self>, mut asked: Asked) -> Result<Work, Outcome> {
        if asked.params.name.is_none() {
            return Err(Outcome::error(-32602, "params.name is missing: name the tool to call"));
        }
        let (mut source, mut state) = (None, None);
        if let Some(sealed) = asked.params.state.take().filter(|_| asked.speaker.era() == Era::Modern) {
            match self.open_state(&asked, &sealed) {
                Some(RequestState::Parked { instance, number }) => {
                    return self.resume(&asked, instance, number);
                }
                Some(RequestState::Upstream { source: asking, state: reminder }) => {
                    (source, state) = (Some(asking), reminder);
                }
                None => return Err(foreign_state()),
            }
        }
        let mut line = self.line(&asked);
        let responses = asked.params.responses.take();
        if responses.is_some() || source.is_some() {
            let responses = responses.unwrap_or_else(RawJson::empty_object);
            line.give(&responses);
            line.answers = Some(CallAnswers { responses, state });
        }
        let line = Arc::new(line);
        let name = asked.params.name.take().unwrap_or_default();
        let arguments = asked.params.arguments.take().unwrap_or_else(RawJson::empty_object);
        let mut request = ToolCallRequest::new(name, arguments);
        request.source = source;
        let who = Arc::clone(&asked.speaker.who);
        let call = ServiceCall { request, caller: Some(Arc::clone(&line) as _), who };
        let (server, calling) = (Arc::clone(self), Arc::clone(&line));
        let future: BoxFuture<'static, Outcome> = Box::pin(async move {
            match asked.room.door.tools.call(&call).await {
                Ok(output) if output.asks => server.asks(&asked.seat(), &calling, &call.request, output),
                Ok(output) => of_output(output, &calling.speaker),
                Err(error) => of_error(&error, &calling),
            }
        });
        Ok(Work::new(line, future))
    }

    /// A server's questions, passed on; what it wants to be reminded of is sealed together with who it is.
    fn asks(&self, seat: &Seat<'_>, line: &Line, request: &ToolCallRequest, output: ToolOutput) -> Outcome {
        let Some(raw) = output.raw else {
            return Outcome::error(-32603, "a tool asks something without saying what");
        };
        if let Some(missing) = missing_for(&raw, line) {
            return missing_capability(missing);
        }
        let request = Marked {
            method: "tools/call".to_owned(),
            about: request.tool_name.clone(),
            arguments: Some(request.arguments.clone()),
        };
        let source = output.meta.source.map(|source| source.to_string()).unwrap_or_default();
        let state = text_field(raw.get(), "requestState").map(Cow::into_owned);
        let sealed = RequestState::Upstream { source, state }.seal(&self.config.sessions, seat, &request);
        let Some(sealed) = sealed else { return Outcome::error(-32603, "the state could not be sealed") };
        Outcome::result(with_state(&raw, &sealed))
    }
}

/// A result with another state in it; everything else as it came.
fn with_state(raw: &RawJson, state: &str) -> String {
    let mut result = JsonObject::new();
    // What was read before a fault counts.
    let _ = fields(raw.get(), |key, value| {
        if key != "requestState" {
            result = std::mem::take(&mut result).with_raw(key, &raw.part(value));
        }
        Ok(())
    });
    let text = result.with_text("requestState", state).to_string();
    let mut bytes = text.into_bytes();
    super::answer::one_line(&mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

/// The capability that one of a server's questions needs and the client does not have.
fn missing_for(raw: &RawJson, line: &Line) -> Option<&'static str> {
    let mut missing = None;
    // What was read before a fault counts.
    let _ = fields(raw.get(), |key, value| {
        if key == "inputRequests" {
            fields(value.get(), |_, question| {
                let method = text_field(question.get(), "method").unwrap_or_default();
                let mut params = None;
                fields(question.get(), |key, value| {
                    if key == "params" {
                        params = Some(raw.part(value));
                    }
                    Ok(())
                })?;
                missing = missing.or_else(|| line.speaker.offers.missing(&method, params.as_ref()));
                Ok(())
            })?;
        }
        Ok(())
    });
    missing
}

/// That a request cannot be answered without something that the client does not have.
pub(super) fn missing_capability(missing: &str) -> Outcome {
    let required: Value = serde_json::from_str(missing).unwrap_or_default();
    let message = format!("this needs a capability that the client does not declare: {missing}");
    Outcome::refused(StatusCode::BAD_REQUEST, MISSING_CAPABILITY, message)
        .with_data(&json!({"requiredCapabilities": required}))
}

pub(super) fn foreign_state() -> Outcome {
    let message = "requestState was not given for this request, was changed, or is too old; whether the call had an effect is not known";
    Outcome::error(-32602, message)
}

/// An answer in the words of the protocol.
fn of_output(output: ToolOutput, speaker: &Speaker) -> Outcome {
    let era = speaker.era();
    let is_plain = output.structured.as_ref().is_none_or(|structured| structured.get().starts_with('{'));
    match output.raw {
        // Before 2026-07-28 structured content was always an object.
        Some(raw) if is_plain || era == Era::Modern => return Outcome::raw(raw, era),
        _ => {}
    }
    let mut result = JsonObject::new();
    if era == Era::Modern {
        result = result.with_text("resultType", "complete");
    }
    let mut content = output.content;
    let reference = output.meta.omitted.as_ref().and_then(|omitted| omitted.reference.as_ref());
    if let Some(reference) = reference.filter(|_| speaker.speaks("2025-06-18")) {
        let uri = format!("{RESULTS}{reference}");
        content.push(ContentBlock::ResourceLink { uri, name: format!("the whole result {reference}") });
    }
    result = result.with_value("content", &json!(content));
    if let Some(structured) = &output.structured {
        result = match is_plain {
            true => result.with_raw("structuredContent", structured),
            false => {
                result.with_object("structuredContent", &JsonObject::new().with_raw("result", structured))
            }
        };
    }
    Outcome::result(result.to_string())
}

/// An error of a server. What only the modern era knows has a status of its own there.
fn of_raw_error(raw: &RawJson, era: Era) -> Outcome {
    let mut code = None;
    // What was read before a fault counts.
    let _ = fields(raw.get(), |key, value| {
        if key == "code" {
            code = value.number::<i64>();
        }
        Ok(())
    });
    let is_missing = era == Era::Modern && code == Some(MISSING_CAPABILITY);
    let status = if is_missing { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    Outcome::RawError { raw: raw.clone(), status }
}

/// A failure in the words of the protocol.
fn of_error(error: &ToolError, line: &Line) -> Outcome {
    let speaker = &line.speaker;
    if let Some(missing) = line.missing().filter(|_| speaker.era() == Era::Modern) {
        return missing_capability(missing);
    }
    match error.raw() {
        Some(RawFailure::Result(raw)) => return Outcome::raw(raw.clone(), speaker.era()),
        Some(RawFailure::Error(raw)) => return of_raw_error(raw, speaker.era()),
        None => {}
    }
    let hint = error.hint();
    match error.kind() {
        ErrorKind::UnknownTool | ErrorKind::UnknownSource => {
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            Outcome::error(-32602, format!("{error}{hint}"))
        }
        ErrorKind::InvalidArguments if !speaker.speaks("2025-11-25") => {
            Outcome::error(-32602, error.to_string())
        }
        _ => {
            let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            let text = json!([{"type": "text", "text": format!("{error}{hint}")}]);
            let kind = if speaker.era() == Era::Modern { r#""resultType":"complete","# } else { "" };
            Outcome::result(format!(r#"{{{kind}"content":{text},"isError":true}}"#))
        }
    }
}
