//! A request to a token endpoint with the client authentication that the endpoint supports.

use serde_json::Value;

use crate::{
    SecretText,
    oauth::{
        OAuthError,
        client_assertion::sign_client_assertion,
        http_client::{ClientLogin, OAuthHttp},
        token_store::unix_seconds,
    },
    sanitize::sanitize_line,
};

/// Descriptions that share so many bytes with a secret, anywhere in it, are not repeated.
const SECRET_PART_BYTES: usize = 12;
const MAX_ERROR_CODE_BYTES: usize = 64;

/// How a client proves its identity at a token endpoint.
#[derive(Debug, Clone)]
pub enum ClientCredential {
    /// A public client, which has no secret.
    Public,
    /// A shared secret.
    Secret(SecretText),
    /// A signed JWT (`private_key_jwt`).
    PrivateKey {
        /// The private key, PKCS#8 in PEM.
        pem: SecretText,
        /// `ES256` or `RS256`.
        algorithm: String,
    },
}

/// A client at a token endpoint.
#[derive(Debug, Clone)]
pub struct TokenClient {
    /// The client's id.
    pub client_id: String,
    /// How it authenticates.
    pub credential: ClientCredential,
}

impl TokenClient {
    /// A client with a secret, or a public one.
    pub fn new(client_id: impl Into<String>, client_secret: Option<SecretText>) -> Self {
        let credential = client_secret.map_or(ClientCredential::Public, ClientCredential::Secret);
        Self { client_id: client_id.into(), credential }
    }
}

pub(super) struct TokenEndpoint<'a> {
    pub(super) http: &'a OAuthHttp,
    pub(super) issuer: &'a str,
    pub(super) url: &'a str,
    /// How clients may authenticate; by `client_secret_basic` if absent (RFC 8414).
    pub(super) authentication_methods: Option<&'a [String]>,
}

/// Why a token endpoint issued no token.
pub(super) enum TokenRequestError {
    /// The error code of RFC 6749, with the description if that repeats no secret.
    Refused {
        code: String,
        description: String,
    },
    Failed(OAuthError),
}

impl From<OAuthError> for TokenRequestError {
    fn from(error: OAuthError) -> Self {
        Self::Failed(error)
    }
}

impl TokenEndpoint<'_> {
    /// Sends a grant. `form` is complete apart from the client; its values count as secrets.
    pub(super) async fn request(
        &self,
        client: &TokenClient,
        form: &[(&str, &str)],
    ) -> Result<Vec<u8>, TokenRequestError> {
        let mut form = form.to_vec();
        let signed;
        let mut login = None;
        match &client.credential {
            ClientCredential::Public => form.push(("client_id", &client.client_id)),
            ClientCredential::Secret(secret) if self.supports("client_secret_basic") => {
                login = Some(ClientLogin { client_id: &client.client_id, secret });
            }
            ClientCredential::Secret(secret) if self.supports("client_secret_post") => {
                form.extend([("client_id", client.client_id.as_str()), ("client_secret", secret.expose())]);
            }
            ClientCredential::Secret(_) => {
                return Err(OAuthError::Discovery(format!(
                    "issuer {} accepts no client secrets",
                    sanitize_line(self.issuer)
                ))
                .into());
            }
            ClientCredential::PrivateKey { pem, algorithm } => {
                let id = &client.client_id;
                signed = sign_client_assertion(id, self.issuer, pem, algorithm, unix_seconds())?;
                form.extend([
                    ("client_id", id.as_str()),
                    ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
                    ("client_assertion", signed.as_str()),
                ]);
            }
        }
        let (status, body) = self.http.post(self.url, &form, login).await?;
        if status.is_success() {
            return Ok(body);
        }
        let secret = match &client.credential {
            ClientCredential::Secret(secret) => Some(secret.expose()),
            _ => None,
        };
        let secrets = form.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| *value).chain(secret);
        Err(refusal(status.as_u16(), &body, &secrets.collect::<Vec<_>>()))
    }

    fn supports(&self, method: &str) -> bool {
        match self.authentication_methods {
            Some(methods) => methods.iter().any(|supported| supported == method),
            None => method == "client_secret_basic",
        }
    }
}

fn is_secret(field: &str) -> bool {
    matches!(field, "subject_token" | "assertion" | "client_secret" | "client_assertion")
}

fn refusal(status: u16, body: &[u8], secrets: &[&str]) -> TokenRequestError {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_code = |code: &&str| {
        (1..=MAX_ERROR_CODE_BYTES).contains(&code.len())
            && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let code = Some(text("error")).filter(is_code).map(str::to_owned);
    // The text that is shown is compared, which is short.
    let description = sanitize_line(text("error_description"));
    // A server that quotes what it received would otherwise put tokens into logs.
    let repeats = |secret: &&str| {
        let length = SECRET_PART_BYTES.min(secret.len()).max(1);
        let shown = description.as_bytes();
        secret.as_bytes().windows(length).any(|part| shown.windows(length).any(|window| window == part))
    };
    let description = if secrets.iter().any(repeats) { String::new() } else { description };
    let code = code.unwrap_or_else(|| format!("HTTP status {status}"));
    TokenRequestError::Refused { code, description }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_repeats_no_secret() {
        let token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl";
        for (body, expected_code, expected_description) in [
            (
                format!(r#"{{"error":"invalid_grant","error_description":"bad {token}"}}"#),
                "invalid_grant",
                "",
            ),
            (
                format!(
                    r#"{{"error":"invalid_grant","error_description":"bad {}"}}"#,
                    token.split('.').next().unwrap()
                ),
                "invalid_grant",
                "",
            ),
            (
                format!(
                    r#"{{"error":"invalid_grant","error_description":"bad …{}"}}"#,
                    token.rsplit_once("ey").unwrap().1
                ),
                "invalid_grant",
                "",
            ),
            (format!(r#"{{"error":"{token}","error_description":"no"}}"#), "HTTP status 400", "no"),
            ("<html>".to_owned(), "HTTP status 400", ""),
            (
                r#"{"error":"invalid_target","error_description":"unknown\n resource"}"#.to_owned(),
                "invalid_target",
                "unknown resource",
            ),
        ] {
            let TokenRequestError::Refused { code, description } = refusal(400, body.as_bytes(), &[token])
            else {
                panic!("{body}")
            };
            assert_eq!(code, expected_code);
            assert_eq!(description.split_whitespace().collect::<Vec<_>>().join(" "), expected_description);
        }
    }
}
