//! What went wrong at an OpenAI-compatible server, said so that somebody can do something about it.

use std::time::Duration;

use serde_json::Value;
use toolyard_core::{redact, shown};

use crate::{ModelError, ModelErrorKind};

/// How much of what a server says is repeated.
const QUOTED: usize = 300;

/// What a server complains about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// The status of the answer, or the one that stands within it.
    pub status: Option<u16>,
    /// The server's word for it.
    pub code: String,
    /// What it says.
    pub message: String,
    /// When it wants us back.
    pub retry_after: Option<Duration>,
    /// Whether what it says cannot even be read.
    pub is_garbled: bool,
}

impl Complaint {
    /// Something that is no event and no answer.
    pub(crate) fn garbled(data: &str) -> Self {
        Self { message: data.chars().take(QUOTED).collect(), is_garbled: true, ..Self::default() }
    }

    /// The complaint within an answer that should have been one.
    pub(crate) fn in_answer(value: &Value) -> Option<Self> {
        let is_error = value.get("object").and_then(Value::as_str) == Some("error")
            || value.get("type").and_then(Value::as_str) == Some("error");
        match value.get("error") {
            Some(Value::Null) | None if !is_error => None,
            // A flag beside an answer that is there.
            Some(Value::Bool(false)) => None,
            Some(error @ (Value::Object(_) | Value::String(_))) => Some(Self::of(error)),
            _ => Some(Self::of(value)),
        }
    }

    /// The complaint in an event that says it is one.
    pub(crate) fn in_stream(data: &str) -> Self {
        let value: Value = serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_owned()));
        Self::in_answer(&value).unwrap_or_else(|| Self::of(&value))
    }

    /// The complaint in the body of an answer that says it is one.
    pub(crate) fn in_body(status: u16, body: &str) -> Self {
        let value: Value = serde_json::from_str(body).unwrap_or(Value::Null);
        // Some answer with a list of one.
        let value = value.get(0).unwrap_or(&value);
        let mut complaint = Self::in_answer(value).unwrap_or_else(|| Self::of(value));
        if complaint.message.is_empty() && !body.trim_start().starts_with('<') {
            complaint.message = body.trim().chars().take(QUOTED).collect();
        }
        complaint.status = Some(status);
        complaint
    }

    fn of(value: &Value) -> Self {
        let text = |field: &str| match value.get(field) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let code = text("code").or_else(|| text("type")).unwrap_or_default();
        let status = ["status", "status_code", "code"].iter().find_map(|field| {
            let value = value.get(*field)?;
            let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
            u16::try_from(number).ok().filter(|status| (400..600).contains(status))
        });
        let said = value.as_str().map(str::to_owned);
        let message = said.or_else(|| text("message")).or_else(|| text("detail")).or_else(|| text("msg"));
        Self { status, code, message: message.unwrap_or_default(), ..Self::default() }
    }

    /// The class of failure.
    pub(crate) fn kind(&self) -> ModelErrorKind {
        let said = format!("{} {}", self.code, self.message).to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        if self.is_garbled {
            return ModelErrorKind::Garbled;
        }
        if says(&["insufficient_quota", "arrearage", "billing", "insufficient balance"]) {
            return ModelErrorKind::Refused;
        }
        match self.status {
            Some(401 | 403) => ModelErrorKind::Unauthorized,
            // What cannot be done now cannot be done later; 501 says so outright.
            Some(400 | 413 | 415 | 422 | 501) => ModelErrorKind::Unsupported,
            Some(408 | 409 | 425 | 429 | 500..=599) => ModelErrorKind::Busy,
            Some(_) => ModelErrorKind::Refused,
            None if says(&[
                "rate_limit",
                "rate limit",
                "overloaded",
                "too many requests",
                "server_error",
            ]) =>
            {
                ModelErrorKind::Busy
            }
            None if says(&["invalid_api_key", "unauthorized", "authentication"]) => {
                ModelErrorKind::Unauthorized
            }
            None => ModelErrorKind::Refused,
        }
    }

    /// Whether another attempt may help.
    pub(crate) fn is_passing(&self) -> bool {
        self.kind() == ModelErrorKind::Busy
    }
}

