//! Redacts the secrets of a server's settings in what the server sends.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use toolyard_core::{BoxFuture, RawJson, SecretValues};
use toolyard_mcp::{FieldEdit, RpcError, edit_fields, raw_field};

use crate::{
    config::secret_part,
    session::error::RequestError,
    transport::{
        error::TransportError,
        http::target::{Authorizer, ChallengeError, SecretHeader},
    },
};

/// Larger results are redacted on a thread for blocking work, so that other calls do not wait.
const MAX_INLINE_BYTES: usize = 128 << 10;
/// Access tokens that are remembered: a server may repeat one that was renewed in the meantime.
const MAX_TOKENS: usize = 8;
/// The field of a result that the server gets back unchanged.
const STATE_FIELD: &str = "requestState";

/// The secrets that a server knows from its settings: values of variables, headers and arguments, and access tokens. `Debug`
/// shows none of them.
#[derive(Default)]
pub struct ServerSecrets {
    /// Keys and values of the settings. Which of them are secrets is decided when the first message arrives, because that
    /// needs the redaction rules.
    settings: Vec<(String, String)>,
    settings_secrets: OnceLock<Vec<String>>,
    /// Values that are secrets whatever they look like: stored secrets and contents of files.
    secrets: Vec<String>,
    state: Mutex<SecretState>,
}

#[derive(Default)]
struct SecretState {
    /// Access tokens, the latest last.
    tokens: VecDeque<String>,
    /// None until it is needed, and after a new token.
    values: Option<Arc<SecretValues>>,
}

impl ServerSecrets {
    /// The secrets among these settings. A value counts if its key or its form tells that it is a secret.
    pub fn new(settings: Vec<(String, String)>) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Adds values that are secrets whatever they look like.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Vec<String>) -> Self {
        self.secrets.extend(secrets);
        self
    }

    /// Adds the access token in a header that is sent to the server.
    pub(crate) fn add_token(&self, header: &SecretHeader) {
        let Ok(value) = header.value.to_str() else { return };
        // `Bearer abc` is a scheme and a token; the server may repeat the token alone.
        let token = value.rsplit(' ').next().unwrap_or(value);
        let mut state = self.state.lock();
        if state.tokens.iter().any(|known| known == token) {
            return;
        }
        if state.tokens.len() == MAX_TOKENS {
            state.tokens.pop_front();
        }
        state.tokens.push_back(token.to_owned());
        state.values = None;
    }

    /// The secrets; none if there are none.
    pub(crate) fn values(&self) -> Option<Arc<SecretValues>> {
        let mut state = self.state.lock();
        if self.settings.is_empty() && self.secrets.is_empty() && state.tokens.is_empty() {
            return None;
        }
        let values = match &state.values {
            Some(values) => Arc::clone(values),
            None => {
                let settings = self.settings_secrets.get_or_init(|| {
                    let secrets = self.settings.iter().filter_map(|(key, value)| secret_part(key, value));
                    secrets.map(str::to_owned).collect()
                });
                let secrets = settings.iter().chain(&self.secrets).chain(&state.tokens);
                let values = Arc::new(SecretValues::new(secrets.cloned()));
                state.values = Some(Arc::clone(&values));
                values
            }
        };
        (!values.is_empty()).then_some(values)
    }

    /// A text with its secrets redacted.
    pub(crate) fn redact(&self, text: String) -> String {
        match self.values() {
            Some(values) => values.redact(&text).into_owned(),
            None => text,
        }
    }

    /// The parameters of a message with their secrets redacted.
    pub(crate) fn redact_params(&self, params: &RawJson) -> RawJson {
        self.values().map_or_else(|| params.clone(), |values| values.redact_json(params).0)
    }

    /// A result with its secrets redacted, apart from the state that the server gets back.
    pub(crate) async fn redact_result(&self, result: RawJson) -> RawJson {
        let Some(values) = self.values() else { return result };
        if result.get().len() <= MAX_INLINE_BYTES {
            return redact_except_state(&values, result);
        }
        // Fails only if the runtime shuts down. Then nothing of the result may get out.
        let redaction = tokio::task::spawn_blocking(move || redact_except_state(&values, result));
        redaction.await.unwrap_or_else(|_| RawJson::empty_object())
    }

    /// An error with the secrets redacted in what the server sent. Transports know only the headers that all requests share.
    pub(crate) fn redact_error(&self, error: RequestError) -> RequestError {
        match (error, self.values()) {
            (RequestError::Rpc(error), Some(values)) => RequestError::Rpc(redact_rpc_error(&values, error)),
            (
                RequestError::Transport(TransportError::Status {
                    status,
                    error,
                    excerpt,
                    challenge,
                    retry_after_seconds,
                }),
                Some(values),
            ) => RequestError::Transport(TransportError::Status {
                status,
                error: error.map(|error| redact_rpc_error(&values, error)),
                excerpt: excerpt.map(|text| values.redact(&text).into()),
                challenge,
                retry_after_seconds,
            }),
            (other, _) => other,
        }
    }
}

fn redact_rpc_error(values: &SecretValues, RpcError { code, message, data }: RpcError) -> RpcError {
    let message = values.redact(&message).into_owned();
    RpcError { code, message, data: data.map(|data| values.redact_json(&data).0) }
}

fn redact_except_state(values: &SecretValues, result: RawJson) -> RawJson {
    let (redacted, is_changed) = values.redact_json(&result);
    if !is_changed {
        return result;
    }
    match raw_field(&result, STATE_FIELD) {
        Some(state) => {
            let keep_state = |key: &str, _: &RawJson| match key {
                STATE_FIELD => FieldEdit::Raw(state.clone()),
                _ => FieldEdit::Keep,
            };
            edit_fields(&redacted, keep_state).to_raw()
        }
        None => redacted,
    }
}

impl fmt::Debug for ServerSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerSecrets(…)")
    }
}

/// An authorizer whose tokens are added to the secrets of the server.
pub(crate) struct RecordedTokens {
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) secrets: Arc<ServerSecrets>,
}

impl Authorizer for RecordedTokens {
    fn token(&self) -> BoxFuture<'_, Option<SecretHeader>> {
        Box::pin(async {
            let header = self.authorizer.token().await;
            if let Some(header) = &header {
                self.secrets.add_token(header);
            }
            header
        })
    }

    fn handle_challenge<'a>(
        &'a self,
        sent_token: Option<&'a SecretHeader>,
        status: u16,
        www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, ChallengeError>> {
        self.authorizer.handle_challenge(sent_token, status, www_authenticate)
    }
}

#[cfg(test)]
#[path = "server_secrets_tests.rs"]
mod tests;
