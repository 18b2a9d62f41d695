//! What MCP servers may use of this machine: environment variables, stored secrets and OAuth tokens.

use std::{path::PathBuf, sync::Arc};

use toolyard_mcp_client::{
    Authorizer, HostEnvironment, InstanceOwner, SecretText,
    config::{McpServerConfig, TransportConfig},
    oauth::{ClientIdentity, OAuthAuthorizer, OAuthError, OAuthServer, TokenStore},
};

use super::{
    CliContext, StoredSecrets,
    caller_tokens::{exchanges_tokens, exchanging_authorizer},
};

/// Environment variables, stored secrets and stored OAuth tokens.
#[derive(Debug)]
pub(crate) struct ServerCredentials {
    token_folder: PathBuf,
    secrets: StoredSecrets,
    /// Secrets of the gateway, which a server may find in its files.
    gateway_secrets: Vec<SecretText>,
}

impl ServerCredentials {
    pub(crate) fn new(context: &CliContext) -> Self {
        Self {
            token_folder: context.data_folder.join("tokens"),
            secrets: context.stored_secrets(),
            gateway_secrets: Vec::new(),
        }
    }

    /// The same, with secrets of the gateway that are redacted in what servers send.
    pub(crate) fn with_gateway_secrets(self, gateway_secrets: Vec<SecretText>) -> Self {
        Self { gateway_secrets, ..self }
    }

    /// The token store; created on the first sign-in.
    pub(crate) fn token_store(&self) -> Result<TokenStore, OAuthError> {
        Ok(TokenStore::with_key_file(&self.token_folder)?)
    }

    /// OAuth for an HTTP server; `None` for a stdio server.
    pub(crate) fn oauth(&self, config: &McpServerConfig) -> Option<Result<OAuthAuthorizer, OAuthError>> {
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
        Some(self.token_store().and_then(|tokens| OAuthAuthorizer::new(server, tokens)))
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
        if let Some(owner) = caller.filter(|_| exchanges_tokens(server)) {
            let resolved = server.resolve(|name| self.secrets.variable(name)).ok()?;
            return match exchanging_authorizer(server, resolved, owner)? {
                Ok(authorizer) => Some(Arc::new(authorizer)),
                Err(error) => {
                    tracing::warn!(server = %server.id, %error, "callers get no tokens for this server");
                    None
                }
            };
        }
        // Without the folder, no sign-in has happened yet.
        if !self.token_folder.is_dir() {
            return None;
        }
        match self.oauth(server)? {
            Ok(authorizer) => Some(Arc::new(authorizer)),
            Err(error) => {
                tracing::warn!(server = %server.id, %error, "ignoring stored OAuth tokens");
                None
            }
        }
    }
}
