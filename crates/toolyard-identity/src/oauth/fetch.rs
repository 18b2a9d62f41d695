//! [`MetadataSource`]: reads documents of the issuer.

use std::{fmt, time::Duration};

use reqwest::{Client, Response, StatusCode, header, redirect::Policy};
use toolyard_core::BoxFuture;

use super::config::OAuthConfigError;

/// Longer documents are not read.
const MAX_DOCUMENT_BYTES: usize = 512 << 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A document of the issuer cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The server of the issuer has no such document.
    ///
    /// Remedy: check `[serve.oauth] issuer`, including its path.
    #[error("{url}: not found")]
    NotFound {
        /// The URL of the document.
        url: String,
    },
    /// A document of the issuer could not be read; the text says why.
    ///
    /// Remedy: open the URL from the machine of the gateway: check name resolution, proxy, certificate and firewall.
    #[error("{url}: {reason}")]
    Failed {
        /// The URL of the document.
        url: String,
        /// Why.
        reason: String,
    },
}

/// Reads documents of the issuer: its metadata and its keys.
pub trait MetadataSource: Send + Sync + fmt::Debug {
    /// The text of a document.
    fn read<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, FetchError>>;
}

/// Reads documents over HTTP. It follows no redirects: keys come from where the operator said, or from where that document says.
#[derive(Debug, Clone)]
pub struct HttpMetadataSource(Client);

impl HttpMetadataSource {
    /// A source with a connection pool of its own.
    pub fn new() -> Result<Self, OAuthConfigError> {
        http_client().map(Self)
    }
}

/// A client for requests to the issuer, which follows no redirects.
pub(super) fn http_client() -> Result<Client, OAuthConfigError> {
    let client = Client::builder()
        .redirect(Policy::none())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(REQUEST_TIMEOUT)
        .build();
    client.map_err(|_| OAuthConfigError::HttpClient)
}

/// The body of a response; `None` if it is too long.
pub(super) async fn read_body(
    mut response: Response,
    max_bytes: usize,
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if chunk.len() > max_bytes - body.len() {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

impl MetadataSource for HttpMetadataSource {
    fn read<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, FetchError>> {
        Box::pin(async move {
            let failed = |reason: String| FetchError::Failed { url: url.to_owned(), reason };
            let without_url = |error: reqwest::Error| failed(error.without_url().to_string());
            let request = self.0.get(url).header(header::ACCEPT, "application/json");
            let response = request.send().await.map_err(without_url)?;
            match response.status() {
                StatusCode::OK => {}
                StatusCode::NOT_FOUND => return Err(FetchError::NotFound { url: url.to_owned() }),
                status => return Err(failed(format!("status {status}"))),
            }
            let body = read_body(response, MAX_DOCUMENT_BYTES).await.map_err(without_url)?;
            let body = body.ok_or_else(|| failed(format!("longer than {MAX_DOCUMENT_BYTES} bytes")))?;
            String::from_utf8(body).map_err(|_| failed("not UTF-8".to_owned()))
        })
    }
}
