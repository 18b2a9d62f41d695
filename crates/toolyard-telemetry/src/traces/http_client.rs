//! [`OtlpClient`]: sends exports with the HTTP client that the rest of the program uses.

use std::time::Duration;

use reqwest::{
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect::Policy,
};

use toolyard_core::redact;

use super::{TraceConfigError, export_request::rejected_spans};

/// Longer responses are not read: a receiver says little.
const MAX_RESPONSE_BYTES: usize = 64 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why spans did not arrive.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExportError {
    #[error("{0}")]
    Request(#[from] reqwest::Error),
    /// The receiver of traces refused the export.
    ///
    /// Remedy: 401 or 403: set `OTEL_EXPORTER_OTLP_HEADERS`; 404: check `otlp_endpoint` (`/v1/traces` is added).
    #[error("the receiver answered with status {0}")]
    Status(reqwest::StatusCode),
    /// The receiver of traces accepted only a part of the spans; the reason is its own.
    ///
    /// Remedy: see the log of the receiver: limits of size and rate are the usual reason.
    #[error("the receiver refused {spans} spans: {reason}")]
    Rejected { spans: u64, reason: String },
}

pub(super) struct OtlpClient {
    client: reqwest::Client,
    /// Parsed once.
    url: reqwest::Url,
}

impl OtlpClient {
    /// A client that follows no redirects, so that headers reach the configured receiver only.
    pub(super) fn new(
        url: &str,
        headers: Vec<(String, String)>,
        timeout: Duration,
    ) -> Result<Self, TraceConfigError> {
        let url = reqwest::Url::parse(url)
            .map_err(|_| TraceConfigError::InvalidEndpoint(redact(url).into_owned()))?;
        let mut map = HeaderMap::new();
        for (at, (name, value)) in headers.into_iter().enumerate() {
            // Neither is shown: the value is a secret, and the name may be one that was misplaced.
            let invalid = || TraceConfigError::InvalidHeader(at + 1);
            let name = HeaderName::try_from(name).map_err(|_| invalid())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
            value.set_sensitive(true);
            map.insert(name, value);
        }
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        let client = reqwest::Client::builder()
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .default_headers(map)
            .user_agent(concat!("toolyard/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(timeout)
            .build()
            .map_err(|error| TraceConfigError::Exporter(error.to_string()))?;
        Ok(Self { client, url })
    }

    /// Sends the body of an export.
    pub(super) async fn send(&self, body: Vec<u8>) -> Result<(), ExportError> {
        let mut response = self.client.post(self.url.clone()).body(body).send().await?;
        if !response.status().is_success() {
            return Err(ExportError::Status(response.status()));
        }
        let mut answer = Vec::new();
        while let Some(part) = response.chunk().await? {
            if answer.len() + part.len() > MAX_RESPONSE_BYTES {
                return Ok(());
            }
            answer.extend_from_slice(&part);
        }
        match rejected_spans(&answer) {
            (0, _) => Ok(()),
            (spans, reason) => Err(ExportError::Rejected { spans, reason }),
        }
    }
}
