//! Tokens for programs, without a user: by client secret, private key or assertion.

use rmcp::transport::auth::{ClientCredentialsConfig, OAuthTokenResponse};
use serde::Deserialize;
use url::Url;

use super::{
    ClientAuthentication, OAuthError,
    client_assertion::sign_client_assertion,
    flow::{
        AuthorizationServer, Flow, OAuthClient, account_from, invalid_token_response, oauth_error,
        scopes_to_request, without_logs,
    },
    grant_types::{ID_JAG_TYPE, JWT_BEARER, TOKEN_EXCHANGE},
    http_client::{ClientLogin, OAuthHttp},
    token_store::{Account, unix_seconds},
};
use crate::SecretText;

/// The response of an identity provider.
#[derive(Deserialize)]
struct IdentityAssertion {
    access_token: SecretText,
    issued_token_type: Option<String>,
}

impl Flow<'_> {
    /// Obtains a token by client credentials or an assertion.
    pub(super) async fn request_client_credentials(
        &self,
        mut auth_server: AuthorizationServer,
        client_id: &str,
        authentication: &ClientAuthentication,
        more_scopes: &[String],
    ) -> Result<Account, OAuthError> {
        let initial = auth_server.manager.select_initial_scopes(&[]).await;
        let base = if self.server.scopes.is_empty() { &initial } else { &self.server.scopes };
        // These tokens are never renewed, so `offline_access` is not requested.
        let mut scopes = scopes_to_request(base, &[], more_scopes, &[]);
        scopes.retain(|scope| scope != "offline_access" || self.server.scopes.contains(scope));
        let issued = match authentication {
            ClientAuthentication::Secret(secret) => {
                self.grant_by_secret(&mut auth_server, client_id, secret, &scopes).await?
            }
            ClientAuthentication::PrivateKey { pem, algorithm } => {
                let signed =
                    sign_client_assertion(client_id, &auth_server.issuer, pem, algorithm, unix_seconds())?;
                let form = [
                    ("grant_type", "client_credentials"),
                    ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
                    ("client_assertion", &signed),
                ];
                self.post_grant(&auth_server, &form, None, &scopes).await?
            }
            ClientAuthentication::Assertion(assertion) => {
                let form =
                    [("grant_type", JWT_BEARER), ("assertion", assertion.expose()), ("client_id", client_id)];
                self.post_grant(&auth_server, &form, None, &scopes).await?
            }
            ClientAuthentication::IdentityProvider {
                client_secret,
                token_endpoint,
                client_id: provider_client_id,
                id_token,
            } => {
                let identity_assertion = self
                    .identity_assertion(&auth_server, token_endpoint, provider_client_id, id_token, &scopes)
                    .await?;
                let form = [("grant_type", JWT_BEARER), ("assertion", identity_assertion.expose())];
                let login = ClientLogin { client_id, secret: client_secret };
                self.post_grant(&auth_server, &form, Some(login), &scopes).await?
            }
            ClientAuthentication::Caller(caller) => {
                self.request_caller_token(&auth_server, caller, &scopes).await?
            }
        };
        let client = OAuthClient { id: client_id.to_owned(), secret: None, redirect_uri: None };
        let account = account_from(&issued, &auth_server, client, scopes)?;
        Ok(Account { refresh_token: None, ..account })
    }

    async fn grant_by_secret(
        &self,
        auth_server: &mut AuthorizationServer,
        client_id: &str,
        secret: &SecretText,
        scopes: &[String],
    ) -> Result<OAuthTokenResponse, OAuthError> {
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: client_id.to_owned(),
            client_secret: secret.expose().to_owned(),
            scopes: scopes.to_vec(),
            resource: Some(self.server.resource()),
        };
        let oauth_error = |error| oauth_error(error, &[Some(secret)]);
        auth_server.manager.validate_client_credentials_metadata(&config).map_err(oauth_error)?;
        auth_server.manager.configure_client_credentials(&config).map_err(oauth_error)?;
        without_logs(auth_server.manager.exchange_client_credentials(&config)).await.map_err(oauth_error)
    }

    /// Sends a grant that rmcp does not support to the token endpoint.
    async fn post_grant(
        &self,
        auth_server: &AuthorizationServer,
        form: &[(&str, &str)],
        login: Option<ClientLogin<'_>>,
        scopes: &[String],
    ) -> Result<OAuthTokenResponse, OAuthError> {
        let (resource, scope) = (self.server.resource(), scopes.join(" "));
        let mut form = form.to_vec();
        form.push(("resource", &resource));
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let response = auth_server.http.post_form(&auth_server.metadata.token_endpoint, &form, login).await?;
        serde_json::from_slice(&response).map_err(|_| invalid_token_response())
    }

    /// Exchanges an id token for an assertion that is valid for this authorization server and this resource.
    async fn identity_assertion(
        &self,
        auth_server: &AuthorizationServer,
        token_endpoint: &Url,
        client_id: &str,
        id_token: &SecretText,
        scopes: &[String],
    ) -> Result<SecretText, OAuthError> {
        let (resource, scope) = (self.server.resource(), scopes.join(" "));
        let mut form = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG_TYPE),
            ("subject_token", id_token.expose()),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
            ("audience", &auth_server.issuer),
            ("resource", &resource),
            ("client_id", client_id),
        ];
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let http = OAuthHttp::new(self.policy.clone())?;
        let response = http.post_form(token_endpoint.as_str(), &form, None).await?;
        let identity_assertion: IdentityAssertion =
            serde_json::from_slice(&response).map_err(|_| invalid_token_response())?;
        if identity_assertion.issued_token_type.is_some_and(|issued| issued != ID_JAG_TYPE) {
            return Err(OAuthError::Unavailable("the identity provider issued no ID-JAG".to_owned()));
        }
        Ok(identity_assertion.access_token)
    }
}
