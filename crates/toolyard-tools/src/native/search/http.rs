//! One bounded HTTP exchange with a search engine.

use std::{sync::OnceLock, time::Duration};

use reqwest::{Client, RequestBuilder, StatusCode, redirect::Policy};
use serde_json::Value;

use super::SearchError;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// No page of results is larger.
pub(super) const SIZE_LIMIT: usize = 2 << 20;

/// A client that is made at the first search: reading the system's certificates takes a while.
#[derive(Debug, Default)]
pub(super) struct Http(OnceLock<Result<Client, String>>);

impl Http {
    pub(super) fn client(&self) -> Result<&Client, SearchError> {
        let client = self.0.get_or_init(|| {
            // No redirects: they would carry the key to another server. No proxy from the environment.
            Client::builder()
                .redirect(Policy::none())
                .no_proxy()
                .connect_timeout(CONNECT_LIMIT)
                .timeout(TIME_LIMIT)
                .build()
                .map_err(|error| error.without_url().to_string())
        });
        client.as_ref().map_err(|reason| SearchError::BadSettings(reason.clone()))
    }
}

/// Sends the request and reads the answer as JSON, within the limits.
pub(super) async fn json_answer(request: RequestBuilder) -> Result<Value, SearchError> {
    let mut response = request.send().await.map_err(understood)?;
    check_status(response.status())?;
    let too_large = SearchError::TooLarge { limit: SIZE_LIMIT };
    if response.content_length().is_some_and(|length| length > SIZE_LIMIT as u64) {
        return Err(too_large);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(understood)? {
        if body.len() + chunk.len() > SIZE_LIMIT {
            return Err(too_large);
        }
        body.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&body).map_err(|error| SearchError::NotUnderstood(format!("not JSON ({error})")))
}

fn check_status(status: StatusCode) -> Result<(), SearchError> {
    let code = status.as_u16();
    match code {
        200..=299 => Ok(()),
        401 | 403 => Err(SearchError::Refused { status: code }),
        429 | 500..=599 => Err(SearchError::Busy { status: code }),
        _ => Err(SearchError::Status { status: code }),
    }
}

/// The error without the address, which may hold a password.
fn understood(error: reqwest::Error) -> SearchError {
    if error.is_timeout() {
        return SearchError::TimedOut;
    }
    let (connect, builder) = (error.is_connect(), error.is_builder());
    let error = error.without_url();
    let innermost =
        std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source()).last();
    let reason = innermost.map_or_else(|| error.to_string(), ToString::to_string);
    if connect {
        SearchError::Unreachable(reason)
    } else if builder {
        SearchError::BadSettings(reason)
    } else {
        SearchError::Broken(reason)
    }
}
