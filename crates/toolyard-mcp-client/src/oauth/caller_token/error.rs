//! Why a caller gets no token of its own for a server.

/// Why a caller gets no token of its own for a server. Contains no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallerTokenError {
    /// The caller authenticated with an API key or by a proxy, or its run was resumed from the store.
    ///
    /// Remedy: call the gateway with an access token of the issuer in `[serve.oauth]`, or give the server
    /// `oauth.per_caller = "sign_in"`.
    #[error(
        "server `{server}` needs the access token of the caller, and the caller presented none: call the gateway with an \
         access token of the issuer in `[serve.oauth]`"
    )]
    NoToken {
        /// The server.
        server: String,
    },
    /// The token with which the caller called the gateway is not valid any more.
    ///
    /// Remedy: get a new token from the issuer, and call again.
    #[error(
        "the access token of the caller has expired, and server `{server}` needs a valid one: call the gateway again with a \
         new access token"
    )]
    Expired {
        /// The server.
        server: String,
    },
    /// The tokens of callers must not go to whatever issuer the server names.
    ///
    /// Remedy: set `oauth.issuer` of `[servers.NAME]` to the authorization server that may receive tokens of callers.
    #[error("server `{server}` has no `oauth.issuer`, which is needed to exchange tokens of callers")]
    NoIssuer {
        /// The server.
        server: String,
    },
    /// An issuer refused to exchange the token of the caller; the text has its answer and what to do.
    ///
    /// Remedy: follow the advice in the message; check `oauth.client_id`, `oauth.audience` and `oauth.scopes` of
    /// `[servers.NAME]`, and the trust between both issuers.
    #[error("{issuer} issues no token for server `{server}` ({reason}): {}", .refusal.advice())]
    Refused {
        /// The server.
        server: String,
        /// The issuer that refused.
        issuer: String,
        /// Its error code and description.
        reason: String,
        /// What was refused.
        refusal: ExchangeRefusal,
    },
    /// The response of an issuer to a token exchange cannot be used.
    ///
    /// Remedy: check at the provider that the client may exchange tokens (RFC 8693 or ID-JAG) and gets signed access
    /// tokens.
    #[error("{issuer} answered a token exchange for server `{server}` with {problem}")]
    Unusable {
        /// The server.
        server: String,
        /// The issuer.
        issuer: String,
        /// What is wrong with the response.
        problem: &'static str,
    },
}

/// What an issuer refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExchangeRefusal {
    /// The client is unknown, or its secret is wrong.
    Client,
    /// The client may not use this grant.
    Grant,
    /// The token of the caller, or the assertion about the caller, is not accepted.
    CallerToken,
    /// No tokens are issued for this server or with these scopes.
    Target,
    /// Something else.
    Other,
}

impl ExchangeRefusal {
    /// By the error code of RFC 6749, RFC 8693 and RFC 8707.
    pub(super) fn of_code(code: &str) -> Self {
        match code {
            "invalid_client" => Self::Client,
            "unauthorized_client" | "unsupported_grant_type" | "access_denied" => Self::Grant,
            "invalid_grant" | "invalid_request" | "invalid_token" => Self::CallerToken,
            "invalid_target" | "invalid_scope" => Self::Target,
            _ => Self::Other,
        }
    }

    /// What to do about it.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Client => "check the id and the secret of the client in `oauth` of the server",
            Self::Grant => "allow the client this grant at the issuer",
            Self::CallerToken => {
                "call the gateway with a new access token; if that does not help, the issuer must accept tokens of the \
                 caller's issuer"
            }
            Self::Target => {
                "check `oauth.scopes` and `oauth.audience` of the server, and what the issuer allows the caller"
            }
            Self::Other => "the log of the issuer may say more",
        }
    }
}
