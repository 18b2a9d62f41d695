//! Tokens bound to a key (DPoP, RFC 9449), with a proof for every request.

use std::{fmt, sync::Arc};

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand::{self, SystemRandom},
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Map, Value, json};
use url::Url;

use super::{OAuthError, client_assertion::encode_jwt};
use crate::SecretText;

/// The error code of a server that requires a nonce.
pub(super) const USE_DPOP_NONCE: &str = "use_dpop_nonce";
const MAX_NONCE_BYTES: usize = 1024;

/// The key that tokens of one issuer are bound to.
pub(super) struct DpopKey {
    pair: EcdsaKeyPair,
    pkcs8: SecretText,
}

impl DpopKey {
    pub(super) fn generate() -> Result<Self, OAuthError> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| OAuthError::Key("key generation failed"))?;
        Self::restore(&SecretText::new(STANDARD.encode(document.as_ref())))
    }

    /// The key that was stored with a token.
    pub(super) fn restore(pkcs8: &SecretText) -> Result<Self, OAuthError> {
        let bytes = STANDARD.decode(pkcs8.expose()).map_err(|_| OAuthError::Key("not Base64"))?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &bytes)
            .map_err(|_| OAuthError::Key("not a P-256 key in PKCS#8"))?;
        Ok(Self { pair, pkcs8: pkcs8.clone() })
    }

    /// The key as PKCS#8 in Base64.
    pub(super) fn pkcs8(&self) -> &SecretText {
        &self.pkcs8
    }

    /// A proof for one request, bound to the access token and the nonce, if given.
    pub(super) fn proof(
        &self,
        method: &str,
        url: &Url,
        token: Option<&str>,
        nonce: Option<&str>,
        now: u64,
    ) -> Result<String, OAuthError> {
        let mut proof_id = [0; 16];
        rand::fill(&mut proof_id).map_err(|_| OAuthError::Key("no random numbers available"))?;
        let mut target_url = url.clone();
        target_url.set_query(None);
        target_url.set_fragment(None);
        let ath = token.map(|token| URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes())));
        let claims: Map<String, Value> = [
            ("jti", Some(json!(URL_SAFE_NO_PAD.encode(proof_id)))),
            ("htm", Some(json!(method))),
            ("htu", Some(json!(target_url.as_str()))),
            ("iat", Some(json!(now))),
            ("ath", ath.map(Value::from)),
            ("nonce", nonce.map(Value::from)),
        ]
        .into_iter()
        .filter_map(|(name, claim)| Some((name.to_owned(), claim?)))
        .collect();
        let message = encode_jwt(
            &json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": self.public_jwk()?}),
            &claims.into(),
        );
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes());
        let signature = signature.map_err(|_| OAuthError::Key("signing failed"))?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn public_jwk(&self) -> Result<Value, OAuthError> {
        // An uncompressed point: 4, then both coordinates.
        match self.pair.public_key().as_ref() {
            [4, coordinates @ ..] if coordinates.len() == 64 => {
                let (x, y) = coordinates.split_at(32);
                let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
                Ok(json!({"kty": "EC", "crv": "P-256", "x": text(x), "y": text(y)}))
            }
            _ => Err(OAuthError::Key("the public key has an unexpected format")),
        }
    }
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DpopKey(…)")
    }
}

/// A new key if the server requests DPoP and the authorization server supports it. Support alone is not enough: a server
/// without DPoP would refuse the token.
pub(super) fn negotiate_key(
    challenge: Option<&str>,
    algorithms: Option<&Value>,
) -> Result<Option<Arc<DpopKey>>, OAuthError> {
    let is_requested = challenge.is_some_and(|challenge| {
        challenge.split(',').any(|part| {
            part.trim().split(' ').next().is_some_and(|scheme| scheme.eq_ignore_ascii_case("DPoP"))
        })
    });
    let is_supported = algorithms.and_then(Value::as_array).is_some_and(|all| all.contains(&json!("ES256")));
    (is_requested && is_supported).then(|| DpopKey::generate().map(Arc::new)).transpose()
}

/// The nonce, if it can be sent in a header.
pub(super) fn valid_nonce(text: &str) -> Option<String> {
    let is_valid =
        (1..=MAX_NONCE_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_valid.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    fn decode_part(text: &str) -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    }

    #[test]
    fn a_proof_covers_one_request_and_verifies() {
        let key = DpopKey::generate().unwrap();
        let url = Url::parse("https://mcp.example.org/mcp?key=x#y").unwrap();
        let proof = key.proof("POST", &url, Some("token"), Some("nonce"), 1_000).unwrap();
        let parts: Vec<&str> = proof.split('.').collect();
        let (header, claims) = (decode_part(parts[0]), decode_part(parts[1]));
        assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
        assert_eq!(header["jwk"].as_object().unwrap().len(), 4, "it has no private key");
        assert_eq!((&claims["htm"], &claims["htu"]), (&json!("POST"), &json!("https://mcp.example.org/mcp")));
        assert_eq!((&claims["iat"], &claims["nonce"]), (&json!(1_000), &json!("nonce")));
        assert_eq!(claims["ath"], json!(URL_SAFE_NO_PAD.encode(digest(&SHA256, b"token"))));
        let mut point = vec![4];
        for coordinate in ["x", "y"] {
            point.extend(URL_SAFE_NO_PAD.decode(header["jwk"][coordinate].as_str().unwrap()).unwrap());
        }
        let signed = format!("{}.{}", parts[0], parts[1]);
        let signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        public.verify(signed.as_bytes(), &signature).unwrap();
        let another = key.proof("POST", &url, Some("token"), Some("nonce"), 1_000).unwrap();
        assert_ne!(decode_part(another.split('.').nth(1).unwrap())["jti"], claims["jti"]);
    }

    #[test]
    fn a_key_is_restored_and_never_shown() {
        let key = DpopKey::generate().unwrap();
        let again = DpopKey::restore(key.pkcs8()).unwrap();
        assert_eq!(again.public_jwk().unwrap(), key.public_jwk().unwrap());
        assert!(!format!("{key:?}").contains(key.pkcs8().expose()));
        assert!(DpopKey::restore(&SecretText::new("AAAA")).is_err());
    }

    #[test]
    fn tokens_are_bound_only_if_both_sides_support_it() {
        let (supported, unsupported) = (json!(["RS256", "ES256"]), json!(["RS256"]));
        let is_bound =
            |challenge: &str, algorithms| negotiate_key(Some(challenge), algorithms).unwrap().is_some();
        assert!(is_bound("DPoP resource_metadata=\"x\"", Some(&supported)));
        assert!(is_bound("Bearer error=\"invalid_token\", dpop algs=\"ES256\"", Some(&supported)));
        assert!(!is_bound("Bearer realm=\"dpop\"", Some(&supported)));
        assert!(!is_bound("DPoP error=\"invalid_token\"", Some(&unsupported)));
        assert!(!is_bound("DPoP error=\"invalid_token\"", None));
        assert!(negotiate_key(None, Some(&supported)).unwrap().is_none());
    }

    #[test]
    fn invalid_nonces_are_ignored() {
        assert_eq!(valid_nonce("abc-1"), Some("abc-1".to_owned()));
        for text in ["", "a b", "a\u{e9}", &"x".repeat(MAX_NONCE_BYTES + 1)] {
            assert_eq!(valid_nonce(text), None);
        }
    }
}
