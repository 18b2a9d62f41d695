//! What MCP servers may use of this machine: environment variables, stored secrets and OAuth tokens.

use std::{path::PathBuf, sync::Arc};

use toolyard_core::{CallerIdentity, SignInLink};
use toolyard_gateway::{OperatorSignIns, SignInRequest, SignIns};
use toolyard_mcp_client::{
    Authorizer, HostEnvironment, InstanceOwner, SecretText,
    config::{CallerGrant, McpServerConfig, OauthSettings, TransportConfig},
    oauth::{ClientIdentity, OAuthAuthorizer, OAuthError, OAuthServer, TokenStore},
};

use super::{CliContext, StoredSecrets, caller_tokens::exchanging_authorizer};

/// Environment variables, stored secrets and stored OAuth tokens.
#[derive(Debug)]
pub(crate) struct ServerCredentials {
    token_folder: PathBuf,
    secrets: StoredSecrets,
    /// Secrets of the gateway, which a server may find in its files.
    gateway_secrets: Vec<SecretText>,
    /// The pages at which callers sign in; none outside of a gateway on HTTP.
    sign_ins: Option<Arc<SignIns>>,
}

impl ServerCredentials {
    pub(crate) fn new(context: &CliContext) -> Self {
        Self {
            token_folder: context.data_folder.join("tokens"),
            secrets: context.stored_secrets(),
            gateway_secrets: Vec::new(),
            sign_ins: None,
        }
    }

    /// The same, with secrets of the gateway that are redacted in what servers send.
    pub(crate) fn with_gateway_secrets(self, gateway_secrets: Vec<SecretText>) -> Self {
        Self { gateway_secrets, ..self }
    }

    /// The same, with pages at which callers sign in.
    pub(crate) fn with_sign_ins(self, sign_ins: Option<Arc<SignIns>>) -> Self {
        Self { sign_ins, ..self }
    }

    /// The token store; created on the first sign-in.
    pub(crate) fn token_store(&self) -> Result<TokenStore, OAuthError> {
        Ok(TokenStore::with_key_file(&self.token_folder)?)
    }

    /// Whether somebody has ever signed in to a server.
    pub(crate) fn has_tokens(&self) -> bool {
        self.token_folder.is_dir()
    }

    /// OAuth with the operator's tokens for an HTTP server; `None` for a stdio server.
    pub(crate) fn oauth(&self, config: &McpServerConfig) -> Option<Result<OAuthAuthorizer, OAuthError>> {
        self.oauth_for(config, None)
    }

    /// The same with the tokens of a caller.
    pub(crate) fn oauth_for(
        &self,
        config: &McpServerConfig,
        caller: Option<&Arc<CallerIdentity>>,
    ) -> Option<Result<OAuthAuthorizer, OAuthError>> {
        let resolved = config.resolve(|name| self.secrets.variable(name)).ok()?;
        let TransportConfig::Http { url, .. } = &resolved.transport else { return None };
        let mut server = OAuthServer::new(config.id.as_str(), url.parse().ok()?);
        if let Some(oauth) = resolved.oauth {
            if let Some(client_id) = oauth.client_id {
                let client_secret = oauth.client_secret.map(SecretText::new);
                server.identity = ClientIdentity::Registered { client_id, client_secret };
            }
            (server.scopes, server.callback_port) = (oauth.scopes, oauth.callback_port);
            server.issuer = oauth.issuer;
        }
        server.caller = caller.cloned();
        Some(self.token_store().and_then(|tokens| OAuthAuthorizer::new(server, tokens)))
    }
}

impl OperatorSignIns for ServerCredentials {
    fn begin_operator_sign_in(&self, server: &McpServerConfig) -> Option<SignInLink> {
        let request = SignInRequest {
            server: server.id.to_string(),
            caller: None,
            authorizer: self.oauth(server)?.ok()?,
            challenge: None,
        };
        self.sign_ins.as_ref()?.begin(request)
    }
}

impl HostEnvironment for ServerCredentials {
    fn variable(&self, name: &str) -> Option<String> {
        self.secrets.variable(name)
    }

    fn secrets(&self) -> Vec<String> {
        self.gateway_secrets.iter().map(|secret| secret.expose().to_owned()).collect()
    }

    fn missing_reason(&self, name: &str) -> Option<String> {
        self.secrets.missing_reason(name)
    }

    fn authorizer(
        &self,
        server: &McpServerConfig,
        caller: Option<&Arc<InstanceOwner>>,
    ) -> Option<Arc<dyn Authorizer>> {
        // Such an instance never uses the tokens of the shared one.
        let exchanges = server.oauth.as_ref().is_some_and(OauthSettings::exchanges_tokens);
        if let Some(owner) = caller.filter(|_| exchanges) {
            let resolved = server.resolve(|name| self.secrets.variable(name)).ok()?;
            return match exchanging_authorizer(server, resolved, owner)? {
                Ok(authorizer) => Some(Arc::new(authorizer)),
                Err(error) => {
                    tracing::warn!(server = %server.id, %error, "callers get no tokens for this server");
                    None
                }
            };
        }
        // Tokens of the operator never serve a caller that is to have tokens of its own.
        let signs_in =
            server.oauth.as_ref().is_some_and(|oauth| oauth.per_caller == Some(CallerGrant::SignIn));
        let caller = caller.filter(|_| signs_in).map(|owner| owner.identity());
        // Without the folder, no sign-in has happened yet.
        if caller.is_none() && !self.has_tokens() {
            return None;
        }
        match self.oauth_for(server, caller.as_ref())? {
            Ok(authorizer) => Some(Arc::new(authorizer)),
            Err(error) => {
                tracing::warn!(server = %server.id, %error, "ignoring stored OAuth tokens");
                None
            }
        }
    }

    fn begin_sign_in(
        &self,
        server: &McpServerConfig,
        caller: &Arc<CallerIdentity>,
        challenge: Option<&str>,
    ) -> Option<SignInLink> {
        let sign_ins = self.sign_ins.as_ref()?;
        let request = SignInRequest {
            server: server.id.to_string(),
            caller: Some(Arc::clone(caller)),
            authorizer: self.oauth_for(server, Some(caller))?.ok()?,
            challenge: challenge.map(str::to_owned),
        };
        sign_ins.begin(request)
    }
}