/// Says what went wrong, without secrets.
#[derive(Debug, Clone)]
pub(crate) struct Spokesman {
    name: String,
    place: String,
    key: KeyFacts,
    secrets: Secrets,
}

/// What may be said about a key.
#[derive(Debug, Clone)]
pub(crate) struct KeyFacts {
    /// Where it comes from.
    pub source: Option<String>,
    pub is_given: bool,
}

/// What must not be said. Not shown itself.
#[derive(Clone)]
struct Secrets(Vec<String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{} not shown]", self.0.len())
    }
}

impl Spokesman {
    /// Speaks for a model at a place, never of these secrets.
    pub(crate) fn new(name: &str, place: String, key: KeyFacts, secrets: Vec<String>) -> Self {
        Self { name: name.to_owned(), place, key, secrets: Secrets(secrets) }
    }

    /// An error about this model.
    pub(crate) fn error(&self, kind: ModelErrorKind, message: impl AsRef<str>) -> ModelError {
        ModelError::new(&self.name, kind, self.harmless(message.as_ref()))
    }

    /// A text of somebody else's, fit to be shown: no secrets, no control characters, not too long.
    pub(crate) fn harmless(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets.0 {
            text = text.replace(secret.as_str(), "[redacted:key]");
        }
        let text = redact(&text);
        let line: Vec<&str> = text.split_whitespace().collect();
        let line = line.join(" ");
        let line = shown(&line);
        if line.chars().count() <= QUOTED {
            return line.into_owned();
        }
        line.chars().take(QUOTED).chain(['…']).collect()
    }

    /// The error that a complaint is.
    pub(crate) fn complain(&self, complaint: &Complaint) -> ModelError {
        let kind = complaint.kind();
        let said = if complaint.message.is_empty() { &complaint.code } else { &complaint.message };
        let said = if said.is_empty() {
            " and nothing more".to_owned()
        } else {
            format!(": {}", self.harmless(said))
        };
        let message = match complaint.status {
            _ if complaint.is_garbled => format!("said something that is no answer{said}"),
            Some(status) => format!("answered with status {status}{said}"),
            None => format!("broke off{said}"),
        };
        let error = self.error(kind, message);
        match self.hint(complaint, kind) {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }

    fn hint(&self, complaint: &Complaint, kind: ModelErrorKind) -> Option<String> {
        let said = format!("{} {}", complaint.code, complaint.message).to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        match kind {
            ModelErrorKind::Unauthorized => Some(match (&self.key.source, self.key.is_given) {
                (Some(source), true) => format!("the key in {source} is not accepted at {}", self.place),
                (Some(source), false) => format!("set {source} to a key of {}", self.place),
                (None, true) => format!("the key is not accepted at {}", self.place),
                (None, false) => format!("{} wants a key, and none is configured", self.place),
            }),
            ModelErrorKind::Busy if complaint.status == Some(429) => {
                let wait = complaint.retry_after.map(|wait| format!(" in {} s", wait.as_secs().max(1)));
                Some(format!("it takes no more requests now; try again{}", wait.unwrap_or_default()))
            }
            ModelErrorKind::Unsupported if says(&["response_format", "json_schema", "grammar"]) => Some(
                "it cannot be held to this schema; let it call tools another way (tool_calling = \"native\" or \"text\")"
                    .to_owned(),
            ),
            ModelErrorKind::Unsupported
                if says(&["context", "too long", "maximum length", "exceed", "too large"]) =>
            {
                Some("the conversation is longer than the model can read; begin a new one or show it less".to_owned())
            }
            ModelErrorKind::Unsupported if says(&["tool", "function"]) => Some(
                "it cannot call tools by itself; let it call them another way (tool_calling = \"text\" or \"schema\")"
                    .to_owned(),
            ),
            ModelErrorKind::Refused if says(&["quota", "billing", "balance", "arrearage"]) => {
                Some("the account at this provider has nothing left to spend".to_owned())
            }
            ModelErrorKind::Refused if complaint.status == Some(404) && !says(&["model"]) => Some(format!(
                "nothing answers at {}/chat/completions; the address usually ends in /v1",
                self.place
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
