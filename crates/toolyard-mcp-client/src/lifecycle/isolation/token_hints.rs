//! Errors of servers whose callers get tokens from their own tokens.

use toolyard_core::{ErrorKind, ToolError};

use crate::{
    config::OauthSettings,
    lifecycle::{connect_error::ConnectError, server::ManagedServer},
    session::error::RequestError,
};

impl ManagedServer {
    /// The error of a call that failed because the caller has no token for this server. A login of the operator would not
    /// help; the message says what does.
    pub(in crate::lifecycle) fn caller_token_error(&self, error: &RequestError) -> Option<ToolError> {
        let is_unauthorized = matches!(error, RequestError::Transport(error) if error.is_unauthorized());
        is_unauthorized.then(|| self.unauthorized_error(error.to_string())).flatten()
    }

    /// The same for a start of the instance.
    pub(in crate::lifecycle) fn caller_token_start_error(&self, error: &ConnectError) -> Option<ToolError> {
        let is_unauthorized = matches!(error, ConnectError::Transport(error) if error.is_unauthorized());
        is_unauthorized.then(|| self.unauthorized_error(error.to_string())).flatten()
    }

    fn unauthorized_error(&self, message: String) -> Option<ToolError> {
        let exchanges = self.config.oauth.as_ref().is_some_and(OauthSettings::exchanges_tokens);
        let error = ToolError::new(ErrorKind::Unavailable, message)
            .with_operator_hint(format!(
                "tokens of callers are exchanged for this server: check `[servers.{}.oauth]`",
                self.config.id
            ))
            .with_caller_hint("call again with a new access token; if that does not help, ask the operator")
            .with_retryable(false);
        (exchanges && self.is_private()).then(|| error.on_source(&self.config.id))
    }
}
