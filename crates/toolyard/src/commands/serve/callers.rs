//! How callers are told apart: API keys in the store, access tokens, and what a trusted proxy says.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use toolyard::settings::{CallerGroupSettings, CallerOAuthSettings, ProxyIdentitySettings, ServeSettings};
use toolyard_core::Authenticator;
use toolyard_identity::{
    AddressRange, CallerAuthenticator, GroupAccess, GroupLimits, HttpMetadataSource, InvalidAddressRange,
    OAuthConfig, OAuthConfigError, OAuthVerifier, OidcSignIn, ProxyIdentity,
};
use toolyard_store::Store;

use crate::{commands::callers::MAIN_ENDPOINT, error::CliError};

const OAUTH_TABLE: &str = "[serve.oauth]";
const PROXY_TABLE: &str = "[serve.proxy_identity]";

type Groups = BTreeMap<String, CallerGroupSettings>;

/// Builds authenticators from settings. When settings are reloaded, what is known about unchanged ones stays: keys of the issuer, and
/// verified tokens.
#[derive(Debug, Default)]
pub(super) struct CallerAuthentication {
    oauth: Mutex<Option<Arc<OAuthVerifier>>>,
}

impl CallerAuthentication {
    /// The authenticator; `None` if only the gateway's own token counts.
    pub(super) fn build(
        &self,
        serve: &ServeSettings,
        store: Option<&Store>,
    ) -> Result<Option<Arc<dyn Authenticator>>, CliError> {
        check_groups(serve)?;
        if store.is_none() && serve.oauth.is_none() && serve.proxy_identity.is_none() {
            return Ok(None);
        }
        let mut authenticator = CallerAuthenticator::new();
        if let Some(store) = store {
            // Keys may be added while the gateway runs.
            authenticator = authenticator.with_api_keys(Arc::new(store.clone()));
        }
        if let Some(settings) = &serve.oauth {
            authenticator = authenticator.with_oauth(self.verifier(settings, &serve.groups)?);
            if let Some(client_id) = &settings.sign_in_client_id {
                let source = Arc::new(HttpMetadataSource::new().map_err(oauth_error)?);
                let sign_in = OidcSignIn::new(&oauth_config(settings, &serve.groups), client_id, source);
                authenticator = authenticator.with_person_sign_in(Arc::new(sign_in.map_err(oauth_error)?));
            }
        }
        if let Some(settings) = &serve.proxy_identity {
            authenticator = authenticator.with_proxy(proxy_identity(settings, &serve.groups)?);
        }
        Ok(Some(Arc::new(authenticator)))
    }

    /// The verifier of access tokens of the last authenticator.
    pub(super) fn oauth_verifier(&self) -> Option<Arc<OAuthVerifier>> {
        self.oauth.lock().clone()
    }

    fn verifier(
        &self,
        settings: &CallerOAuthSettings,
        groups: &Groups,
    ) -> Result<Arc<OAuthVerifier>, CliError> {
        let config = oauth_config(settings, groups);
        let mut known = self.oauth.lock();
        if let Some(verifier) = known.as_ref().filter(|verifier| *verifier.config() == config) {
            return Ok(Arc::clone(verifier));
        }
        let source = Arc::new(HttpMetadataSource::new().map_err(oauth_error)?);
        let verifier = Arc::new(OAuthVerifier::new(config, source).map_err(oauth_error)?);
        *known = Some(Arc::clone(&verifier));
        Ok(verifier)
    }
}

/// Warns of an issuer that cannot be used: otherwise the first caller with an access token would notice. Never completes.
pub(super) async fn warn_of_unusable_issuer(verifier: Option<Arc<OAuthVerifier>>) {
    if let Some(verifier) = verifier
        && let Err(error) = Box::pin(verifier.check_issuer_keys()).await
    {
        tracing::warn!(%error, "access tokens cannot be checked: the keys of the issuer cannot be read");
    }
    std::future::pending::<()>().await;
}

/// Fails if the settings are wrong, or the keys of the issuer cannot be read now.
pub(in crate::commands) async fn check_oauth(
    settings: &CallerOAuthSettings,
    groups: &Groups,
) -> Result<(), CliError> {
    let verifier = CallerAuthentication::default().verifier(settings, groups)?;
    verifier.check_issuer_keys().await.map_err(|error| {
        CliError::unreachable(format!("{OAUTH_TABLE} access tokens cannot be checked: {error}"))
            .with_hint("check `issuer`, and that this machine reaches it")
    })
}

fn oauth_config(settings: &CallerOAuthSettings, groups: &Groups) -> OAuthConfig {
    OAuthConfig {
        audiences: settings.audience.clone(),
        scopes: settings.scopes.clone(),
        name_claim: settings.name_claim.clone(),
        groups_claim: settings.groups_claim.clone(),
        group_access: group_access(groups),
        ..OAuthConfig::new(&settings.issuer, &settings.resource)
    }
}

