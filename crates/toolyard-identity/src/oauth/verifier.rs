//! [`OAuthVerifier`]: the caller of an access token.

use std::{fmt, sync::Arc};

use toolyard_core::{AuthenticationError, CallerIdentity, PresentedToken, unix_seconds};

use super::{
    config::{OAuthConfig, OAuthConfigError},
    discovery::DiscoveryError,
    fetch::MetadataSource,
    key_cache::KeyCache,
    metadata::ResourceMetadata,
    token::{CheckedToken, TokenError},
    token_cache::{TokenCache, VerifiedToken},
};
use crate::api_key::key::sha256;

/// Verifies access tokens of one issuer.
pub struct OAuthVerifier {
    config: OAuthConfig,
    keys: Arc<KeyCache>,
    tokens: TokenCache,
    pub(crate) metadata: ResourceMetadata,
    now: fn() -> i64,
}

impl OAuthVerifier {
    /// A verifier that reads the keys of the issuer with the first token.
    pub fn new(config: OAuthConfig, source: Arc<dyn MetadataSource>) -> Result<Self, OAuthConfigError> {
        Self::with_clock(config, source, unix_seconds)
    }

    /// The same with a clock of one's own, in seconds since 1970.
    pub fn with_clock(
        config: OAuthConfig,
        source: Arc<dyn MetadataSource>,
        now: fn() -> i64,
    ) -> Result<Self, OAuthConfigError> {
        config.check()?;
        Ok(Self {
            keys: Arc::new(KeyCache::new(source, &config.issuer)),
            tokens: TokenCache::default(),
            metadata: ResourceMetadata::new(&config),
            config,
            now,
        })
    }

    /// The configuration.
    pub fn config(&self) -> &OAuthConfig {
        &self.config
    }

    /// Fails if the keys of the issuer cannot be read now.
    pub async fn check_issuer_keys(&self) -> Result<(), DiscoveryError> {
        self.keys.check().await
    }

    /// Who presented a token.
    pub async fn verify(&self, token: &str) -> Result<Arc<CallerIdentity>, AuthenticationError> {
        let now = (self.now)();
        let hash = sha256(token.as_bytes());
        let known = self.keys.known();
        let cached = known.and_then(|known| self.tokens.find(&hash, known.generation, now));
        if let Some(identity) = cached {
            return Ok(identity);
        }
        let checked = CheckedToken::check(token, &self.config, now)?;
        let loaded = self.keys.current().await?;
        let (validated, generation) = match checked.verify(&loaded.keys, &self.config) {
            Err(TokenError::UnknownKey) => {
                let reloaded = self.keys.after_unknown_key(&loaded).await?;
                (checked.verify(&reloaded.keys, &self.config), reloaded.generation)
            }
            validated => (validated, loaded.generation),
        };
        let mut valid = validated?;
        self.config.group_access.limit(&mut valid.identity);
        let presented = PresentedToken::new(token, valid.valid_until).with_issued_at(valid.issued_at);
        let identity = Arc::new(valid.identity.with_presented_token(presented));
        let verified = VerifiedToken {
            identity: Arc::clone(&identity),
            valid_until: valid.valid_until,
            key_generation: generation,
        };
        self.tokens.insert(hash, verified);
        Ok(identity)
    }
}

impl fmt::Debug for OAuthVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthVerifier").field("config", &self.config).finish_non_exhaustive()
    }
}
