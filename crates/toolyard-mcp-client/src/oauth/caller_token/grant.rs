//! [`CallerToken`]: how the token of a caller becomes one for a server, without a sign-in.

use std::sync::Arc;

use toolyard_core::PresentedToken;

use super::{CallerTokenError, TokenClient};
use crate::{InstanceOwner, oauth::token_store::unix_seconds};

/// How a server's tokens for one caller are obtained.
#[derive(Debug, Clone)]
pub struct CallerToken {
    /// The caller. Its newest token is used.
    pub owner: Arc<InstanceOwner>,
    /// The client at the server's authorization server.
    pub client: TokenClient,
    /// The grant.
    pub grant: CallerTokenGrant,
}

/// How the token of a caller becomes one for a server.
#[derive(Debug, Clone)]
pub enum CallerTokenGrant {
    /// The server's authorization server exchanges it.
    TokenExchange {
        /// The logical name of the server at the authorization server, if that needs one besides the URL.
        audience: Option<String>,
    },
    /// The issuer of the caller exchanges it for an assertion, which the server's authorization server accepts.
    IdJag {
        /// The client at the issuer of the caller.
        issuer_client: TokenClient,
    },
}

impl CallerToken {
    /// The token of the caller, if it can be used.
    pub(in crate::oauth) fn subject_token(&self, server: &str) -> Result<PresentedToken, CallerTokenError> {
        let server = server.to_owned();
        let Some(token) = self.owner.presented_token() else {
            return Err(CallerTokenError::NoToken { server });
        };
        let is_valid = u64::try_from(token.valid_until()).is_ok_and(|until| unix_seconds() < until);
        if is_valid { Ok(token) } else { Err(CallerTokenError::Expired { server }) }
    }
}
