//! Validates access tokens: signed JWTs (RFC 9068). Pure: keys and time are given.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;
use serde_json::Value;
use toolyard_core::{AuthenticationError, CallerIdentity};

use super::{
    claims::{self, Claims},
    config::OAuthConfig,
    key_set::{KeyLookup, KeySet, signature_algorithm},
    strict_json::parse_object,
};

/// Longer tokens are refused before anything is decoded.
const MAX_TOKEN_BYTES: usize = 16 << 10;
const MAX_HEADER_BYTES: usize = 4 << 10;
const MAX_KEY_ID_BYTES: usize = 256;
const MAX_SUBJECT_BYTES: usize = 256;
/// What `typ` may say, in lower case. Tokens for other purposes (ID tokens of some issuers, logout tokens, proofs) say something else.
const ACCESS_TOKEN_TYPES: [&str; 4] = ["at+jwt", "application/at+jwt", "jwt", "application/jwt"];
/// How much the clocks of issuer and gateway may differ: enough for machines that synchronize theirs; more would accept tokens
/// long after they expired.
const CLOCK_SKEW_SECONDS: i64 = 60;
const DEFAULT_GROUPS_CLAIM: &str = "groups";

/// A token that was accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidToken {
    /// Who presented it.
    pub identity: CallerIdentity,
    /// Until when it is accepted, in seconds since 1970, clock skew included.
    pub valid_until: i64,
    /// When it was issued, in seconds since 1970, if it says so.
    pub issued_at: Option<i64>,
}

/// Why a token is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The access token is malformed, or a check failed; the text says which.
    ///
    /// Remedy: get a new token from the issuer in `[serve.oauth]`, for the resource in `[serve.oauth] resource`.
    #[error("{0}")]
    Refused(&'static str),
    /// No key of the issuer has the key id of the token: the issuer replaced its keys, or the token is of another
    /// issuer.
    ///
    /// Remedy: sign in again; check that `[serve.oauth] issuer` is the issuer of the token. Keys are read again at most
    /// every 10 seconds.
    #[error("the signing key is unknown")]
    UnknownKey,
    /// The token is valid, but lacks scopes; the text names those that are needed.
    ///
    /// Remedy: request the scope when you sign in, and allow it for the client at the issuer.
    #[error("the token lacks a scope: {0}")]
    InsufficientScope(String),
}

impl From<TokenError> for AuthenticationError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Refused(reason) => Self::Invalid(reason),
            TokenError::UnknownKey => Self::Invalid("the signing key is unknown"),
            TokenError::InsufficientScope(scopes) => Self::InsufficientScope(scopes),
        }
    }
}

/// Validates a token at a time, in seconds since 1970. `config` says what it must have.
pub fn validate_token(
    token: &str,
    keys: &KeySet,
    config: &OAuthConfig,
    now: i64,
) -> Result<ValidToken, TokenError> {
    CheckedToken::check(token, config, now)?.verify(keys, config)
}

/// A token whose form and claims are in order; the signature was not looked at yet. That comes last, so that a token for somebody else, or one
/// that is expired, never makes the gateway ask the issuer for keys.
pub(super) struct CheckedToken<'a> {
    parts: TokenParts<'a>,
    header: Header,
    claims: Claims,
    valid_until: i64,
}

impl<'a> CheckedToken<'a> {
    pub(super) fn check(token: &'a str, config: &OAuthConfig, now: i64) -> Result<Self, TokenError> {
        let parts = TokenParts::split(token)?;
        let header = Header::read(parts.header)?;
        let claims = decode(parts.claims)
            .as_deref()
            .and_then(parse_object)
            .ok_or(TokenError::Refused("the claims of the token are not a JSON object without duplicates"))?;
        let valid_until = check_claims(&claims, config, now)?;
        Ok(Self { parts, header, claims, valid_until })
    }

    pub(super) fn verify(&self, keys: &KeySet, config: &OAuthConfig) -> Result<ValidToken, TokenError> {
        let (key_id, algorithm) = (self.header.key_id.as_deref(), self.header.algorithm);
        match keys.find(key_id, algorithm) {
            KeyLookup::Found => {}
            KeyLookup::UnknownId => return Err(TokenError::UnknownKey),
            KeyLookup::WrongAlgorithm => {
                return Err(TokenError::Refused("the algorithm of the token is not one of its key"));
            }
            KeyLookup::Ambiguous => {
                return Err(TokenError::Refused("the token names no key, and not exactly one fits"));
            }
        }
        if !keys.verify(key_id, algorithm, self.parts.message, self.parts.signature) {
            return Err(TokenError::Refused("the signature of the token is wrong"));
        }
        let scopes = claims::scopes(&self.claims);
        if config.scopes.iter().any(|needed| !scopes.contains(needed)) {
            return Err(TokenError::InsufficientScope(config.scopes.join(" ")));
        }
        let identity = identify(&self.claims, scopes, config)?;
        let issued_at = claims::time(&self.claims, "iat").ok().flatten();
        Ok(ValidToken { identity, valid_until: self.valid_until, issued_at })
    }
}

