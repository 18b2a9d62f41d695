//! The grants on behalf of a caller: its token is exchanged (RFC 8693), or its issuer vouches for it (ID-JAG,
//! draft-ietf-oauth-identity-assertion-authz-grant). The token of the caller goes to issuers that the operator configured, and
//! never to a server.

use rmcp::transport::auth::OAuthTokenResponse;
use serde::Deserialize;
use toolyard_core::PresentedToken;
use url::Url;

use super::{
    CallerToken, CallerTokenError, CallerTokenGrant, ExchangeRefusal, TokenClient,
    token_request::{TokenEndpoint, TokenRequestError},
};
use crate::{
    SecretText,
    oauth::{
        OAuthError,
        address_policy::AddressPolicy,
        flow::{AuthorizationServer, Flow, invalid_token_response},
        grant_types::{ACCESS_TOKEN_TYPE, ID_JAG_TYPE, JWT_BEARER, TOKEN_EXCHANGE},
        http_client::OAuthHttp,
        issuer_metadata::IssuerMetadata,
    },
    sanitize::sanitize_line,
};

/// The fields of RFC 8693 that are checked. An assertion is in `access_token`, too.
#[derive(Deserialize)]
struct ExchangeResponse {
    access_token: SecretText,
    issued_token_type: Option<String>,
}

