//! [`KeySet`]: the issuer's signing keys, and the algorithms that each may be used with.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, crypto};
use serde::Deserialize;
use serde_json::Value;

/// More keys are not looked at.
const MAX_KEYS: usize = 100;
const MIN_RSA_BYTES: usize = 256;
/// Larger ones cost too much time per token.
const MAX_RSA_BYTES: usize = 1_024;

const RSA_ALGORITHMS: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// A document is not a set of keys (RFC 7517).
///
/// Remedy: open `jwks_uri` of the metadata of the issuer: it must be JSON with `keys`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a set of keys: {0}")]
pub struct KeySetError(String);

/// The public keys of an issuer that can sign tokens.
#[derive(Debug, Default)]
pub struct KeySet {
    keys: Vec<SigningKey>,
}

struct SigningKey {
    id: Option<String>,
    /// Those of its type, or the one that it is limited to.
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

/// A key as it is published. Other fields, such as certificates, do not count.
#[derive(Deserialize)]
struct PublishedKey {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// Which keys a token may be signed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyLookup {
    /// There is at least one.
    Found,
    /// No key has the id.
    UnknownId,
    /// Keys with the id cannot be used with the algorithm.
    WrongAlgorithm,
    /// The token names no key, and not exactly one fits.
    Ambiguous,
}

impl KeySet {
    /// Reads a set of keys. Keys that cannot sign tokens are left out: those for encryption, symmetric ones, short ones and those of unknown
    /// types.
    pub fn parse(text: &str) -> Result<Self, KeySetError> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<Value>,
        }
        let document: Document =
            serde_json::from_str(text).map_err(|error| KeySetError(error.to_string()))?;
        let keys = document.keys.into_iter().take(MAX_KEYS);
        Ok(Self {
            keys: keys.filter_map(|key| SigningKey::read(serde_json::from_value(key).ok()?)).collect(),
        })
    }

    /// The number of keys that can sign tokens.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no key can sign tokens.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn candidates(&self, id: Option<&str>, algorithm: Algorithm) -> impl Iterator<Item = &SigningKey> {
        self.keys.iter().filter(move |key| {
            id.is_none_or(|id| key.id.as_deref() == Some(id)) && key.algorithms.contains(&algorithm)
        })
    }

    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> KeyLookup {
        match (id, self.candidates(id, algorithm).count()) {
            (Some(_), 1..) | (None, 1) => KeyLookup::Found,
            (None, _) => KeyLookup::Ambiguous,
            (Some(id), 0) if self.keys.iter().any(|key| key.id.as_deref() == Some(id)) => {
                KeyLookup::WrongAlgorithm
            }
            (Some(_), 0) => KeyLookup::UnknownId,
        }
    }

    /// Whether one of the keys with this id signed a message.
    pub(super) fn verify(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        message: &str,
        signature: &str,
    ) -> bool {
        let is_signer = |key: &SigningKey| {
            matches!(crypto::verify(signature, message.as_bytes(), &key.key, algorithm), Ok(true))
        };
        self.candidates(id, algorithm).any(is_signer)
    }
}

impl SigningKey {
    fn read(key: PublishedKey) -> Option<Self> {
        let is_for_signing = key.usage.as_deref().is_none_or(|usage| usage == "sig")
            && key.key_ops.as_ref().is_none_or(|operations| operations.iter().any(|name| name == "verify"));
        if !is_for_signing {
            return None;
        }
        let (of_type, decoding_key): (&[Algorithm], DecodingKey) =
            match (key.kty.as_str(), key.crv.as_deref()) {
                ("RSA", _) => {
                    let modulus = URL_SAFE_NO_PAD.decode(key.n.as_deref()?).ok()?;
                    let length = modulus.iter().skip_while(|byte| **byte == 0).count();
                    if !(MIN_RSA_BYTES..=MAX_RSA_BYTES).contains(&length) {
                        return None;
                    }
                    (
                        RSA_ALGORITHMS,
                        DecodingKey::from_rsa_components(key.n.as_deref()?, key.e.as_deref()?).ok()?,
                    )
                }
                ("EC", Some(curve @ ("P-256" | "P-384"))) => {
                    let algorithm: &[Algorithm] =
                        if curve == "P-256" { &[Algorithm::ES256] } else { &[Algorithm::ES384] };
                    (algorithm, DecodingKey::from_ec_components(key.x.as_deref()?, key.y.as_deref()?).ok()?)
                }
                ("OKP", Some("Ed25519")) => {
                    (&[Algorithm::EdDSA], DecodingKey::from_ed_components(key.x.as_deref()?).ok()?)
                }
                _ => return None,
            };
        let algorithms = match key.alg.as_deref() {
            None => of_type.to_vec(),
            Some(name) => vec![signature_algorithm(name).filter(|named| of_type.contains(named))?],
        };
        Some(Self { id: key.kid, algorithms, key: decoding_key })
    }
}

