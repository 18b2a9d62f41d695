//! Tokens for programs: by a secret, by a signature, or by the word of someone else. No person is asked.

use rmcp::transport::auth::{ClientCredentialsConfig, OAuthTokenResponse};
use serde::Deserialize;
use url::Url;

use super::{
    ClientProof, HiddenText, OAuthError,
    assertion::assertion,
    flow::{Client, Flow, Found, account_of, no_token, now, quiet, told, wanted_scopes},
    tokens::Account,
    web::FlowWeb,
};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// What an identity provider says for someone.
#[derive(Deserialize)]
struct Word {
    access_token: HiddenText,
}

impl Flow<'_> {
    /// A token for a program.
    pub(super) async fn machine(
        &self,
        mut found: Found,
        client_id: &str,
        proof: &ClientProof,
        more_scopes: &[String],
    ) -> Result<Account, OAuthError> {
        let initial = found.manager.select_initial_scopes(&[]).await;
        let base = if self.server.scopes.is_empty() { &initial } else { &self.server.scopes };
        // A token of this kind is never renewed, so there is nothing to ask offline access for.
        let mut scopes = wanted_scopes(base, &[], more_scopes, &[]);
        scopes.retain(|scope| scope != "offline_access" || self.server.scopes.contains(scope));
        let issued = match proof {
            ClientProof::Secret(secret) => self.by_secret(&mut found, client_id, secret, &scopes).await?,
            ClientProof::Key { pem, algorithm } => {
                let signed = assertion(client_id, &found.issuer, pem, algorithm, now())?;
                let form = [
                    ("grant_type", "client_credentials"),
                    ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
                    ("client_assertion", &signed),
                ];
                self.ask(&found, &form, None, &scopes).await?
            }
            ClientProof::Assertion(word) => {
                let form =
                    [("grant_type", JWT_BEARER), ("assertion", word.reveal()), ("client_id", client_id)];
                self.ask(&found, &form, None, &scopes).await?
            }
            ClientProof::Company { client_secret, token_endpoint, client_id: known_as, id_token } => {
                let word = self.word(&found, token_endpoint, known_as, id_token, &scopes).await?;
                let form = [("grant_type", JWT_BEARER), ("assertion", word.reveal())];
                self.ask(&found, &form, Some((client_id, client_secret)), &scopes).await?
            }
        };
        let client = Client { id: client_id.to_owned(), secret: None, redirect_uri: None };
        account_of(&issued, &found, client, scopes)
    }

    async fn by_secret(
        &self,
        found: &mut Found,
        client_id: &str,
        secret: &HiddenText,
        scopes: &[String],
    ) -> Result<OAuthTokenResponse, OAuthError> {
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: client_id.to_owned(),
            client_secret: secret.reveal().to_owned(),
            scopes: scopes.to_vec(),
            resource: Some(self.server.resource()),
        };
        let told = |error| told(error, &[Some(secret)]);
        found.manager.validate_client_credentials_metadata(&config).map_err(told)?;
        found.manager.configure_client_credentials(&config).map_err(told)?;
        quiet(found.manager.exchange_client_credentials(&config)).await.map_err(told)
    }

    /// Sends a grant that rmcp does not know to the token endpoint.
    async fn ask(
        &self,
        found: &Found,
        form: &[(&str, &str)],
        account: Option<(&str, &HiddenText)>,
        scopes: &[String],
    ) -> Result<OAuthTokenResponse, OAuthError> {
        let (resource, scope) = (self.server.resource(), scopes.join(" "));
        let mut form = form.to_vec();
        form.push(("resource", &resource));
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let answer = found.web.post_form(&found.metadata.token_endpoint, &form, account).await?;
        serde_json::from_slice(&answer).map_err(|_| no_token())
    }

    /// What the identity provider says for the person, to this authorization server and about this server only.
    async fn word(
        &self,
        found: &Found,
        token_endpoint: &Url,
        client_id: &str,
        id_token: &HiddenText,
        scopes: &[String],
    ) -> Result<HiddenText, OAuthError> {
        let (resource, scope) = (self.server.resource(), scopes.join(" "));
        let mut form = vec![
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
            ("subject_token", id_token.reveal()),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
            ("audience", &found.issuer),
            ("resource", &resource),
            ("client_id", client_id),
        ];
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let web = FlowWeb::new(self.policy.clone())?;
        let answer = web.post_form(token_endpoint.as_str(), &form, None).await?;
        let word: Word = serde_json::from_slice(&answer).map_err(|_| no_token())?;
        Ok(word.access_token)
    }
}
