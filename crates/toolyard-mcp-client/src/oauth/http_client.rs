//! The HTTP client of authorization flows: bounded responses, allowed addresses only.

use std::{net::SocketAddr, time::Duration};

use reqwest::{
    Body, Client, Request, Response, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{ACCEPT, CONTENT_TYPE, LOCATION},
    redirect::Policy,
};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::{OAuthError, address_policy::AddressPolicy};
use crate::{SecretText, sanitize::sanitize_line};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
const MAX_METADATA_REDIRECTS: usize = 5;

/// Sends the requests of a flow. Follows no redirects but those of metadata within one origin: a redirected
/// registration or token request would leak secrets.
#[derive(Debug)]
pub(super) struct OAuthHttp {
    client: Client,
    policy: AddressPolicy,
}

/// Client id and secret in the `Authorization` header.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientLogin<'a> {
    pub(super) client_id: &'a str,
    pub(super) secret: &'a SecretText,
}

impl OAuthHttp {
    pub(super) fn new(policy: AddressPolicy) -> Result<Self, OAuthError> {
        let client = Client::builder()
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .timeout(REQUEST_TIMEOUT)
            .dns_resolver(FilteredResolver(policy.clone()))
            .build()
            .map_err(|error| OAuthError::Unavailable(error.to_string()))?;
        Ok(Self { client, policy })
    }

    /// Reads a metadata document; `None` if there is none. Follows redirects within the origin, as rmcp does.
    pub(super) async fn get(&self, url: &str) -> Result<Option<Vec<u8>>, OAuthError> {
        let failed = |reason: &str| OAuthError::Discovery(format!("{}: {reason}", sanitize_line(url)));
        let mut next = parse_metadata_url(url)?;
        for _ in 0..MAX_METADATA_REDIRECTS {
            let request = self.client.get(next.clone()).header(ACCEPT, "application/json").build();
            let request =
                request.map_err(|_| OAuthError::Unavailable("the request is invalid".to_owned()))?;
            let (response, body) = self.send(request).await.map_err(|_| failed("the connection failed"))?;
            if response.status() == StatusCode::OK {
                return Ok(Some(body));
            }
            let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
            let Some(location) = location else { return Ok(None) };
            let target = location.to_str().ok().and_then(|location| next.join(location).ok());
            next = target
                .filter(|target| target.origin() == next.origin())
                .ok_or_else(|| failed("redirected to another site"))?;
        }
        Err(failed("too many redirects"))
    }

    /// Posts a form to a token endpoint and returns the response body.
    pub(super) async fn post_form(
        &self,
        url: &str,
        form: &[(&str, &str)],
        login: Option<ClientLogin<'_>>,
    ) -> Result<Vec<u8>, OAuthError> {
        let (status, body) = self.post(url, form, login).await?;
        if status.is_success() {
            return Ok(body);
        }
        let error_field = |name: &str| {
            let value: Value = serde_json::from_slice(&body).ok()?;
            value.get(name)?.as_str().map(sanitize_line)
        };
        let error = error_field("error").unwrap_or_else(|| format!("HTTP status {}", status.as_u16()));
        Err(OAuthError::Refused(format!("{error} {}", error_field("error_description").unwrap_or_default())))
    }

    /// Posts a form to a token endpoint.
    pub(super) async fn post(
        &self,
        url: &str,
        form: &[(&str, &str)],
        login: Option<ClientLogin<'_>>,
    ) -> Result<(StatusCode, Vec<u8>), OAuthError> {
        let mut request = self
            .client
            .post(parse_metadata_url(url)?)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .body(form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish());
        if let Some(ClientLogin { client_id, secret }) = login {
            // RFC 6749 requires form encoding of both.
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            request = request.basic_auth(encoded(client_id), Some(encoded(secret.expose())));
        }
        let request =
            request.build().map_err(|_| OAuthError::Unavailable("the request is invalid".to_owned()))?;
        let unreachable = |_| OAuthError::Unavailable("the connection failed".to_owned());
        let (response, body) = self.send(request).await.map_err(unreachable)?;
        Ok((response.status(), body))
    }

    async fn send(&self, request: Request) -> Result<(Response, Vec<u8>), OAuthHttpClientError> {
        self.policy.check(request.url())?;
        let mut response = self.client.execute(request).await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if chunk.len() > MAX_RESPONSE_BYTES - body.len() {
                return Err(format!("the response is longer than {MAX_RESPONSE_BYTES} bytes").into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok((response, body))
    }
}

impl OAuthHttpClient for OAuthHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let (response, body) = self.send(Request::try_from(request.request)?).await?;
            Ok(http::Response::<Body>::from(response).map(|_| body))
        })
    }
}

pub(super) fn parse_metadata_url(text: &str) -> Result<Url, OAuthError> {
    Url::parse(text).map_err(|_| OAuthError::Discovery("the metadata contains invalid URLs".to_owned()))
}

/// Resolves names to allowed addresses only: a public name may point into a private network.
struct FilteredResolver(AddressPolicy);

impl Resolve for FilteredResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.0.clone();
        Box::pin(async move {
            let allowed: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0))
                .await?
                .filter(|address| policy.allows_address(name.as_str(), address.ip()))
                .collect();
            if allowed.is_empty() {
                return Err(format!("{} resolves to no allowed address", name.as_str()).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}
