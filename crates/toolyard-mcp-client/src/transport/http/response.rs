//! An HTTP response, from our own connections (plain HTTP) or from reqwest (everything else).

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderMap, StatusCode};
use url::Url;

use crate::{
    sanitize::sanitize_line,
    transport::{
        error::TransportError,
        http::pool::{MAX_TRAILING_BYTES, PooledResponse, STREAM_END_GRACE},
    },
};

/// After this many bytes the reader yields, because its timeouts run in the same task.
const YIELD_AFTER_BYTES: usize = 128 << 10;

#[derive(Debug)]
pub(crate) struct HttpResponse {
    /// The URL after redirects.
    pub(crate) url: Url,
    source: ResponseSource,
    /// Bytes since the reader last yielded.
    read_bytes: usize,
}

#[derive(Debug)]
enum ResponseSource {
    Pooled(PooledResponse),
    /// With the chunk that the reader borrowed.
    Reqwest(reqwest::Response, Bytes),
}

impl HttpResponse {
    pub(super) fn pooled(url: Url, response: PooledResponse) -> Self {
        Self { url, source: ResponseSource::Pooled(response), read_bytes: 0 }
    }

    pub(super) fn reqwest(response: reqwest::Response) -> Self {
        let url = response.url().clone();
        Self { url, source: ResponseSource::Reqwest(response, Bytes::new()), read_bytes: 0 }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match &self.source {
            ResponseSource::Pooled(response) => response.status,
            ResponseSource::Reqwest(response, _) => response.status(),
        }
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        match &self.source {
            ResponseSource::Pooled(response) => &response.headers,
            ResponseSource::Reqwest(response, _) => response.headers(),
        }
    }

    pub(super) fn content_length(&self) -> Option<u64> {
        match &self.source {
            ResponseSource::Pooled(response) => response.content_length(),
            ResponseSource::Reqwest(response, _) => response.content_length(),
        }
    }

    /// The next chunk of the body; none at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<&[u8]>, TransportError> {
        if self.read_bytes > YIELD_AFTER_BYTES {
            self.read_bytes = 0;
            tokio::task::yield_now().await;
        }
        let chunk = match &mut self.source {
            ResponseSource::Pooled(response) => response.chunk().await?,
            ResponseSource::Reqwest(response, borrowed) => {
                match response.chunk().await.map_err(connection_lost)? {
                    Some(chunk) => {
                        *borrowed = chunk;
                        Some(&**borrowed)
                    }
                    None => None,
                }
            }
        };
        self.read_bytes += chunk.map_or(0, <[u8]>::len);
        Ok(chunk)
    }

    /// Abandons the rest of the body without waiting for its end.
    pub(super) fn release(self) {
        match self.source {
            ResponseSource::Pooled(response) => response.release(),
            ResponseSource::Reqwest(response, _) => drain(response),
        }
    }
}

/// Reads the end of a body in the background, so that reqwest can reuse the connection.
fn drain(mut response: reqwest::Response) {
    let rest = async move {
        let mut bytes = 0_usize;
        while let Ok(Some(chunk)) = response.chunk().await {
            bytes = bytes.saturating_add(chunk.len());
            if bytes > MAX_TRAILING_BYTES {
                break;
            }
        }
    };
    let mut rest = Box::pin(tokio::time::timeout(STREAM_END_GRACE, rest));
    // The end has usually arrived together with the response.
    if rest.as_mut().now_or_never().is_none() {
        tokio::spawn(rest);
    }
}

pub(super) fn request_failed(error: reqwest::Error) -> TransportError {
    if error.is_connect() || error.is_builder() {
        TransportError::Unreachable(root_cause(error))
    } else {
        connection_lost(error)
    }
}

fn connection_lost(error: reqwest::Error) -> TransportError {
    TransportError::ConnectionLost(root_cause(error))
}

/// The innermost cause, without the URL, which may contain a password.
pub(super) fn root_cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let innermost =
        std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source()).last();
    sanitize_line(&innermost.map_or_else(|| error.to_string(), ToString::to_string))
}
