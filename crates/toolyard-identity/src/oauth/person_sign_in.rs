//! [`OidcSignIn`]: a person signs in at the issuer of access tokens (OpenID Connect, authorization code with PKCE).

use std::{fmt, sync::Arc};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::{Client, header};
use serde::Deserialize;
use serde_json::Value;
use toolyard_core::{BoxFuture, CallerIdentity, PersonLogin, PersonSignIn, PersonSignInError};
use url::{Url, form_urlencoded};

use super::{
    config::{OAuthConfig, OAuthConfigError, check_address},
    discovery::read_metadata,
    fetch::{MetadataSource, http_client, read_body},
    verifier::OAuthVerifier,
};
use crate::group_access::GroupAccess;

const MAX_RESPONSE_BYTES: usize = 256 << 10;

/// Signs people in with a public client of the issuer.
pub struct OidcSignIn {
    client_id: String,
    source: Arc<dyn MetadataSource>,
    http: Client,
    /// Verifies ID tokens: signed by the issuer, for this client.
    verifier: OAuthVerifier,
}

/// What is needed of the issuer's metadata.
#[derive(Deserialize)]
struct IssuerEndpoints {
    authorization_endpoint: String,
    token_endpoint: String,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

#[derive(Deserialize)]
struct TokenResponse {
    id_token: String,
}

impl OidcSignIn {
    /// A sign-in at the issuer of a configuration, with the id of a public client.
    ///
    /// # Errors
    /// If the configuration is not valid.
    pub fn new(
        config: &OAuthConfig,
        client_id: &str,
        source: Arc<dyn MetadataSource>,
    ) -> Result<Self, OAuthConfigError> {
        let config = OAuthConfig {
            audiences: vec![client_id.to_owned()],
            // Scopes and groups are those of access tokens.
            scopes: Vec::new(),
            groups_claim: None,
            group_access: GroupAccess::default(),
            ..config.clone()
        };
        Ok(Self {
            client_id: client_id.to_owned(),
            verifier: OAuthVerifier::new(config, Arc::clone(&source))?,
            source,
            http: http_client()?,
        })
    }

    async fn endpoints(&self) -> Result<IssuerEndpoints, PersonSignInError> {
        let (text, url) = read_metadata(&*self.source, &self.verifier.config().issuer)
            .await
            .map_err(|error| PersonSignInError(error.to_string()))?;
        let invalid = |reason: &str| PersonSignInError(format!("{url}: invalid metadata: {reason}"));
        let endpoints: IssuerEndpoints =
            serde_json::from_str(&text).map_err(|error| invalid(&error.to_string()))?;
        for endpoint in [&endpoints.authorization_endpoint, &endpoints.token_endpoint] {
            let parsed = Url::parse(endpoint).map_err(|_| invalid("an endpoint is not a URL"))?;
            check_address(&parsed).map_err(invalid)?;
        }
        Ok(endpoints)
    }

    async fn begin_login(&self, redirect_uri: &str) -> Result<PersonLogin, PersonSignInError> {
        let endpoints = self.endpoints().await?;
        let (state, nonce, code_verifier) = (random_text()?, random_text()?, random_text()?);
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, code_verifier.as_bytes()));
        let mut url = Url::parse(&endpoints.authorization_endpoint)
            .map_err(|_| PersonSignInError("the issuer has no page to sign in".to_owned()))?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client_id)
            .append_pair("redirect_uri", redirect_uri)
            .append_pair("scope", "openid")
            .append_pair("state", &state)
            .append_pair("nonce", &nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(PersonLogin {
            url: url.into(),
            state,
            nonce,
            code_verifier,
            redirect_uri: redirect_uri.to_owned(),
        })
    }

    async fn finish_login(
        &self,
        login: PersonLogin,
        code: &str,
        issuer: Option<&str>,
    ) -> Result<CallerIdentity, PersonSignInError> {
        let endpoints = self.endpoints().await?;
        let expected = self.verifier.config().issuer.as_str();
        // RFC 9207: a response of another issuer would reveal the code to the wrong one.
        let is_missing = issuer.is_none() && endpoints.authorization_response_iss_parameter_supported;
        if is_missing || issuer.is_some_and(|issuer| issuer != expected) {
            return Err(PersonSignInError("the response is of another issuer".to_owned()));
        }
        let id_token = self.redeem(&endpoints.token_endpoint, &login, code).await?;
        let identity = self
            .verifier
            .verify(&id_token)
            .await
            .map_err(|error| PersonSignInError(format!("the ID token is not accepted: {error}")))?;
        let claim = |name: &str| identity.claims.get(name).and_then(Value::as_str);
        if claim("nonce") != Some(login.nonce.as_str()) {
            return Err(PersonSignInError("the ID token is of another sign-in".to_owned()));
        }
        if claim("azp").is_some_and(|party| party != self.client_id) {
            return Err(PersonSignInError("the ID token is for another client".to_owned()));
        }
        Ok(CallerIdentity::principal(&identity.issuer, &identity.subject))
    }

    async fn redeem(
        &self,
        endpoint: &str,
        login: &PersonLogin,
        code: &str,
    ) -> Result<String, PersonSignInError> {
        let failed = |reason: &str| PersonSignInError(format!("the issuer returned no ID token: {reason}"));
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &login.redirect_uri)
            .append_pair("client_id", &self.client_id)
            .append_pair("code_verifier", &login.code_verifier)
            .finish();
        let request = self
            .http
            .post(endpoint)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json")
            .body(form);
        // Errors of the client quote the URL, never the form; neither is shown.
        let response = request.send().await.map_err(|_| failed("the connection failed"))?;
        let status = response.status();
        if !status.is_success() {
            return Err(failed(&format!("status {status}")));
        }
        let body =
            read_body(response, MAX_RESPONSE_BYTES).await.map_err(|_| failed("the connection failed"))?;
        let body = body.ok_or_else(|| failed("the response is too long"))?;
        let response: TokenResponse =
            serde_json::from_slice(&body).map_err(|_| failed("the response has no ID token"))?;
        Ok(response.id_token)
    }
}

impl PersonSignIn for OidcSignIn {
    fn issuer(&self) -> &str {
        &self.verifier.config().issuer
    }

    fn begin<'a>(&'a self, redirect_uri: &'a str) -> BoxFuture<'a, Result<PersonLogin, PersonSignInError>> {
        Box::pin(self.begin_login(redirect_uri))
    }

    fn finish<'a>(
        &'a self,
        login: PersonLogin,
        code: &'a str,
        issuer: Option<&'a str>,
    ) -> BoxFuture<'a, Result<CallerIdentity, PersonSignInError>> {
        Box::pin(self.finish_login(login, code, issuer))
    }
}

impl fmt::Debug for OidcSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OidcSignIn").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// 256 random bits as text.
fn random_text() -> Result<String, PersonSignInError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|_| PersonSignInError("the operating system provides no random numbers".to_owned()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
