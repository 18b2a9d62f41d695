//! Tokens on behalf of a caller, without a sign-in.
//!
//! - [`grant`]: how the token of a caller becomes one for a server.
//! - [`flow`]: the requests of both grants, and the checks of their responses.
//! - [`token_request`]: a request to a token endpoint with the client authentication that it supports.
//! - [`error`]: why a caller gets no token.

mod error;
mod flow;
mod grant;
mod token_request;

pub use error::{CallerTokenError, ExchangeRefusal};
pub use grant::{CallerToken, CallerTokenGrant};
pub use token_request::{ClientCredential, TokenClient};
