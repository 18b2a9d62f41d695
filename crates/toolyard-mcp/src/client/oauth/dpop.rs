//! Tokens that are good only together with a key (DPoP, RFC 9449): a proof for every request, made for it alone.

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

use super::{HiddenText, OAuthError, assertion::encoded};

/// The word of a server that wants its nonce in the proof.
pub(super) const USE_NONCE: &str = "use_dpop_nonce";
/// A nonce longer than this is not sent back.
const MOST_NONCE: usize = 1024;

/// The key that tokens of one issuer are bound to.
pub(super) struct ProofKey {
    pair: EcdsaKeyPair,
    kept: HiddenText,
}

impl ProofKey {
    /// A new key.
    pub(super) fn generate() -> Result<Self, OAuthError> {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| OAuthError::Key("none could be made"))?;
        Self::restore(&HiddenText::new(STANDARD.encode(document.as_ref())))
    }

    /// The key that was kept beside a token.
    pub(super) fn restore(kept: &HiddenText) -> Result<Self, OAuthError> {
        let bytes = STANDARD.decode(kept.reveal()).map_err(|_| OAuthError::Key("it is not Base64"))?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &bytes)
            .map_err(|_| OAuthError::Key("it is no P-256 key in PKCS#8"))?;
        Ok(Self { pair, kept: kept.clone() })
    }

    /// How it is kept.
    pub(super) fn kept(&self) -> &HiddenText {
        &self.kept
    }

    /// A proof for one request: with the token it goes with, where there is one, and the nonce of whoever asked for one.
    pub(super) fn proof(
        &self,
        method: &str,
        url: &Url,
        token: Option<&str>,
        nonce: Option<&str>,
        now: u64,
    ) -> Result<String, OAuthError> {
        let mut id = [0; 16];
        rand::fill(&mut id).map_err(|_| OAuthError::Key("the system gives no random numbers"))?;
        let mut address = url.clone();
        address.set_query(None);
        address.set_fragment(None);
        let ath = token.map(|token| URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes())));
        let claims: Map<String, Value> = [
            ("jti", Some(json!(URL_SAFE_NO_PAD.encode(id)))),
            ("htm", Some(json!(method))),
            ("htu", Some(json!(address.as_str()))),
            ("iat", Some(json!(now))),
            ("ath", ath.map(Value::from)),
            ("nonce", nonce.map(Value::from)),
        ]
        .into_iter()
        .filter_map(|(name, claim)| Some((name.to_owned(), claim?)))
        .collect();
        let said =
            encoded(&json!({"typ": "dpop+jwt", "alg": "ES256", "jwk": self.public()?}), &claims.into());
        let signature = self.pair.sign(&SystemRandom::new(), said.as_bytes());
        let signature = signature.map_err(|_| OAuthError::Key("it does not sign"))?;
        Ok(format!("{said}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The public half, which is all that anyone ever sees of it.
    fn public(&self) -> Result<Value, OAuthError> {
        // An uncompressed point: 4, then both coordinates.
        match self.pair.public_key().as_ref() {
            [4, coordinates @ ..] if coordinates.len() == 64 => {
                let (x, y) = coordinates.split_at(32);
                let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
                Ok(json!({"kty": "EC", "crv": "P-256", "x": text(x), "y": text(y)}))
            }
            _ => Err(OAuthError::Key("its public half is not usable")),
        }
    }
}

impl fmt::Debug for ProofKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ProofKey(***)")
    }
}

/// Whether tokens are to be bound to a key: the server asks for it, and the authorization server can. The latter alone is not
/// enough, for a server that does not know the scheme would refuse the token.
pub(super) fn key_for(
    challenge: Option<&str>,
    algorithms: Option<&Value>,
) -> Result<Option<Arc<ProofKey>>, OAuthError> {
    let asked = challenge.is_some_and(|challenge| {
        challenge.split(',').any(|part| {
            part.trim().split(' ').next().is_some_and(|scheme| scheme.eq_ignore_ascii_case("DPoP"))
        })
    });
    let offered = algorithms.and_then(Value::as_array).is_some_and(|all| all.contains(&json!("ES256")));
    (asked && offered).then(|| ProofKey::generate().map(Arc::new)).transpose()
}

/// A nonce that can be sent back.
pub(super) fn usable_nonce(text: &str) -> Option<String> {
    let usable = (1..=MOST_NONCE).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    usable.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    fn part(text: &str) -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap()
    }

    #[test]
    fn a_proof_is_for_one_request_and_signed_by_the_key_it_shows() {
        let key = ProofKey::generate().unwrap();
        let url = Url::parse("https://mcp.example.org/mcp?key=x#y").unwrap();
        let proof = key.proof("POST", &url, Some("token"), Some("nonce"), 1_000).unwrap();
        let parts: Vec<&str> = proof.split('.').collect();
        let (header, claims) = (part(parts[0]), part(parts[1]));
        assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
        assert_eq!(header["jwk"].as_object().unwrap().len(), 4, "nothing of the private half");
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
        assert_ne!(part(another.split('.').nth(1).unwrap())["jti"], claims["jti"]);
    }

    #[test]
    fn a_key_outlives_the_process_and_shows_itself_to_nobody() {
        let key = ProofKey::generate().unwrap();
        let again = ProofKey::restore(key.kept()).unwrap();
        assert_eq!(again.public().unwrap(), key.public().unwrap());
        assert!(!format!("{key:?}").contains(key.kept().reveal()));
        assert!(ProofKey::restore(&HiddenText::new("AAAA")).is_err());
    }

    #[test]
    fn tokens_are_bound_only_where_both_sides_want_it() {
        let (able, unable) = (json!(["RS256", "ES256"]), json!(["RS256"]));
        let asked = |challenge: &str, algorithms| key_for(Some(challenge), algorithms).unwrap().is_some();
        assert!(asked("DPoP resource_metadata=\"x\"", Some(&able)));
        assert!(asked("Bearer error=\"invalid_token\", dpop algs=\"ES256\"", Some(&able)));
        assert!(!asked("Bearer realm=\"dpop\"", Some(&able)));
        assert!(!asked("DPoP error=\"invalid_token\"", Some(&unable)));
        assert!(!asked("DPoP error=\"invalid_token\"", None));
        assert!(key_for(None, Some(&able)).unwrap().is_none());
    }

    #[test]
    fn a_nonce_that_cannot_be_sent_back_is_none() {
        assert_eq!(usable_nonce("abc-1"), Some("abc-1".to_owned()));
        for text in ["", "a b", "a\u{e9}", &"x".repeat(MOST_NONCE + 1)] {
            assert_eq!(usable_nonce(text), None);
        }
    }
}