impl Flow<'_> {
    /// Obtains a token on behalf of a caller. If an issuer does not accept the newest token of the caller, which may be revoked,
    /// another one is tried, once.
    pub(in crate::oauth) async fn request_caller_token(
        &self,
        auth_server: &AuthorizationServer,
        caller: &CallerToken,
        scopes: &[String],
    ) -> Result<OAuthTokenResponse, OAuthError> {
        let subject = caller.subject_token(&self.server.id)?;
        let outcome = self.request_with_subject(auth_server, caller, &subject, scopes).await;
        if !matches!(&outcome, Err(error) if is_refusal_of_token(error))
            || !caller.owner.refuse_token(&subject)
        {
            return outcome;
        }
        let subject = caller.subject_token(&self.server.id)?;
        let outcome = self.request_with_subject(auth_server, caller, &subject, scopes).await;
        if matches!(&outcome, Err(error) if is_refusal_of_token(error)) {
            caller.owner.refuse_token(&subject);
        }
        outcome
    }

    async fn request_with_subject(
        &self,
        auth_server: &AuthorizationServer,
        caller: &CallerToken,
        subject: &PresentedToken,
        scopes: &[String],
    ) -> Result<OAuthTokenResponse, OAuthError> {
        let metadata = self.pinned_metadata(auth_server).await?;
        let endpoint = TokenEndpoint {
            http: &auth_server.http,
            issuer: &metadata.issuer,
            url: &metadata.token_endpoint,
            authentication_methods: metadata.authentication_methods.as_deref(),
        };
        let (resource, scope) = (self.server.resource(), scopes.join(" "));
        let mut form = vec![("resource", resource.as_str())];
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        match &caller.grant {
            CallerTokenGrant::TokenExchange { audience } => {
                form.extend(exchange_fields(subject, ACCESS_TOKEN_TYPE));
                form.extend(audience.as_deref().map(|audience| ("audience", audience)));
                let body = self.request_token(&endpoint, &caller.client, &form).await?;
                self.check_response(&body, &endpoint, Some(ACCESS_TOKEN_TYPE), subject)?;
                serde_json::from_slice(&body).map_err(|_| invalid_token_response())
            }
            CallerTokenGrant::IdJag { issuer_client } => {
                let issuer = caller.owner.identity().issuer.to_string();
                let assertion =
                    self.request_id_jag(&issuer, issuer_client, subject, endpoint.issuer, &form).await?;
                form.extend([("grant_type", JWT_BEARER), ("assertion", assertion.expose())]);
                let body = self.request_token(&endpoint, &caller.client, &form).await?;
                let issued = self.check_response(&body, &endpoint, None, subject)?;
                if issued == assertion {
                    return Err(self.unusable(&endpoint, "the assertion itself").into());
                }
                serde_json::from_slice(&body).map_err(|_| invalid_token_response())
            }
        }
    }

    /// The metadata of the configured issuer, read from that issuer. A server names its authorization server itself; if it
    /// could also name the token endpoint, a compromised server would collect the tokens of callers.
    async fn pinned_metadata(&self, auth_server: &AuthorizationServer) -> Result<IssuerMetadata, OAuthError> {
        let Some(issuer) = &self.server.issuer else {
            return Err(CallerTokenError::NoIssuer { server: self.server.id.clone() }.into());
        };
        let metadata = IssuerMetadata::discover(&auth_server.http, self.policy, issuer).await?;
        if metadata.token_endpoint != auth_server.metadata.token_endpoint {
            return Err(OAuthError::Discovery(format!(
                "server `{}` names another token endpoint than its issuer {}",
                self.server.id,
                sanitize_line(issuer)
            )));
        }
        Ok(metadata)
    }

    /// Asks the issuer of the caller for an assertion that is valid at `audience`. `form` says for which server and scopes.
    async fn request_id_jag(
        &self,
        issuer: &str,
        client: &TokenClient,
        subject: &PresentedToken,
        audience: &str,
        form: &[(&str, &str)],
    ) -> Result<SecretText, OAuthError> {
        // The operator configured this issuer in `[serve.oauth]`, so that its own address is trusted.
        let url = Url::parse(issuer)
            .map_err(|_| OAuthError::Discovery(format!("issuer {} is not a URL", sanitize_line(issuer))))?;
        let policy = AddressPolicy::new(&url);
        policy.check(&url)?;
        let http = OAuthHttp::new(policy.clone())?;
        let metadata = IssuerMetadata::discover(&http, &policy, issuer).await?;
        let endpoint = TokenEndpoint {
            http: &http,
            issuer: &metadata.issuer,
            url: &metadata.token_endpoint,
            authentication_methods: metadata.authentication_methods.as_deref(),
        };
        let mut form = form.to_vec();
        form.extend(exchange_fields(subject, ID_JAG_TYPE));
        form.push(("audience", audience));
        let body = self.request_token(&endpoint, client, &form).await?;
        self.check_response(&body, &endpoint, Some(ID_JAG_TYPE), subject)
    }

    async fn request_token(
        &self,
        endpoint: &TokenEndpoint<'_>,
        client: &TokenClient,
        form: &[(&str, &str)],
    ) -> Result<Vec<u8>, OAuthError> {
        endpoint.request(client, form).await.map_err(|error| match error {
            TokenRequestError::Refused { code, description } => CallerTokenError::Refused {
                server: self.server.id.clone(),
                issuer: sanitize_line(endpoint.issuer),
                refusal: ExchangeRefusal::of_code(&code),
                reason: if description.is_empty() { code } else { format!("{code}: {description}") },
            }
            .into(),
            TokenRequestError::Failed(error) => error,
        })
    }

    /// The issued token. An issuer that returns the token of the caller would make it reach the server.
    fn check_response(
        &self,
        body: &[u8],
        endpoint: &TokenEndpoint<'_>,
        expected_type: Option<&str>,
        subject: &PresentedToken,
    ) -> Result<SecretText, OAuthError> {
        let response: ExchangeResponse =
            serde_json::from_slice(body).map_err(|_| self.unusable(endpoint, "no token"))?;
        if response.access_token.expose().trim() == subject.expose() {
            return Err(self.unusable(endpoint, "the token of the caller").into());
        }
        match (expected_type, response.issued_token_type.as_deref()) {
            (Some(expected), Some(issued)) if issued != expected => {
                Err(self.unusable(endpoint, "a token of another type than the requested one").into())
            }
            (Some(_), None) => {
                Err(self.unusable(endpoint, "a token of unknown type: `issued_token_type` is missing").into())
            }
            _ => Ok(response.access_token),
        }
    }

    fn unusable(&self, endpoint: &TokenEndpoint<'_>, problem: &'static str) -> CallerTokenError {
        let issuer = sanitize_line(endpoint.issuer);
        CallerTokenError::Unusable { server: self.server.id.clone(), issuer, problem }
    }
}

fn is_refusal_of_token(error: &OAuthError) -> bool {
    let OAuthError::CallerToken(CallerTokenError::Refused { refusal, .. }) = error else { return false };
    *refusal == ExchangeRefusal::CallerToken
}

fn exchange_fields<'a>(
    subject: &'a PresentedToken,
    requested_type: &'static str,
) -> [(&'static str, &'a str); 4] {
    [
        ("grant_type", TOKEN_EXCHANGE),
        ("subject_token", subject.expose()),
        ("subject_token_type", ACCESS_TOKEN_TYPE),
        ("requested_token_type", requested_type),
    ]
}