/// The parts of a signed token.
struct TokenParts<'a> {
    header: &'a str,
    claims: &'a str,
    signature: &'a str,
    /// What is signed: header and claims.
    message: &'a str,
}

impl<'a> TokenParts<'a> {
    fn split(token: &'a str) -> Result<Self, TokenError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::Refused("the token is too long"));
        }
        if token.bytes().filter(|byte| *byte == b'.').count() == 4 {
            return Err(TokenError::Refused("encrypted tokens are not supported"));
        }
        let malformed = TokenError::Refused("the token is not a signed JWT");
        let (message, signature) = token.rsplit_once('.').ok_or(malformed.clone())?;
        let (header, claims) = message.split_once('.').ok_or(malformed.clone())?;
        if signature.is_empty() || claims.contains('.') {
            return Err(malformed);
        }
        Ok(Self { header, claims, signature, message })
    }
}

/// What counts of the header. Keys in the header, or addresses of keys, never do.
struct Header {
    algorithm: Algorithm,
    key_id: Option<String>,
}

impl Header {
    fn read(encoded: &str) -> Result<Self, TokenError> {
        let bytes = decode(encoded).filter(|bytes| bytes.len() <= MAX_HEADER_BYTES);
        let header = bytes
            .as_deref()
            .and_then(parse_object)
            .ok_or(TokenError::Refused("the header of the token is not a JSON object without duplicates"))?;
        let algorithm = header.get("alg").and_then(Value::as_str).and_then(signature_algorithm);
        let algorithm = algorithm.ok_or(TokenError::Refused("the algorithm of the token is not accepted"))?;
        // RFC 7515, section 4.1.11: an extension that must be understood, and none is.
        if header.contains_key("crit") || header.contains_key("b64") {
            return Err(TokenError::Refused("the token has an unknown critical header"));
        }
        let is_access_token = match header.get("typ") {
            None => true,
            Some(Value::String(name)) => ACCESS_TOKEN_TYPES.contains(&name.to_ascii_lowercase().as_str()),
            Some(_) => false,
        };
        if !is_access_token {
            return Err(TokenError::Refused("the token is not an access token"));
        }
        let key_id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) if !id.is_empty() && id.len() <= MAX_KEY_ID_BYTES => Some(id.clone()),
            Some(_) => return Err(TokenError::Refused("the key id of the token is malformed")),
        };
        Ok(Self { algorithm, key_id })
    }
}

/// Checks the claims; returns until when the token is accepted.
fn check_claims(claims: &Claims, config: &OAuthConfig, now: i64) -> Result<i64, TokenError> {
    let refused = |reason| Err(TokenError::Refused(reason));
    if claims.get("iss").and_then(Value::as_str) != Some(config.issuer.as_str()) {
        return refused("the token is of another issuer");
    }
    match claims::has_audience(claims, config.accepted_audiences()) {
        Ok(true) => {}
        Ok(false) => return refused("the token is for another audience"),
        Err(()) => return refused("the token has no valid audience"),
    }
    let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
    if subject.is_empty() || subject.len() > MAX_SUBJECT_BYTES || subject.chars().any(char::is_control) {
        return refused("the token has no valid subject");
    }
    // RFC 9449 and RFC 8705: whoever stole such a token could use it as a bearer token.
    if claims.contains_key("cnf") {
        return refused("the token is bound to a key, and proofs of it are not supported");
    }
    let time = |name| claims::time(claims, name);
    let (Ok(expires), Ok(not_before), Ok(issued)) = (time("exp"), time("nbf"), time("iat")) else {
        return refused("the token has a malformed time");
    };
    let Some(expires) = expires else { return refused("the token has no time of expiry") };
    let valid_until = expires.saturating_add(CLOCK_SKEW_SECONDS);
    if now >= valid_until {
        return refused("the token is expired");
    }
    let latest = now.saturating_add(CLOCK_SKEW_SECONDS);
    if not_before.is_some_and(|time| time > latest) {
        return refused("the token is not valid yet");
    }
    if issued.is_some_and(|time| time > latest) {
        return refused("the token was issued in the future");
    }
    if issued.is_some_and(|time| time > expires) {
        return refused("the token expired before it was issued");
    }
    Ok(valid_until)
}

fn identify(
    claims: &Claims,
    scopes: Vec<String>,
    config: &OAuthConfig,
) -> Result<CallerIdentity, TokenError> {
    let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
    let mut identity = CallerIdentity::principal(&config.issuer, subject);
    if let Some(name) = config.name_claim.as_deref().and_then(|claim| claims::name(claims, claim)) {
        identity.name = name.into();
    }
    let groups_claim = config.groups_claim.as_deref().unwrap_or(DEFAULT_GROUPS_CLAIM);
    identity.groups = claims::groups(claims, groups_claim).map_err(TokenError::Refused)?;
    identity.scopes = scopes;
    identity.claims = claims.clone();
    Ok(identity)
}

/// Decodes base64url without padding; other spellings of the same bytes are refused.
fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