/// An algorithm by its name, if it may be used: asymmetric signatures only.
pub(super) fn signature_algorithm(name: &str) -> Option<Algorithm> {
    Some(match name {
        "RS256" => Algorithm::RS256,
        "RS384" => Algorithm::RS384,
        "RS512" => Algorithm::RS512,
        "PS256" => Algorithm::PS256,
        "PS384" => Algorithm::PS384,
        "PS512" => Algorithm::PS512,
        "ES256" => Algorithm::ES256,
        "ES384" => Algorithm::ES384,
        // RFC 9864 names the curve.
        "EdDSA" | "Ed25519" => Algorithm::EdDSA,
        _ => return None,
    })
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.id)
            .field("algorithms", &self.algorithms)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_cannot_sign_tokens_are_left_out() {
        let modulus = |bytes: usize| URL_SAFE_NO_PAD.encode(vec![0xff; bytes]);
        let x = URL_SAFE_NO_PAD.encode([7; 32]);
        let keys = serde_json::json!({"keys": [
            {"kty": "RSA", "kid": "good", "n": modulus(256), "e": "AQAB"},
            {"kty": "RSA", "kid": "limited", "n": modulus(256), "e": "AQAB", "alg": "PS256", "use": "sig"},
            {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": x, "key_ops": ["verify"]},
            {"kty": "RSA", "kid": "short", "n": modulus(128), "e": "AQAB"},
            {"kty": "RSA", "kid": "padded", "n": URL_SAFE_NO_PAD.encode([vec![0; 200], vec![1; 128]].concat()), "e": "AQAB"},
            {"kty": "RSA", "kid": "huge", "n": modulus(2_000), "e": "AQAB"},
            {"kty": "RSA", "kid": "encryption", "n": modulus(256), "e": "AQAB", "use": "enc"},
            {"kty": "RSA", "kid": "hmac", "n": modulus(256), "e": "AQAB", "alg": "HS256"},
            {"kty": "RSA", "kid": "other type", "n": modulus(256), "e": "AQAB", "alg": "ES256"},
            {"kty": "oct", "kid": "symmetric", "k": "c2VjcmV0", "alg": "HS256"},
            {"kty": "EC", "crv": "secp256k1", "kid": "bitcoin", "x": x, "y": x},
            {"kty": "OKP", "crv": "X25519", "kid": "exchange", "x": x},
            {"kty": "RSA", "kid": "signs only", "n": modulus(256), "e": "AQAB", "key_ops": ["encrypt"]},
            {"kid": "no type"},
            7,
        ]});
        let keys = KeySet::parse(&keys.to_string()).unwrap();
        let ids: Vec<_> = keys.keys.iter().map(|key| key.id.as_deref().unwrap()).collect();
        assert_eq!(ids, ["good", "limited", "ed"]);
        assert_eq!(keys.find(Some("good"), Algorithm::RS256), KeyLookup::Found);
        assert_eq!(keys.find(Some("limited"), Algorithm::RS256), KeyLookup::WrongAlgorithm);
        assert_eq!(keys.find(Some("good"), Algorithm::HS256), KeyLookup::WrongAlgorithm);
        assert_eq!(keys.find(Some("short"), Algorithm::RS256), KeyLookup::UnknownId);
        assert_eq!(keys.find(None, Algorithm::RS256), KeyLookup::Found);
        assert_eq!(keys.find(None, Algorithm::PS256), KeyLookup::Ambiguous);
        for text in ["", "{}", "[]", r#"{"keys":{}}"#] {
            assert!(KeySet::parse(text).is_err(), "{text}");
        }
    }
}
