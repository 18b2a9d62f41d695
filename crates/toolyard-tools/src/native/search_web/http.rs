//! One HTTP exchange with a search engine, limited in time and size.

use std::{sync::OnceLock, time::Duration};

use reqwest::{Client, RequestBuilder, StatusCode, redirect::Policy};
use serde_json::Value;

use super::engine::SearchError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
pub(super) const MAX_RESPONSE_BYTES: usize = 2 << 20;

/// A client that is created at the first search, because reading the system's certificates is slow.
#[derive(Debug, Default)]
pub(super) struct LazyHttpClient(OnceLock<Result<Client, SearchError>>);

impl LazyHttpClient {
    pub(super) fn client(&self) -> Result<&Client, SearchError> {
        let client = self.0.get_or_init(|| {
            // No redirects, which could send the key to another server, and no proxy from the environment.
            Client::builder()
                .redirect(Policy::none())
                .no_proxy()
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(REQUEST_TIMEOUT)
                .build()
                .map_err(|error| SearchError::InvalidSettings(error.without_url().to_string()))
        });
        client.as_ref().map_err(Clone::clone)
    }
}

/// Sends a request and reads the response as JSON, within the limits.
pub(super) async fn fetch_json(request: RequestBuilder) -> Result<Value, SearchError> {
    let mut response = request.send().await.map_err(to_search_error)?;
    check_status(response.status())?;
    let too_large = SearchError::ResponseTooLarge { limit: MAX_RESPONSE_BYTES };
    if response.content_length().is_some_and(|length| length > MAX_RESPONSE_BYTES as u64) {
        return Err(too_large);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(to_search_error)? {
        if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
            return Err(too_large);
        }
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).map_err(|error| SearchError::InvalidResponse(format!("not JSON ({error})")))
}

fn check_status(status: StatusCode) -> Result<(), SearchError> {
    let code = status.as_u16();
    match code {
        200..=299 => Ok(()),
        401 | 403 => Err(SearchError::Unauthorized { status: code }),
        429 | 500..=599 => Err(SearchError::Busy { status: code }),
        _ => Err(SearchError::UnexpectedStatus { status: code }),
    }
}

/// Converts an error without its URL, which may contain a password.
fn to_search_error(error: reqwest::Error) -> SearchError {
    if error.is_timeout() {
        return SearchError::TimedOut;
    }
    let (is_connect, is_builder) = (error.is_connect(), error.is_builder());
    let error = error.without_url();
    let innermost =
        std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source()).last();
    let reason = innermost.map_or_else(|| error.to_string(), ToString::to_string);
    if is_connect {
        SearchError::Unreachable(reason)
    } else if is_builder {
        SearchError::InvalidSettings(reason)
    } else {
        SearchError::ConnectionLost(reason)
    }
}
