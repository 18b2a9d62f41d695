//! Client authentication by a signed JWT (`private_key_jwt`, RFC 7523).

use aws_lc_rs::{
    rand::{self, SystemRandom},
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use super::OAuthError;
use crate::SecretText;

/// Assertions are sent at once.
const LIFETIME_SECS: u64 = 120;

pub(super) fn sign_client_assertion(
    client_id: &str,
    audience: &str,
    pem: &SecretText,
    algorithm: &str,
    now: u64,
) -> Result<String, OAuthError> {
    let mut id = [0; 16];
    rand::fill(&mut id).map_err(|_| OAuthError::Key("no random numbers available"))?;
    let header = json!({"alg": algorithm, "typ": "JWT"});
    let claims = json!({
        "iss": client_id, "sub": client_id, "aud": audience,
        "iat": now, "exp": now + LIFETIME_SECS, "jti": URL_SAFE_NO_PAD.encode(id),
    });
    let message = encode_jwt(&header, &claims);
    let signature = sign(algorithm, &decode_pem(pem)?, message.as_bytes())?;
    Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// The signing input of a JWT.
pub(super) fn encode_jwt(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

fn sign(algorithm: &str, key: &[u8], message: &[u8]) -> Result<Vec<u8>, OAuthError> {
    let random = SystemRandom::new();
    let failed = |_| OAuthError::Key("signing failed");
    match algorithm {
        "ES256" => {
            let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key)
                .map_err(|_| OAuthError::Key("not a P-256 key in PKCS#8"))?;
            Ok(key.sign(&random, message).map_err(failed)?.as_ref().to_vec())
        }
        "RS256" => {
            let key = RsaKeyPair::from_pkcs8(key).map_err(|_| OAuthError::Key("not an RSA key in PKCS#8"))?;
            let mut signature = vec![0; key.public_modulus_len()];
            key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).map_err(failed)?;
            Ok(signature)
        }
        _ => Err(OAuthError::Key("the algorithm is neither ES256 nor RS256")),
    }
}

fn decode_pem(pem: &SecretText) -> Result<Vec<u8>, OAuthError> {
    let inner = pem
        .expose()
        .split_once("-----BEGIN PRIVATE KEY-----")
        .and_then(|(_, rest)| rest.split_once("-----END PRIVATE KEY-----"))
        .map(|(inner, _)| inner.split_whitespace().collect::<String>());
    inner
        .and_then(|text| STANDARD.decode(text).ok())
        .ok_or(OAuthError::Key("not PKCS#8 in PEM (`-----BEGIN PRIVATE KEY-----`)"))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, KeyPair, UnparsedPublicKey};

    use super::*;

    #[test]
    fn the_signature_verifies() {
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let pem = SecretText::new(format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(document.as_ref())
        ));
        let signed = sign_client_assertion("me", "https://issuer", &pem, "ES256", 1000).unwrap();
        let parts: Vec<_> = signed.split('.').collect();
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
        assert_eq!(
            (&claims["iss"], &claims["sub"], &claims["aud"]),
            (&json!("me"), &json!("me"), &json!("https://issuer"))
        );
        assert_eq!(claims["exp"], json!(1120));
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref()).unwrap();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key().as_ref())
            .verify(
                format!("{}.{}", parts[0], parts[1]).as_bytes(),
                &URL_SAFE_NO_PAD.decode(parts[2]).unwrap(),
            )
            .unwrap();
        let again = sign_client_assertion("me", "https://issuer", &pem, "ES256", 1000).unwrap();
        assert_ne!(signed, again, "the id is unique");
    }

    #[test]
    fn invalid_keys_are_rejected_without_being_shown() {
        for (pem, algorithm) in [
            ("s3cret", "ES256"),
            ("-----BEGIN PRIVATE KEY-----\ns3cret!\n-----END PRIVATE KEY-----", "ES256"),
            ("-----BEGIN PRIVATE KEY-----\nczNjcmV0\n-----END PRIVATE KEY-----", "RS256"),
            ("-----BEGIN PRIVATE KEY-----\nczNjcmV0\n-----END PRIVATE KEY-----", "none"),
        ] {
            let error = sign_client_assertion("me", "https://issuer", &SecretText::new(pem), algorithm, 0)
                .unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
