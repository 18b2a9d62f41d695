//! [`ReqwestClient`]: sends exports with the HTTP client that the rest of the program uses.

use std::{fmt, pin::Pin, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use reqwest::redirect::Policy;

/// Longer responses are not read: a receiver says little.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct ReqwestClient(reqwest::Client);

impl ReqwestClient {
    /// A client that follows no redirects, so that headers reach the configured receiver only.
    pub(super) fn new(timeout: Duration) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(timeout)
            .build()?;
        Ok(Self(client))
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let response = self.0.execute(request.try_into()?).await?;
        let mut converted = Response::builder().status(response.status());
        if let Some(headers) = converted.headers_mut() {
            headers.clone_from(response.headers());
        }
        let is_short = response.content_length().is_some_and(|length| length <= MAX_RESPONSE_BYTES);
        let body = if is_short { response.bytes().await? } else { Bytes::new() };
        Ok(converted.body(body)?)
    }
}

impl fmt::Debug for ReqwestClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReqwestClient").finish_non_exhaustive()
    }
}

// As the attribute `async_trait` of the trait expands, which is another proc-macro otherwise.
impl HttpClient for ReqwestClient {
    fn send_bytes<'a, 'f>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(self.send(request))
    }
}
