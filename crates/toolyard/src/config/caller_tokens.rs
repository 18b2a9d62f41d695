//! Tokens of single callers for MCP servers, which are obtained without a sign-in and kept in memory.

use std::sync::Arc;

use toolyard_mcp_client::{
    InstanceOwner, SecretText,
    config::{CallerGrant, McpServerConfig, OauthSettings, ResolvedServer, TransportConfig},
    oauth::{
        CallerToken, CallerTokenGrant, ClientAuthentication, ClientIdentity, OAuthAuthorizer, OAuthError,
        OAuthServer, TokenClient, TokenStore,
    },
};

/// OAuth on behalf of one caller; `None` if the settings of the server say otherwise.
pub(super) fn exchanging_authorizer(
    config: &McpServerConfig,
    resolved: ResolvedServer,
    owner: &Arc<InstanceOwner>,
) -> Option<Result<OAuthAuthorizer, OAuthError>> {
    let TransportConfig::Http { url, .. } = &resolved.transport else { return None };
    let oauth = resolved.oauth?;
    let client_id = oauth.client_id.clone()?;
    let caller = CallerToken {
        owner: Arc::clone(owner),
        client: TokenClient::new(&client_id, oauth.client_secret.clone().map(SecretText::new)),
        grant: caller_grant(&oauth)?,
    };
    let mut server = OAuthServer::new(config.id.as_str(), url.parse().ok()?);
    let authentication = ClientAuthentication::Caller(caller);
    server.identity = ClientIdentity::ClientCredentials { client_id, authentication };
    (server.issuer, server.scopes) = (oauth.issuer, oauth.scopes);
    Some(OAuthAuthorizer::new(server, TokenStore::in_memory()))
}

fn caller_grant(oauth: &OauthSettings) -> Option<CallerTokenGrant> {
    match oauth.per_caller? {
        CallerGrant::TokenExchange => {
            Some(CallerTokenGrant::TokenExchange { audience: oauth.audience.clone() })
        }
        CallerGrant::IdJag => {
            let client = oauth.id_jag.clone()?;
            let secret = client.client_secret.map(SecretText::new);
            Some(CallerTokenGrant::IdJag { issuer_client: TokenClient::new(client.client_id, secret) })
        }
        CallerGrant::SignIn => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toolyard_core::CallerIdentity;
    use toolyard_mcp_client::config::ServerSettings;

    use super::*;

    #[test]
    fn only_the_grants_without_a_sign_in_exchange_tokens() {
        let owner = Arc::new(InstanceOwner::new(Arc::new(CallerIdentity::principal("https://id", "ada"))));
        let client = "client_id = 'a', client_secret = '${SECRET}', issuer = 'https://as.example'";
        for (settings, expected) in [
            (format!("{client}, per_caller = 'token_exchange'"), true),
            (format!("{client}, per_caller = 'id_jag', id_jag = {{client_id = 'b'}}"), true),
            (format!("{client}, per_caller = 'sign_in'"), false),
            (client.to_owned(), false),
        ] {
            let text = format!("url = 'https://notes.example/mcp'\noauth = {{{settings}}}");
            let parsed: ServerSettings = toml::from_str(&text).unwrap();
            let config = parsed.into_config("notes", Path::new("/")).unwrap();
            let resolved = config.resolve(|_| Some("s3cret".to_owned())).unwrap();
            let authorizer = exchanging_authorizer(&config, resolved, &owner);
            let exchanges = config.oauth.as_ref().unwrap().exchanges_tokens();
            assert_eq!((authorizer.is_some(), exchanges), (expected, expected), "{text}");
            let shown = format!("{:?}", authorizer.transpose().unwrap());
            assert!(!shown.contains("s3cret"), "{shown}");
        }
    }
}
