//! What a client of a model server consists of, apart from the protocol.

mod error_reporter;
mod http_client;
mod prices;
mod retry;
mod secret;
mod server_error;
mod token_estimate;

pub(crate) use self::{
    error_reporter::{ApiKeyInfo, ErrorReporter},
    http_client::build_http_client,
    retry::{AttemptError, parse_retry_after, wait_for_retry},
    server_error::ServerError,
    token_estimate::TokenEstimate,
};
pub use self::{prices::Prices, secret::SecretString};
