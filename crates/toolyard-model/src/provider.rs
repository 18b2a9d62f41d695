//! What a client of a model server consists of, apart from the protocol.

mod base_url;
mod config;
mod connection;
mod error_reporter;
mod generation;
mod http_client;
mod prices;
mod response_reader;
mod retry;
mod server_error;
mod token_estimate;

pub use self::{
    config::{ModelServerConfig, ResponseLimits},
    prices::Prices,
};
pub(crate) use self::{
    connection::Connection,
    error_reporter::{ApiKeyInfo, ErrorReporter, redactions},
    generation::{Protocol, generate},
    response_reader::ReplyParser,
    retry::{AttemptError, parse_retry_after, wait_for_retry},
    server_error::ServerError,
    token_estimate::TokenEstimate,
};
