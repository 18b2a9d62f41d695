//! Access tokens: which are accepted, which are refused, and how often the issuer is asked for keys.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a panic in a test helper fails the test, as intended"
)]

mod keys;
mod person_sign_in;
mod refused;
mod signer;

use serde_json::{Value, json};
use toolyard_identity::{FetchError, KeySet, MetadataSource, OAuthConfig, OAuthVerifier, validate_token};

use signer::{Signer, encode, hmac_token};

/// Seconds since 1970.
const NOW: i64 = 1_800_000_000;
const ISSUER: &str = "https://id.example";
const RESOURCE: &str = "https://tools.example/mcp";

fn config() -> OAuthConfig {
    let mut config = OAuthConfig::new(ISSUER, RESOURCE);
    config.scopes = vec!["tools:call".to_owned()];
    config.name_claim = Some("email".to_owned());
    config
}

fn header() -> Value {
    json!({"alg": "RS256", "typ": "at+jwt", "kid": "rsa"})
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "ada", "exp": NOW + 300, "iat": NOW - 5, "nbf": NOW - 5,
        "scope": "tools:call profile", "email": "ada@example.com", "groups": ["dev", "ops"],
    })
}

/// The claims with one of them changed.
fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

#[test]
fn tokens_of_all_algorithms_and_forms_are_accepted() {
    let issuer = Signer::generate();
    let keys = KeySet::parse(&issuer.published_keys().to_string()).unwrap();
    assert_eq!(keys.len(), 5, "keys that are not for signatures do not count");
    let accept = |header: &Value, claims: &Value| {
        let token = issuer.token(header, claims);
        validate_token(&token, &keys, &config(), NOW)
            .unwrap_or_else(|error| panic!("{header} {claims}: {error}"))
    };
    for (algorithm, id) in [
        ("RS256", "rsa"),
        ("RS384", "rsa"),
        ("RS512", "rsa"),
        ("PS256", "rsa"),
        ("PS384", "rsa"),
        ("PS512", "rsa"),
        ("PS256", "pss-only"),
        ("ES256", "p256"),
        ("ES384", "p384"),
        ("EdDSA", "ed"),
        ("Ed25519", "ed"),
    ] {
        accept(&json!({"alg": algorithm, "kid": id}), &claims());
    }
    for typ in ["JWT", "at+jwt", "AT+JWT", "application/at+jwt"] {
        accept(&json!({"alg": "RS256", "kid": "rsa", "typ": typ}), &claims());
    }
    accept(&json!({"alg": "ES256"}), &claims());
    for claims in [
        with("aud", json!(["https://other.example", RESOURCE])),
        json!({"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "exp": NOW - 59, "scope": "tools:call"}),
        with("exp", json!(NOW as f64 + 0.5)),
        with("nbf", json!(NOW + 60)),
        with("iat", json!(NOW + 60)),
        without("nbf"),
        without("iat"),
        with("scope", json!("a tools:call")),
        with("sub", json!("auth0|5f7c8ec7c33c6c004bbafe82")),
    ] {
        accept(&header(), &claims);
    }
    let mut other_scopes = without("scope");
    other_scopes["scp"] = json!(["tools:call"]);
    accept(&header(), &other_scopes);
}

#[test]
fn the_identity_is_of_issuer_and_subject_and_has_name_groups_and_scopes() {
    let issuer = Signer::generate();
    let keys = KeySet::parse(&issuer.published_keys().to_string()).unwrap();
    let read =
        |claims: &Value| validate_token(&issuer.token(&header(), claims), &keys, &config(), NOW).unwrap();
    let valid = read(&claims());
    let identity = &valid.identity;
    assert_eq!((&*identity.issuer, &*identity.subject, &*identity.name), (ISSUER, "ada", "ada@example.com"));
    assert_eq!(identity.groups, ["dev", "ops"]);
    assert_eq!(identity.scopes, ["tools:call", "profile"]);
    assert_eq!(valid.valid_until, NOW + 360);
    let renewed = read(&with("exp", json!(NOW + 600)));
    assert_eq!(renewed.identity.owner_hash(), identity.owner_hash(), "a renewed token is of the same caller");
    assert_ne!(read(&with("sub", json!("eve"))).identity.owner_hash(), identity.owner_hash());
    assert_eq!(&*read(&without("email")).identity.name, "ada", "without the claim, the name is the subject");
}