fn proxy_identity(settings: &ProxyIdentitySettings, groups: &Groups) -> Result<ProxyIdentity, CliError> {
    let ranges: Result<Vec<AddressRange>, InvalidAddressRange> =
        settings.trusted_addresses.iter().map(|text| text.parse()).collect();
    let ranges =
        ranges.map_err(|error| CliError::usage(format!("{PROXY_TABLE} trusted_addresses: {error}")))?;
    if ranges.is_empty() {
        return Err(CliError::usage(format!("{PROXY_TABLE} trusted_addresses is empty"))
            .with_hint("name the address of the proxy, such as 10.0.0.5, or remove the table"));
    }
    for name in std::iter::once(&settings.subject_header).chain(&settings.groups_header) {
        if http::HeaderName::try_from(name.as_str()).is_err() {
            return Err(CliError::usage(format!("{PROXY_TABLE} `{name}` is not the name of a header")));
        }
    }
    if !groups.is_empty() && settings.groups_header.is_none() {
        return Err(CliError::usage(format!(
            "{PROXY_TABLE} has no groups_header, which [serve.groups] needs"
        ))
        .with_hint("name the header in which the proxy sends the groups of a caller"));
    }
    let proxy = ProxyIdentity::new(ranges, &settings.subject_header, settings.groups_header.as_deref());
    Ok(proxy.with_group_access(group_access(groups)))
}

fn group_access(groups: &Groups) -> GroupAccess {
    let profile_name = |profile: &String| match profile.as_str() {
        MAIN_ENDPOINT => String::new(),
        name => name.to_owned(),
    };
    let limits = |settings: &CallerGroupSettings| GroupLimits {
        profiles: settings.profiles.as_ref().map(|profiles| profiles.iter().map(profile_name).collect()),
        agents: settings.agents.clone(),
    };
    GroupAccess::new(groups.iter().map(|(name, settings)| (name.clone(), limits(settings))))
}

/// A misspelled profile would lock its callers out, and nobody would be told.
fn check_groups(serve: &ServeSettings) -> Result<(), CliError> {
    if !serve.groups.is_empty() && serve.oauth.is_none() && serve.proxy_identity.is_none() {
        return Err(CliError::usage("[serve.groups] limits nobody: no caller has a group")
            .with_hint("set [serve.oauth] or [serve.proxy_identity], or remove the table"));
    }
    for (group, settings) in &serve.groups {
        let mut profiles = settings.profiles.iter().flatten();
        let is_known = |profile: &String| profile == MAIN_ENDPOINT || serve.profiles.contains_key(profile);
        if let Some(profile) = profiles.find(|profile| !is_known(profile)) {
            let message = format!("[serve.groups.{group}] there is no profile `{profile}`");
            let hint = "profiles are those of [serve.profiles], and `/` for the main endpoint";
            return Err(CliError::usage(message).with_hint(hint));
        }
    }
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err needs")]
fn oauth_error(error: OAuthConfigError) -> CliError {
    CliError::usage(format!("{OAUTH_TABLE} {error}"))
        .with_hint("see docs/guide/callers.md; all settings: toolyard settings schema")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> ServeSettings {
        toolyard::settings::Settings::parse(text, std::path::Path::new("toolyard.toml")).unwrap().serve
    }

    #[test]
    fn an_unchanged_issuer_keeps_its_keys_and_tokens_when_settings_are_reloaded() {
        let text = "[serve.oauth]\nissuer = 'https://id.example'\nresource = 'https://tools.example/mcp'\n";
        let authentication = CallerAuthentication::default();
        let verifier = |text: &str| {
            authentication.verifier(settings(text).oauth.as_ref().unwrap(), &Groups::new()).unwrap()
        };
        let first = verifier(text);
        assert!(Arc::ptr_eq(&first, &verifier(text)));
        assert!(!Arc::ptr_eq(&first, &verifier(&format!("{text}scopes = ['x']\n"))));
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let build = |text: &str| CallerAuthentication::default().build(&settings(text), None);
        assert!(build("").unwrap_or_else(|_| panic!()).is_none());
        for text in [
            "[serve.oauth]\nissuer = 'http://id.example'\nresource = 'https://tools.example/mcp'",
            "[serve.oauth]\nissuer = 'https://id.example'\nresource = 'tools'",
            "[serve.proxy_identity]\ntrusted_addresses = []\nsubject_header = 'X-User'",
            "[serve.proxy_identity]\ntrusted_addresses = ['proxy']\nsubject_header = 'X-User'",
            "[serve.proxy_identity]\ntrusted_addresses = ['10.0.0.1']\nsubject_header = 'X User'",
            "[serve.proxy_identity]\ntrusted_addresses = ['10.0.0.1']\nsubject_header = 'X-User'\n[serve.groups.ops]",
            "[serve.groups.ops]",
            "[serve.oauth]\nissuer = 'https://id.example'\nresource = 'https://tools.example'\n\
             [serve.groups]\nops = { profiles = ['nosuch'] }",
        ] {
            assert!(build(text).is_err(), "{text}");
        }
        let good =
            "[serve.proxy_identity]\ntrusted_addresses = ['10.0.0.0/8', '::1']\nsubject_header = 'X-User'";
        assert!(build(good).unwrap_or_else(|_| panic!()).is_some());
    }
}
