//! Turns failures of a model server into [`ModelError`]s with hints and without secrets.

use std::{fmt, time::Duration};

use toolyard_core::{SecretText, escape_unsafe, redact};

use super::server_error::ServerError;
use crate::{ModelError, ModelErrorKind};

/// Characters of a server's message that are quoted.
const MAX_QUOTED_CHARS: usize = 300;
/// Shorter words are not redacted: they would match ordinary text.
const MIN_SECRET_BYTES: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct ErrorReporter {
    model: String,
    /// The URL or the name of the server, for hints.
    server: String,
    api_key: ApiKeyInfo,
    secrets: Secrets,
}

/// What hints may say about the API key.
#[derive(Debug, Clone)]
pub(crate) struct ApiKeyInfo {
    /// The variable that holds the key.
    pub source: Option<String>,
    pub is_configured: bool,
}

#[derive(Clone)]
struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} redacted]", self.0.len())
    }
}

/// The strings to redact from messages: `Bearer abc` hides `abc` as well.
pub(crate) fn redactions(secret: &SecretText) -> Vec<String> {
    let secret = secret.expose();
    let words = secret.split_whitespace().filter(|word| !word.eq_ignore_ascii_case("bearer"));
    let all = std::iter::once(secret).chain(words);
    all.filter(|secret| secret.len() >= MIN_SECRET_BYTES).map(str::to_owned).collect()
}

impl ErrorReporter {
    pub(crate) fn new(model: &str, server: String, api_key: ApiKeyInfo, secrets: Vec<String>) -> Self {
        Self { model: model.to_owned(), server, api_key, secrets: Secrets(secrets) }
    }

    pub(crate) fn error(&self, kind: ModelErrorKind, message: impl AsRef<str>) -> ModelError {
        ModelError::new(&self.model, kind, self.sanitize(message.as_ref()))
    }

    /// The error for a server that did not start to reply in time.
    pub(crate) fn first_token_timeout(&self, limit: Duration) -> ModelError {
        self.timeout(format!("did not start to reply within {} s", limit.as_secs_f32()))
    }

    /// The error for a server that sent nothing for too long during its reply.
    pub(crate) fn idle_timeout(&self, limit: Duration) -> ModelError {
        self.timeout(format!("sent nothing for {} s during its reply", limit.as_secs_f32()))
    }

    fn timeout(&self, message: String) -> ModelError {
        self.error(ModelErrorKind::Timeout, message).with_hint(format!(
            "slow machines and long prompts need a longer timeout: `timeout` of [models.{}] in toolyard.toml",
            self.model
        ))
    }

    /// Text of a server as one line, without secrets and unsafe characters, limited in length.
    pub(crate) fn sanitize(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets.0 {
            text = text.replace(secret.as_str(), "[redacted:key]");
        }
        let text = redact(&text);
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = escape_unsafe(&line);
        if line.chars().count() <= MAX_QUOTED_CHARS {
            return line.into_owned();
        }
        line.chars().take(MAX_QUOTED_CHARS).chain(['…']).collect()
    }

    pub(crate) fn server_error(&self, error: &ServerError) -> ModelError {
        let kind = error.kind();
        let reason = if error.message.is_empty() { &error.code } else { &error.message };
        let reason = if reason.is_empty() { String::new() } else { format!(": {}", self.sanitize(reason)) };
        let message = match error.status {
            _ if error.is_malformed => format!("returned an invalid response{reason}"),
            Some(status) => format!("returned HTTP {status}{reason}"),
            None => format!("returned an error{reason}"),
        };
        let reported = self.error(kind, message);
        match self.hint(error, kind) {
            Some(hint) => reported.with_hint(hint),
            None => reported,
        }
    }

    fn hint(&self, error: &ServerError, kind: ModelErrorKind) -> Option<String> {
        let server = &self.server;
        Some(match kind {
            ModelErrorKind::Unauthorized => match (&self.api_key.source, self.api_key.is_configured) {
                (Some(source), true) => format!("{server} rejected the key in {source}"),
                (Some(source), false) => format!("set {source} to an API key for {server}"),
                (None, true) => format!("{server} rejected the API key"),
                (None, false) => format!("{server} requires an API key, and none is configured"),
            },
            ModelErrorKind::Busy if error.status == Some(429) => match error.retry_after {
                Some(delay) => format!("rate limit reached; retry in {} s", delay.as_secs().max(1)),
                None => "rate limit reached; retry later".to_owned(),
            },
            ModelErrorKind::Unsupported if error.mentions(&["response_format", "json_schema", "grammar"]) => {
                "the server does not support this schema; set tool_calling = \"native\" or \"text\""
                    .to_owned()
            }
            ModelErrorKind::ContextOverflow => {
                "the conversation exceeds the model's context window; shorten it or start a new one"
                    .to_owned()
            }
            ModelErrorKind::Unsupported
                if error.mentions(&["context", "too long", "maximum length", "exceed", "too large"]) =>
            {
                "the conversation exceeds the model's context window; shorten it or start a new one"
                    .to_owned()
            }
            ModelErrorKind::Unsupported if error.mentions(&["tool", "function"]) => {
                "the server does not support native tool calls; set tool_calling = \"text\" or \"schema\""
                    .to_owned()
            }
            ModelErrorKind::Rejected if error.mentions(&["quota", "billing", "balance", "arrearage"]) => {
                "the account at this provider has no credit left".to_owned()
            }
            ModelErrorKind::Rejected if error.status == Some(404) && !error.mentions(&["model"]) => {
                format!("{server} has no such path; the base URL usually ends in /v1")
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
#[path = "error_reporter_tests.rs"]
mod tests;
