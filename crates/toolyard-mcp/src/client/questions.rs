//! What a server asks back during a call: who is asked, and whether they can be.

use std::sync::Arc;

use toolyard_core::{CallQuestion, Caller, Patience, RawJson};

use super::{InputRequest, RequestError, beats::Addressee, input::METHOD_NOT_FOUND, session::Parts};
use crate::wire::{Edit, InputRequired, JsonObject, RpcError, WireError, edited, field_of};

/// JSON-RPC's codes for parameters that cannot be, and for trouble on our side.
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
/// What can be asked of a client at all; nothing else of its capabilities is the business of a server behind us.
const ASKABLE: [&str; 3] = ["elicitation", "sampling", "roots"];

/// Where a hub in front of the server says what a question is called.
const QUESTION_KEY: &str = "toolyard/key";
/// A server hears this long after its question that nobody can answer it.
const BREATH: std::time::Duration = std::time::Duration::from_millis(200);
/// A longer name is none.
const MAX_KEY: usize = 256;

/// A question inside an `input_required` result.
#[derive(serde::Deserialize)]
struct Question {
    method: String,
    #[serde(default)]
    params: Option<RawJson>,
}

impl Parts {
    /// Answers one question of a server of the legacy era, which came on the stream of a request or on the one of all.
    pub(super) async fn question(
        &self,
        method: String,
        params: Option<RawJson>,
        related: Option<u64>,
    ) -> Result<RawJson, RpcError> {
        let (caller, call) = match self.exchange.beats.addressee(related) {
            Addressee::Caller(caller, call) => (caller, call),
            Addressee::House => {
                let asked = InputRequest { server: &self.server, method: &method, params: params.as_ref() };
                return self.input.answer(asked).await;
            }
            Addressee::Over => return Err(refusal(INTERNAL, "the call it belongs to is over")),
            Addressee::Unclear => {
                let why = "several clients use this server at once, and nothing tells which of them is asked";
                return Err(refusal(INTERNAL, why));
            }
        };
        let over = call.over();
        if call.is_over() {
            return Err(refusal(INTERNAL, "the call it belongs to is over"));
        }
        let key = key_of(&method, params.as_ref());
        let question = CallQuestion { key, source: self.server.clone(), method, params };
        if let Err(refused) = check(&*caller, &question) {
            // What the server asks in the same breath, and can be answered, reaches the client before the server gives up.
            tokio::time::sleep(BREATH).await;
            return Err(refused);
        }
        let _asking = call.asking();
        tokio::select! {
            answers = caller.ask(std::slice::from_ref(&question)) => {
                let answers = answers.map_err(|error| refusal(error.code, &error.message))?;
                answers.into_iter().next().ok_or_else(|| refusal(INTERNAL, "nobody answered"))
            }
            () = over => Err(refusal(INTERNAL, "the call it belongs to is over")),
        }
    }

    /// What comes of the questions of one `input_required` result: what the request is made again with, or nothing where
    /// the caller takes the questions as they are and calls again.
    pub(super) async fn questions(
        &self,
        input: &InputRequired,
        caller: Option<&Arc<dyn Caller>>,
        patience: Option<&Arc<Patience>>,
    ) -> Result<Option<JsonObject>, RequestError> {
        let questions = input.requests.iter().map(|(key, request)| self.read(key, request));
        let questions = questions.collect::<Result<Vec<_>, _>>()?;
        let answers = match caller {
            None => self.answers_of_the_house(&questions).await?,
            Some(caller) => {
                for question in &questions {
                    check(&**caller, question).map_err(|error| RequestError::NobodyToAsk(error.message))?;
                }
                if caller.calls_again() {
                    return Ok(None);
                }
                let _asking = patience.map(|patience| Waiting::new(patience));
                let answers = caller.ask(&questions).await;
                answers.map_err(|error| RequestError::NobodyToAsk(error.message))?
            }
        };
        let mut responses = JsonObject::new();
        for (question, answer) in questions.iter().zip(&answers) {
            responses = responses.with_raw(&question.key, answer);
        }
        let again = JsonObject::new().with_object("inputResponses", &responses);
        Ok(Some(match &input.state {
            Some(state) => again.with_text("requestState", state),
            None => again,
        }))
    }

    fn read(&self, key: &str, request: &RawJson) -> Result<CallQuestion, RequestError> {
        let Question { method, params } = request.read().map_err(|error| WireError::NotAnAnswer {
            method: "tools/call",
            problem: format!("its question `{key}` cannot be read: {error}"),
        })?;
        Ok(CallQuestion { key: key.to_owned(), source: self.server.clone(), method, params })
    }

    async fn answers_of_the_house(&self, questions: &[CallQuestion]) -> Result<Vec<RawJson>, RequestError> {
        let mut answers = Vec::with_capacity(questions.len());
        for CallQuestion { method, params, .. } in questions {
            let asked = InputRequest { server: &self.server, method, params: params.as_ref() };
            let answer = self.input.answer(asked).await;
            answers.push(answer.map_err(|error| RequestError::NobodyToAsk(error.message))?);
        }
        Ok(answers)
    }
}

/// What a question of the legacy era is called: nothing, unless whoever passed it on says so.
fn key_of(method: &str, params: Option<&RawJson>) -> String {
    let meta = params.and_then(|params| field_of(params, "_meta"));
    let key = meta.and_then(|meta| field_of(&meta, QUESTION_KEY)?.read::<String>().ok());
    key.filter(|key| !key.is_empty() && key.len() <= MAX_KEY).unwrap_or_else(|| method.to_owned())
}

