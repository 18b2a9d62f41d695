//! The resource server of OAuth 2.1: validates access tokens that an issuer signed.
//!
//! ```text
//! config.rs        the issuer, and what a token must have
//! fetch.rs         reads documents of the issuer
//! discovery.rs     finds the issuer's keys: RFC 8414 and OpenID Connect discovery
//! key_set.rs       signing keys (JWKS), and which algorithms each may be used with
//! key_cache.rs     keeps the keys; reads them again when they are old or a token names an unknown one, at a limited rate
//! strict_json.rs   JSON without duplicate keys
//! token.rs         validation of a token: pure, without I/O and clock
//! claims.rs        what a token says: times, audience, scopes, name, groups
//! token_cache.rs   verified tokens, until they expire
//! verifier.rs      all of this together
//! person_sign_in.rs  signs people in at the issuer by OpenID Connect
//! metadata.rs      metadata of the protected resource (RFC 9728), and challenges
//! ```

pub(crate) mod claims;
pub(crate) mod config;
pub(crate) mod discovery;
pub(crate) mod fetch;
mod key_cache;
pub(crate) mod key_set;
pub(crate) mod metadata;
pub(crate) mod person_sign_in;
mod strict_json;
pub(crate) mod token;
mod token_cache;
pub(crate) mod verifier;
