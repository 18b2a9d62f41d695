//! People who sign in at the issuer: which ID tokens say who somebody is.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use toolyard_core::{BoxFuture, PersonLogin, PersonSignIn as _, PersonSignInError, unix_millis};
use toolyard_identity::OidcSignIn;

use super::*;

const CLIENT: &str = "pages";
const REDIRECT_URI: &str = "https://tools.example/sign-in/callback";

/// An issuer whose token endpoint answers with the next ID token.
#[derive(Debug)]
struct TestIssuer {
    token_endpoint: String,
    keys: Value,
}

impl MetadataSource for TestIssuer {
    fn read<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, FetchError>> {
        let document = match url {
            "https://id.example/.well-known/openid-configuration" => Ok(json!({
                "issuer": ISSUER, "jwks_uri": "https://id.example/keys",
                "authorization_endpoint": "https://id.example/authorize?tenant=7", "token_endpoint": self.token_endpoint,
            })),
            "https://id.example/keys" => Ok(self.keys.clone()),
            _ => Err(FetchError::NotFound { url: url.to_owned() }),
        };
        Box::pin(std::future::ready(document.map(|document| document.to_string())))
    }
}

struct Environment {
    signer: Signer,
    sign_in: OidcSignIn,
    id_token: Arc<Mutex<String>>,
    forms: Arc<Mutex<Vec<String>>>,
}

impl Environment {
    async fn start() -> Self {
        let signer = Signer::generate();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let token_endpoint = format!("http://{}/token", listener.local_addr().unwrap());
        let (id_token, forms): (Arc<Mutex<String>>, Arc<Mutex<Vec<String>>>) = Default::default();
        let (next, received) = (Arc::clone(&id_token), Arc::clone(&forms));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 16_384];
                let mut length = 0;
                while !String::from_utf8_lossy(&request[..length]).contains("code_verifier=") {
                    length += stream.read(&mut request[length..]).await.unwrap();
                }
                received.lock().push(String::from_utf8_lossy(&request[..length]).into_owned());
                let body = json!({"access_token": "x", "id_token": *next.lock()}).to_string();
                let head =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
            }
        });
        let source = Arc::new(TestIssuer { token_endpoint, keys: signer.published_keys() });
        let config =
            OAuthConfig { scopes: vec!["tools:call".to_owned()], ..OAuthConfig::new(ISSUER, RESOURCE) };
        Self { signer, sign_in: OidcSignIn::new(&config, CLIENT, source).unwrap(), id_token, forms }
    }

    fn claims(login: &PersonLogin) -> Value {
        let now = unix_millis() / 1_000;
        json!({"iss": ISSUER, "aud": CLIENT, "sub": "ada", "exp": now + 300, "iat": now, "nonce": login.nonce})
    }

    /// What a sign-in with these claims says.
    async fn finish(
        &self,
        signer: &Signer,
        change: impl Fn(&mut Value),
    ) -> Result<String, PersonSignInError> {
        let login = self.sign_in.begin(REDIRECT_URI).await.unwrap();
        let mut claims = Self::claims(&login);
        change(&mut claims);
        *self.id_token.lock() = signer.token(&json!({"alg": "RS256", "kid": "rsa"}), &claims);
        let identity = self.sign_in.finish(login, "c0de", None).await?;
        assert_eq!(&*identity.issuer, ISSUER);
        Ok(identity.subject.to_string())
    }
}

#[tokio::test]
async fn a_person_signs_in_with_pkce() {
    let environment = Environment::start().await;
    let login = environment.sign_in.begin(REDIRECT_URI).await.unwrap();
    assert!(
        login.url.starts_with("https://id.example/authorize?tenant=7&response_type=code&client_id=pages&")
    );
    assert!(login.url.contains("code_challenge_method=S256") && login.url.contains("scope=openid"));
    assert!(!login.url.contains(&login.code_verifier) && !format!("{login:?}").contains(&login.state));
    assert_eq!(environment.finish(&environment.signer, |_| {}).await.as_deref(), Ok("ada"));
    let forms = environment.forms.lock().clone();
    assert!(forms[0].contains("code=c0de") && forms[0].contains("client_id=pages"), "{}", forms[0]);
}

#[tokio::test]
async fn id_tokens_of_others_identify_nobody() {
    let environment = Environment::start().await;
    let changes: [fn(&mut Value); 7] = [
        |claims| claims["nonce"] = json!("of another sign-in"),
        |claims| drop(claims.as_object_mut().unwrap().remove("nonce")),
        |claims| claims["aud"] = json!("another-client"),
        |claims| claims["aud"] = json!(RESOURCE),
        |claims| claims["azp"] = json!("another-client"),
        |claims| claims["iss"] = json!("https://evil.example"),
        |claims| claims["exp"] = json!(1),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert!(environment.finish(&environment.signer, change).await.is_err(), "{number}");
    }
    assert!(environment.finish(&Signer::generate(), |_| {}).await.is_err(), "another key");
    let login = environment.sign_in.begin(REDIRECT_URI).await.unwrap();
    let requests = environment.forms.lock().len();
    let refused = environment.sign_in.finish(login, "c0de", Some("https://evil.example")).await;
    assert!(refused.is_err());
    assert_eq!(environment.forms.lock().len(), requests, "the code is not sent to the issuer");
}
