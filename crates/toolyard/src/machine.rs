//! What MCP servers need of this machine: variables, and who signs in.

use std::{path::PathBuf, sync::Arc};

use toolyard_mcp::{
    client::{
        Authorizer, Surroundings,
        oauth::{ClientIdentity, HiddenText, OAuthAuthorizer, OAuthError, OAuthServer, TokenStore},
    },
    config::{McpServerConfig, TransportConfig},
};

use crate::folders::Workplace;

/// This machine, as servers may see it.
#[derive(Debug)]
pub(crate) struct Machine {
    tokens: PathBuf,
}

impl Machine {
    pub(crate) fn new(workplace: &Workplace) -> Self {
        Self { tokens: workplace.data_folder.join("tokens") }
    }

    /// Where tokens are kept; made when somebody signs in for the first time.
    pub(crate) fn tokens(&self) -> Result<TokenStore, OAuthError> {
        Ok(TokenStore::with_own_key(&self.tokens)?)
    }

    /// Who signs in at a server; none for a program, which does that by itself.
    pub(crate) fn sign_in(&self, config: &McpServerConfig) -> Option<Result<OAuthAuthorizer, OAuthError>> {
        let resolved = config.resolve(|name| std::env::var(name).ok()).ok()?;
        let TransportConfig::Http { url, .. } = &resolved.transport else { return None };
        let mut server = OAuthServer::new(config.id.as_str(), url.parse().ok()?);
        if let Some(oauth) = resolved.oauth {
            if let Some(client_id) = oauth.client_id {
                let client_secret = oauth.client_secret.map(HiddenText::new);
                server.identity = ClientIdentity::Registered { client_id, client_secret };
            }
            (server.scopes, server.callback_port) = (oauth.scopes, oauth.callback_port);
        }
        Some(self.tokens().and_then(|tokens| OAuthAuthorizer::new(server, tokens)))
    }
}

impl Surroundings for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn authorizer(&self, server: &McpServerConfig) -> Option<Arc<dyn Authorizer>> {
        // Nobody has signed in anywhere yet.
        if !self.tokens.is_dir() {
            return None;
        }
        match self.sign_in(server)? {
            Ok(authorizer) => Some(Arc::new(authorizer)),
            Err(error) => {
                tracing::warn!(server = %server.id, %error, "tokens cannot be used");
                None
            }
        }
    }
}
