//! OAuth 2.1 for servers at an address: tokens got, kept and renewed, with a person's consent where it is needed.
//!
//! [`OAuthAuthorizer`] is the [`super::Authorizer`] of one server. The protocol itself (discovery by RFC 9728, RFC 8414 and
//! OpenID, registration, PKCE, the check of `iss`) is rmcp's; what stands here is everything around it: who is asked and when,
//! which addresses may be called at all, the redirect to this machine, what is kept on disk, and how often one tries.
//!
//! The library opens no browser and touches no terminal: that is the door's [`Browser`]. Without one, whatever needs a person
//! is an error that says what to run.

mod address;
mod assertion;
mod authorizer;
mod browser;
mod callback;
mod dpop;
mod error;
mod flow;
mod machine;
mod seal;
mod server;
mod tokens;
mod web;

pub use authorizer::{LoginState, OAuthAuthorizer};
pub use browser::{Browser, BrowserUrl};
pub use callback::{CallbackError, LoopbackCallback, Redirected};
pub use error::OAuthError;
pub use seal::{SealError, SealKey};
pub use server::{ClientIdentity, ClientProof, HiddenText, OAuthServer};
pub use tokens::{TokenStore, TokenStoreError};

#[cfg(test)]
mod flow_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod test_servers;
