//! A client that proves itself by signing (`private_key_jwt`, RFC 7523), for programs with an account of their own.

use aws_lc_rs::{
    rand::{self, SystemRandom},
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use super::{HiddenText, OAuthError};

/// How long an assertion is good for, in seconds: as long as it takes to send it.
const LIFETIME: u64 = 120;

/// What a client says about itself, signed, for one authorization server.
pub(super) fn assertion(
    client_id: &str,
    audience: &str,
    pem: &HiddenText,
    algorithm: &str,
    now: u64,
) -> Result<String, OAuthError> {
    let mut id = [0; 16];
    rand::fill(&mut id).map_err(|_| OAuthError::Key("the system gives no random numbers"))?;
    let header = json!({"alg": algorithm, "typ": "JWT"});
    let claims = json!({
        "iss": client_id, "sub": client_id, "aud": audience,
        "iat": now, "exp": now + LIFETIME, "jti": URL_SAFE_NO_PAD.encode(id),
    });
    let said = encoded(&header, &claims);
    let signature = sign(algorithm, &key_bytes(pem)?, said.as_bytes())?;
    Ok(format!("{said}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// What is said in a JSON Web Token, ready to be signed.
pub(super) fn encoded(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

fn sign(algorithm: &str, key: &[u8], said: &[u8]) -> Result<Vec<u8>, OAuthError> {
    let random = SystemRandom::new();
    let failed = |_| OAuthError::Key("it does not sign");
    match algorithm {
        "ES256" => {
            let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key)
                .map_err(|_| OAuthError::Key("it is no P-256 key in PKCS#8"))?;
            Ok(key.sign(&random, said).map_err(failed)?.as_ref().to_vec())
        }
        "RS256" => {
            let key =
                RsaKeyPair::from_pkcs8(key).map_err(|_| OAuthError::Key("it is no RSA key in PKCS#8"))?;
            let mut signature = vec![0; key.public_modulus_len()];
            key.sign(&RSA_PKCS1_SHA256, &random, said, &mut signature).map_err(failed)?;
            Ok(signature)
        }
        _ => Err(OAuthError::Key("its algorithm is neither ES256 nor RS256")),
    }
}

fn key_bytes(pem: &HiddenText) -> Result<Vec<u8>, OAuthError> {
    let inner = pem
        .reveal()
        .split_once("-----BEGIN PRIVATE KEY-----")
        .and_then(|(_, rest)| rest.split_once("-----END PRIVATE KEY-----"))
        .map(|(inner, _)| inner.split_whitespace().collect::<String>());
    inner
        .and_then(|text| STANDARD.decode(text).ok())
        .ok_or(OAuthError::Key("it is not PKCS#8 in PEM (`-----BEGIN PRIVATE KEY-----`)"))
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, KeyPair, UnparsedPublicKey};

    use super::*;

    #[test]
    fn signs_what_the_authorization_server_can_check() {
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let pem = HiddenText::new(format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(document.as_ref())
        ));
        let signed = assertion("me", "https://issuer", &pem, "ES256", 1000).unwrap();
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
        let again = assertion("me", "https://issuer", &pem, "ES256", 1000).unwrap();
        assert_ne!(signed, again, "each is used once");
    }

    #[test]
    fn refuses_keys_it_cannot_use_without_showing_them() {
        for (pem, algorithm) in [
            ("s3cret", "ES256"),
            ("-----BEGIN PRIVATE KEY-----\ns3cret!\n-----END PRIVATE KEY-----", "ES256"),
            ("-----BEGIN PRIVATE KEY-----\nczNjcmV0\n-----END PRIVATE KEY-----", "RS256"),
            ("-----BEGIN PRIVATE KEY-----\nczNjcmV0\n-----END PRIVATE KEY-----", "none"),
        ] {
            let error = assertion("me", "https://issuer", &HiddenText::new(pem), algorithm, 0).unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
