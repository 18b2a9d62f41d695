//! Signs tokens with generated keys, by aws-lc directly: not with the library that verifies them.

use aws_lc_rs::{
    encoding::AsDer as _,
    hmac,
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
        KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
        RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
    },
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Keys of an issuer, or of an attacker.
pub(crate) struct Signer {
    rsa: RsaKeyPair,
    p256: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    ed25519: Ed25519KeyPair,
}

impl Signer {
    pub(crate) fn generate() -> Self {
        Self {
            rsa: RsaKeyPair::generate(KeySize::Rsa2048).unwrap(),
            p256: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap(),
            p384: EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap(),
            ed25519: Ed25519KeyPair::generate().unwrap(),
        }
    }

    /// The public keys: `rsa`, `p256`, `p384`, `ed`, and some that must not count.
    pub(crate) fn published_keys(&self) -> Value {
        let ec = |key: &EcdsaKeyPair, curve: &str| {
            let (x, y) = key.public_key().as_ref()[1..].split_at((key.public_key().as_ref().len() - 1) / 2);
            json!({"kty": "EC", "crv": curve, "x": encode(x), "y": encode(y)})
        };
        let with_id = |mut key: Value, id: &str| {
            key["kid"] = json!(id);
            key
        };
        json!({"keys": [
            with_id(self.rsa_key(), "rsa"),
            with_id(ec(&self.p256, "P-256"), "p256"),
            with_id(ec(&self.p384, "P-384"), "p384"),
            {"kty": "OKP", "crv": "Ed25519", "x": encode(self.ed25519.public_key()), "kid": "ed"},
            {"kty": "oct", "k": encode("a secret that issuers should not publish"), "kid": "oct", "alg": "HS256"},
            with_id(json!({"kty": "RSA", "n": self.rsa_key()["n"], "e": "AQAB", "use": "enc"}), "enc"),
            with_id(json!({"kty": "RSA", "n": self.rsa_key()["n"], "e": "AQAB", "alg": "PS256"}), "pss-only"),
        ]})
    }

    pub(crate) fn rsa_key(&self) -> Value {
        let modulus = self.rsa.public_key().modulus().big_endian_without_leading_zero().to_vec();
        json!({"kty": "RSA", "n": encode(modulus), "e": "AQAB"})
    }

    /// The public RSA key as an attacker would use it for HMAC: DER and PEM.
    pub(crate) fn rsa_public_encodings(&self) -> [Vec<u8>; 2] {
        let der = self.rsa.public_key().as_der().unwrap().as_ref().to_vec();
        let body = base64::engine::general_purpose::STANDARD.encode(&der);
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n");
        [der, pem.into_bytes()]
    }

    /// A token with this header and these claims, signed as the header says.
    pub(crate) fn token(&self, header: &Value, claims: &Value) -> String {
        self.token_of_texts(
            &header.to_string(),
            &claims.to_string(),
            header["alg"].as_str().unwrap_or("RS256"),
        )
    }

    pub(crate) fn token_of_texts(&self, header: &str, claims: &str, algorithm: &str) -> String {
        let message = format!("{}.{}", encode(header), encode(claims));
        let signature = self.sign(&message, algorithm);
        format!("{message}.{}", encode(signature))
    }

    pub(crate) fn sign(&self, message: &str, algorithm: &str) -> Vec<u8> {
        let (random, message) = (SystemRandom::new(), message.as_bytes());
        let rsa = |encoding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public_modulus_len()];
            self.rsa.sign(encoding, &random, message, &mut signature).unwrap();
            signature
        };
        match algorithm {
            "RS256" => rsa(&RSA_PKCS1_SHA256),
            "RS384" => rsa(&RSA_PKCS1_SHA384),
            "RS512" => rsa(&RSA_PKCS1_SHA512),
            "PS256" => rsa(&RSA_PSS_SHA256),
            "PS384" => rsa(&RSA_PSS_SHA384),
            "PS512" => rsa(&RSA_PSS_SHA512),
            "ES256" => self.p256.sign(&random, message).unwrap().as_ref().to_vec(),
            "ES384" => self.p384.sign(&random, message).unwrap().as_ref().to_vec(),
            "EdDSA" | "Ed25519" => self.ed25519.sign(message).as_ref().to_vec(),
            _ => rsa(&RSA_PKCS1_SHA256),
        }
    }
}

/// A token whose "signature" is an HMAC with this secret.
pub(crate) fn hmac_token(header: &Value, claims: &Value, secret: &[u8]) -> String {
    let message = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    format!("{message}.{}", encode(hmac::sign(&key, message.as_bytes())))
}
