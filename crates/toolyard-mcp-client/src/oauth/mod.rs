//! OAuth 2.1 for HTTP servers: obtains, stores and renews tokens.
//!
//! [`OAuthAuthorizer`] is the [`Authorizer`](crate::Authorizer) of one server. rmcp implements the protocol (discovery by
//! RFC 9728, RFC 8414 and OpenID, registration, PKCE, the check of `iss`). This module adds the rest:
//!
//! - `authorizer`: when tokens are renewed and when the user is asked to log in.
//! - `flow`, `client_credentials`, `client_assertion`: the grants.
//! - `issuer_metadata`: what an issuer says about itself, which is compared with what the server says.
//! - `caller_token`: tokens on behalf of a caller, without a sign-in.
//! - `address_policy`, `http_client`: which addresses a flow may call.
//! - `browser`, `callback`: the login page and the redirect back; `web_login`: the same for a gateway.
//! - Tokens belong to the operator or to one caller of a gateway ([`TokenKey`]).
//! - `token_store`: tokens on disk, encrypted; `token_removal`: removed tokens stay removed.
//!
//! The library opens no browser: the program provides a [`Browser`]. Without one, a required login is an error that names
//! the command to run.

mod address_policy;
mod authorizer;
mod browser;
mod callback;
mod caller_token;
mod client_assertion;
mod client_credentials;
mod error;
mod flow;
mod grant_types;
mod http_client;
mod issuer_metadata;
mod server_registration;
mod token_removal;
mod token_store;
mod web_login;

pub use crate::encryption::{EncryptionError, EncryptionKey};
pub use authorizer::{LoginState, OAuthAuthorizer};
pub use browser::{Browser, BrowserError, BrowserUrl};
pub use callback::{AuthorizationQuery, AuthorizationResponse, CallbackError, LoopbackCallback};
pub use caller_token::{
    CallerToken, CallerTokenError, CallerTokenGrant, ClientCredential, ExchangeRefusal, TokenClient,
};
pub use error::OAuthError;
pub use server_registration::{ClientAuthentication, ClientIdentity, OAuthServer};
pub use token_store::{StoredSignIn, TokenKey, TokenStore, TokenStoreError};
pub use web_login::WebLogin;

#[cfg(test)]
mod tests;