/// Stops the clock of a call while somebody is asked.
struct Waiting<'a>(&'a Patience);

impl<'a> Waiting<'a> {
    fn new(patience: &'a Patience) -> Self {
        patience.asked();
        Self(patience)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.answered(tokio::time::Instant::now().into_std());
    }
}

/// That a caller can be asked something; else it hears that it could not, and so does the server.
fn check(caller: &dyn Caller, question: &CallQuestion) -> Result<(), RpcError> {
    let offered = offers(&caller.capabilities(), &question.method, question.params.as_ref());
    offered.inspect_err(|_| caller.lacks(question))
}

fn refusal(code: i64, message: &str) -> RpcError {
    RpcError { code, message: message.to_owned(), data: None }
}

/// Whether a client with these capabilities can be asked this; else what to tell the server.
fn offers(capabilities: &RawJson, method: &str, params: Option<&RawJson>) -> Result<(), RpcError> {
    let lacking =
        |what: &str, code| Err(refusal(code, &format!("the client of this call does not offer {what}")));
    let kind = match method {
        "elicitation/create" => "elicitation",
        "sampling/createMessage" => "sampling",
        "roots/list" => "roots",
        _ => return lacking(method, METHOD_NOT_FOUND),
    };
    let Some(offered) = present(capabilities, kind) else { return lacking(method, METHOD_NOT_FOUND) };
    let asks = |key| params.and_then(|params| present(params, key));
    match kind {
        "elicitation" => {
            let url = asks("mode").is_some_and(|mode| mode.get() == "\"url\"");
            // Before there were two modes, whoever said nothing more meant forms.
            let form = present(&offered, "form").is_some() || present(&offered, "url").is_none();
            match (url, form) {
                (true, _) if present(&offered, "url").is_none() => {
                    lacking("questions by way of an address", INVALID_PARAMS)
                }
                (false, false) => lacking("questions by way of a form", INVALID_PARAMS),
                _ => Ok(()),
            }
        }
        "sampling" if asks("tools").is_some() && present(&offered, "tools").is_none() => {
            lacking("sampling with tools", INVALID_PARAMS)
        }
        _ => Ok(()),
    }
}

/// What a server may ask of a client, out of all its capabilities.
pub(super) fn askable(capabilities: &RawJson) -> JsonObject {
    // Many clients offer nothing.
    if capabilities.get() == "{}" {
        return JsonObject::new();
    }
    edited(capabilities, |key, offered| {
        if ASKABLE.contains(&key) && says_something(offered) { Edit::Keep } else { Edit::Leave }
    })
}

/// The value of a field that says something.
fn present(object: &RawJson, key: &str) -> Option<RawJson> {
    field_of(object, key).filter(says_something)
}

fn says_something(value: &RawJson) -> bool {
    !matches!(value.get(), "null" | "false")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn may(capabilities: Value, method: &str, params: Value) -> Result<(), i64> {
        offers(&capabilities.into(), method, Some(&params.into())).map_err(|error| error.code)
    }

    #[test]
    fn only_what_a_client_offers_is_asked_of_it() {
        let (form, url) = (json!({"message": "?"}), json!({"mode": "url", "url": "https://example.org"}));
        let elicit = "elicitation/create";
        assert_eq!(may(json!({"elicitation": {}}), elicit, form.clone()), Ok(()));
        assert_eq!(may(json!({"elicitation": {"form": {}}}), elicit, form.clone()), Ok(()));
        assert_eq!(may(json!({"elicitation": {"url": {}}}), elicit, form.clone()), Err(INVALID_PARAMS));
        assert_eq!(may(json!({"elicitation": {"url": {}}}), elicit, url.clone()), Ok(()));
        assert_eq!(may(json!({"elicitation": {}}), elicit, url), Err(INVALID_PARAMS));
        assert_eq!(may(json!({"sampling": {}}), elicit, form.clone()), Err(METHOD_NOT_FOUND));
        assert_eq!(may(json!({"elicitation": null}), elicit, form), Err(METHOD_NOT_FOUND));
        let sample = "sampling/createMessage";
        assert_eq!(may(json!({"sampling": {}}), sample, json!({})), Ok(()));
        assert_eq!(may(json!({"sampling": {}}), sample, json!({"tools": []})), Err(INVALID_PARAMS));
        assert_eq!(may(json!({"sampling": {"tools": {}}}), sample, json!({"tools": []})), Ok(()));
        assert_eq!(may(json!({"roots": {}}), "roots/list", json!(null)), Ok(()));
        assert_eq!(may(json!({"roots": {}}), "ping/pong", json!({})), Err(METHOD_NOT_FOUND));
    }

    #[test]
    fn a_question_has_the_name_that_a_hub_gives_it() {
        let key = |params: Value| key_of("elicitation/create", Some(&params.into()));
        assert_eq!(key(json!({"_meta": {"toolyard/key": "user_name"}})), "user_name");
        for nameless in [json!({}), json!({"_meta": 7}), json!({"_meta": {"toolyard/key": "x".repeat(257)}})]
        {
            assert_eq!(key(nameless), "elicitation/create");
        }
    }

    #[test]
    fn a_server_behind_us_hears_of_nothing_but_what_it_may_ask() {
        let all = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}, "roots": {"listChanged": true},
            "experimental": {"x": {}}, "elicitation": {"form": {}, "url": {}}, "sampling": null});
        let asked = json!({"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true}});
        assert_eq!(serde_json::from_str::<Value>(&askable(&all.into()).to_string()).unwrap(), asked);
        assert_eq!(askable(&json!([1]).into()).to_string(), "{}");
    }
}
