//! One call made on behalf of somebody: requests of it until the server has nothing more to ask.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use toolyard_core::{Caller, Patience, ProtocolEra, RawJson};

use super::{RequestError, Session, session::Ask};
use crate::wire::{CallResult, InputRequired, JsonObject, ResultKind};

/// How often a server may ask back during one call.
const ROUNDS: usize = 10;

/// One call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// The tool's name on the server.
    pub name: &'a str,
    /// Its arguments as they came.
    pub arguments: &'a RawJson,
    /// Arguments that HTTP transports repeat in headers.
    pub headers: &'a [(String, String)],
    /// How long the server may be silent; progress starts this anew.
    pub silence: Option<Duration>,
    /// Who can be told and asked while it goes on.
    pub caller: Option<&'a Arc<dyn Caller>>,
    /// Where signs of life are told besides.
    pub patience: Option<&'a Arc<Patience>>,
}

impl<'a> ToolCall<'a> {
    /// A call of nobody in particular, without limits.
    pub fn new(name: &'a str, arguments: &'a RawJson) -> Self {
        Self { name, arguments, headers: &[], silence: None, caller: None, patience: None }
    }

    /// The same call on behalf of somebody who can be told and asked things.
    #[must_use]
    pub fn by(mut self, caller: &'a Arc<dyn Caller>) -> Self {
        self.caller = Some(caller);
        self
    }
}

/// A request that is made for somebody.
#[derive(Clone, Copy)]
struct OnBehalf<'a> {
    method: &'static str,
    /// The name it is about.
    about: Option<&'a str>,
    call: ToolCall<'a>,
}

impl Session {
    /// Calls a tool. Questions the server asks back are answered on the way, unless the caller takes them as the answer and
    /// calls again.
    pub async fn call_tool(&self, call: ToolCall<'_>) -> Result<CallResult, RequestError> {
        let request = OnBehalf { method: "tools/call", about: Some(call.name), call };
        let fields = || JsonObject::new().with_text("name", call.name).with_raw("arguments", call.arguments);
        let read = |raw: &RawJson| {
            let result = CallResult::read(raw);
            let input = match &result.kind {
                ResultKind::InputRequired(input) => Some(input.clone()),
                _ => None,
            };
            (result, input)
        };
        self.converse(request, fields, read).await
    }

    /// Makes any other request on behalf of somebody, such as `prompts/get`. Its questions are answered like those of a tool.
    pub async fn request_for(
        &self,
        method: &'static str,
        about: Option<&str>,
        fields: &JsonObject,
        silence: Option<Duration>,
        caller: Option<&Arc<dyn Caller>>,
    ) -> Result<RawJson, RequestError> {
        let nothing = RawJson::empty_object();
        let call = ToolCall { silence, caller, ..ToolCall::new(about.unwrap_or_default(), &nothing) };
        let read = |raw: &RawJson| (raw.clone(), InputRequired::of(raw));
        self.converse(OnBehalf { method, about, call }, || fields.clone(), read).await
    }

    /// Makes a request again and again until `read` finds no more questions in its result, or the caller takes them.
    async fn converse<T>(
        &self,
        request: OnBehalf<'_>,
        fields: impl Fn() -> JsonObject,
        read: impl Fn(&RawJson) -> (T, Option<InputRequired>),
    ) -> Result<T, RequestError> {
        let _under_way = Counted::new(&self.calls);
        let call = request.call;
        let mut answers = self.earlier_answers(call.caller)?;
        for _ in 0..ROUNDS {
            let mut ask = Ask::new(request.method).silence(call.silence).on_behalf(call);
            (ask.about, ask.headers) = (request.about, call.headers);
            ask.fields = match &answers {
                Some(answers) => fields().and(answers),
                None => fields(),
            };
            let asked = self.parts.request(ask).await;
            let raw = if answers.is_some() { asked.map_err(RequestError::in_mid_call)? } else { asked? };
            let (result, input) = read(&raw);
            let Some(input) = input else { return Ok(result) };
            match self.parts.questions(&input, call.caller, call.patience).await? {
                Some(more) => answers = Some(more),
                None => return Ok(result),
            }
        }
        Err(RequestError::AsksWithoutEnd(ROUNDS))
    }

    /// What the caller answered to the questions of an earlier call, for the request that continues it.
    fn earlier_answers(&self, caller: Option<&Arc<dyn Caller>>) -> Result<Option<JsonObject>, RequestError> {
        let Some(answers) = caller.and_then(|caller| caller.answers()) else { return Ok(None) };
        match (self.era(), &answers.state) {
            (ProtocolEra::Modern, _) => {}
            (ProtocolEra::Legacy, Some(_)) => return Err(RequestError::CannotGoOn),
            // Nothing is continued: these are answers that came before their questions, and the caller has them.
            (ProtocolEra::Legacy, None) => return Ok(None),
        }
        let again = JsonObject::new().with_raw("inputResponses", &answers.responses);
        Ok(Some(match &answers.state {
            Some(state) => again.with_text("requestState", state),
            None => again,
        }))
    }
}

/// Counts something for as long as it lasts.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
