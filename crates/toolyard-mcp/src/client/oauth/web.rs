//! The requests of an authorization flow: bounded, and only to addresses that may be called.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{
    Body, Client, Request, Response, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{ACCEPT, CONTENT_TYPE, HeaderValue},
    redirect::Policy,
};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::{
    HiddenText, OAuthError,
    address::AddressPolicy,
    dpop::{ProofKey, USE_NONCE, usable_nonce},
    flow::now,
};
use crate::client::http_target::{DPOP, DPOP_NONCE, harmless};

const TIME_LIMIT: Duration = Duration::from_secs(30);
const MOST_BYTES: usize = 1024 * 1024;

/// Makes the requests of a flow. It follows no redirect: rmcp follows those of discovery itself, within one origin, and
/// whoever redirects a registration or a request for a token wants it to end up elsewhere.
#[derive(Debug)]
pub(super) struct FlowWeb {
    client: Client,
    policy: AddressPolicy,
    /// Where a proof is wanted, and what makes it.
    proofs: Mutex<Option<(Url, Arc<ProofKey>)>>,
}

impl FlowWeb {
    pub(super) fn new(policy: AddressPolicy) -> Result<Self, OAuthError> {
        let client = Client::builder()
            .redirect(Policy::none())
            .referer(false)
            .no_proxy()
            .timeout(TIME_LIMIT)
            .dns_resolver(FilteredNames(policy.clone()))
            .build()
            .map_err(|error| OAuthError::Unavailable(error.to_string()))?;
        Ok(Self { client, policy, proofs: Mutex::default() })
    }

    /// Proves from now on to this token endpoint that the key is ours.
    pub(super) fn prove(&self, token_endpoint: &str, key: Arc<ProofKey>) -> Result<(), OAuthError> {
        let url = Url::parse(token_endpoint)
            .map_err(|_| OAuthError::Discovery("it has no usable addresses".to_owned()))?;
        *self.proofs.lock().unwrap_or_else(PoisonError::into_inner) = Some((url, key));
        Ok(())
    }

    /// Sends a form to a token endpoint and gives the body of its answer.
    pub(super) async fn post_form(
        &self,
        url: &str,
        form: &[(&str, &str)],
        account: Option<(&str, &HiddenText)>,
    ) -> Result<Vec<u8>, OAuthError> {
        let url =
            Url::parse(url).map_err(|_| OAuthError::Discovery("it has no usable addresses".to_owned()))?;
        let mut request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .body(form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish());
        if let Some((name, secret)) = account {
            // RFC 6749 wants both encoded like a form before they are joined.
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            request = request.basic_auth(encoded(name), Some(encoded(secret.reveal())));
        }
        let request =
            request.build().map_err(|_| OAuthError::Unavailable("it could not be asked".to_owned()))?;
        let unreachable = |_| OAuthError::Unavailable("it could not be reached".to_owned());
        let (response, body) = self.send(request).await.map_err(unreachable)?;
        if response.status().is_success() {
            return Ok(body);
        }
        let said = |name: &str| {
            let value: Value = serde_json::from_slice(&body).ok()?;
            value.get(name)?.as_str().map(harmless)
        };
        let error = said("error").unwrap_or_else(|| format!("HTTP status {}", response.status().as_u16()));
        Err(OAuthError::Refused(format!("{error} {}", said("error_description").unwrap_or_default())))
    }

    /// Sends a request, with a proof where one is wanted, and once more where the proof must have a nonce in it.
    async fn send(&self, mut request: Request) -> Result<(Response, Vec<u8>), OAuthHttpClientError> {
        self.policy.check(request.url())?;
        let proofs = self.proofs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((_, key)) = proofs.filter(|(url, _)| url == request.url()) else {
            return self.send_once(request).await;
        };
        let proof = |request: &Request, nonce: Option<&str>| {
            let proof = key.proof(request.method().as_str(), request.url(), None, nonce, now())?;
            Ok::<_, OAuthHttpClientError>(HeaderValue::from_str(&proof)?)
        };
        let first = proof(&request, None)?;
        request.headers_mut().insert(DPOP, first);
        let Some(mut again) = request.try_clone() else { return self.send_once(request).await };
        let (response, body) = self.send_once(request).await?;
        let nonce = response.headers().get(DPOP_NONCE).and_then(|nonce| usable_nonce(nonce.to_str().ok()?));
        let wants_nonce = response.status() == StatusCode::BAD_REQUEST
            && serde_json::from_slice::<Value>(&body)
                .is_ok_and(|body| body.get("error") == Some(&USE_NONCE.into()));
        match nonce {
            Some(nonce) if wants_nonce => {
                let second = proof(&again, Some(&nonce))?;
                again.headers_mut().insert(DPOP, second);
                self.send_once(again).await
            }
            _ => Ok((response, body)),
        }
    }

    async fn send_once(&self, request: Request) -> Result<(Response, Vec<u8>), OAuthHttpClientError> {
        let mut response = self.client.execute(request).await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if chunk.len() > MOST_BYTES - body.len() {
                return Err(format!("its answer is longer than {MOST_BYTES} bytes").into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok((response, body))
    }
}

impl OAuthHttpClient for FlowWeb {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let (response, body) = self.send(Request::try_from(request.request)?).await?;
            Ok(http::Response::<Body>::from(response).map(|_| body))
        })
    }
}

/// Looks names up and keeps only the addresses that may be connected to: a name that looks public may lead inside.
struct FilteredNames(AddressPolicy);

impl Resolve for FilteredNames {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0))
                .await?
                .filter(|address| policy.allows_address(name.as_str(), address.ip()))
                .collect();
            if found.is_empty() {
                return Err(
                    format!("{} has no address that may be asked for authorization", name.as_str()).into()
                );
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
