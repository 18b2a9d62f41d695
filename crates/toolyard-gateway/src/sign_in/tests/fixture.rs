//! A gateway's pages, an upstream server that is its own authorization server, and people with browsers.

use std::{collections::BTreeMap, sync::Arc};

use axum::body::{Body, to_bytes};
use http::{Request, StatusCode, header};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use toolyard_core::{
    API_KEY_ISSUER, AuthenticationError, Authenticator, BoxFuture, CallerIdentity, Credentials, PersonLogin,
    PersonSignIn, PersonSignInError,
};
use toolyard_mcp_client::{
    Authorizer as _,
    oauth::{OAuthAuthorizer, OAuthServer, TokenStore},
};
use toolyard_mcp_server::{Access, AccessRules, AccessToken, SharedAccessRules};
use tower::ServiceExt as _;

use super::super::{PublicUrl, SignInRequest, SignIns};
use crate::api::AuthenticatedCaller;

pub(super) const ORIGIN: &str = "https://tools.example";
pub(super) const ISSUER: &str = "https://issuer.example";

pub(super) fn caller(issuer: &str, name: &str) -> Arc<CallerIdentity> {
    Arc::new(CallerIdentity::principal(issuer, name))
}

/// Accepts the keys `key-of-NAME`.
#[derive(Debug, Default)]
struct TestAuthenticator {
    person_sign_in: Option<Arc<dyn PersonSignIn>>,
}

impl Authenticator for TestAuthenticator {
    fn authenticate<'a>(
        &'a self,
        credentials: Credentials<'a>,
    ) -> BoxFuture<'a, Result<Arc<CallerIdentity>, AuthenticationError>> {
        let name = credentials.bearer.and_then(|key| key.strip_prefix("key-of-"));
        let identity = name.map(|name| caller(API_KEY_ISSUER, name));
        Box::pin(std::future::ready(identity.ok_or(AuthenticationError::Invalid("unknown token"))))
    }

    fn person_sign_in(&self) -> Option<Arc<dyn PersonSignIn>> {
        self.person_sign_in.clone()
    }

    fn challenge(&self, _: &str, _: &AuthenticationError) -> String {
        String::new()
    }
}

/// An issuer whose codes are the names of people.
#[derive(Debug)]
pub(super) struct TestIssuer;

impl PersonSignIn for TestIssuer {
    fn issuer(&self) -> &str {
        ISSUER
    }

    fn begin<'a>(&'a self, redirect_uri: &'a str) -> BoxFuture<'a, Result<PersonLogin, PersonSignInError>> {
        let login = PersonLogin {
            url: format!("{ISSUER}/authorize?state=state-of-person"),
            state: "state-of-person".to_owned(),
            nonce: "n".to_owned(),
            code_verifier: "v".to_owned(),
            redirect_uri: redirect_uri.to_owned(),
        };
        Box::pin(std::future::ready(Ok(login)))
    }

    fn finish<'a>(
        &'a self,
        login: PersonLogin,
        code: &'a str,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<CallerIdentity, PersonSignInError>> {
        assert_eq!(login.redirect_uri, format!("{ORIGIN}/sign-in/callback"));
        Box::pin(std::future::ready(Ok(CallerIdentity::principal(ISSUER, code))))
    }
}

pub(super) struct Fixture {
    pub(super) sign_ins: Arc<SignIns>,
    pub(super) server: String,
    pub(super) store: TokenStore,
}

impl Fixture {
    /// The pages; the upstream server does not answer.
    pub(super) fn without_server() -> Self {
        Self::new("http://127.0.0.1:9".to_owned(), None)
    }

    pub(super) async fn start() -> Self {
        Self::new(start_server().await, None)
    }

    pub(super) async fn with_issuer() -> Self {
        Self::new(start_server().await, Some(Arc::new(TestIssuer)))
    }

    fn new(server: String, person_sign_in: Option<Arc<dyn PersonSignIn>>) -> Self {
        let mut rules = AccessRules::new(Access::Token(AccessToken::new("the-token-of-the-gateway")));
        rules.authenticator = Some(Arc::new(TestAuthenticator { person_sign_in }));
        let url = PublicUrl::parse(ORIGIN).unwrap();
        let sign_ins = Arc::new(SignIns::new(url, SharedAccessRules::new(rules)));
        Self { sign_ins, server, store: TokenStore::in_memory() }
    }

    pub(super) fn authorizer(&self, caller: &Arc<CallerIdentity>) -> OAuthAuthorizer {
        let mut server = OAuthServer::new("notes", format!("{}/mcp", self.server).parse().unwrap());
        server.caller = Some(Arc::clone(caller));
        OAuthAuthorizer::new(server, self.store.clone()).unwrap()
    }

    pub(super) fn request(&self, server: &str, caller: &Arc<CallerIdentity>) -> SignInRequest {
        SignInRequest {
            server: server.to_owned(),
            caller: Some(Arc::clone(caller)),
            authorizer: self.authorizer(caller),
            challenge: None,
        }
    }

    /// The path of the link that a call of this caller gets.
    pub(super) fn link(&self, caller: &Arc<CallerIdentity>) -> String {
        let link = self.sign_ins.begin(self.request("notes", caller)).unwrap();
        link.url().strip_prefix(ORIGIN).unwrap().to_owned()
    }

    pub(super) async fn has_tokens(&self, caller: &Arc<CallerIdentity>) -> bool {
        self.authorizer(caller).token().await.is_some()
    }

    pub(super) fn browser(&self) -> TestBrowser<'_> {
        TestBrowser { fixture: self, cookies: Mutex::default(), origin: ORIGIN, identity: Arc::default() }
    }
}

/// A browser that keeps cookies.
pub(super) struct TestBrowser<'a> {
    fixture: &'a Fixture,
    cookies: Mutex<BTreeMap<String, String>>,
    /// Where forms are sent from.
    pub(super) origin: &'static str,
    /// Who sends requests according to the gateway.
    pub(super) identity: Arc<CallerIdentity>,
}

pub(super) struct PageResponse {
    pub(super) status: StatusCode,
    pub(super) headers: http::HeaderMap,
    pub(super) text: String,
}

impl PageResponse {
    /// Where the page leads to.
    pub(super) fn next(&self) -> Option<String> {
        let (_, rest) = self.text.split_once("<a href=\"")?;
        Some(rest.split_once('"')?.0.replace("&amp;", "&"))
    }

    /// A query parameter of the page that this one leads to.
    pub(super) fn next_parameter(&self, name: &str) -> String {
        let next = self.next().unwrap();
        let (_, query) = next.split_once('?').unwrap();
        let value = query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name);
        value.unwrap().1.to_owned()
    }
}

impl TestBrowser<'_> {
    pub(super) async fn get(&self, path: &str) -> PageResponse {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(super) async fn post(&self, path: &str, form: &str) -> PageResponse {
        let request = Request::post(path).header(header::ORIGIN, self.origin);
        self.send(request.body(Body::from(form.to_owned())).unwrap()).await
    }

    async fn send(&self, mut request: Request<Body>) -> PageResponse {
        let cookies: Vec<String> =
            self.cookies.lock().iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            request.headers_mut().insert(header::COOKIE, cookies.join("; ").parse().unwrap());
        }
        request.extensions_mut().insert(AuthenticatedCaller(Arc::clone(&self.identity)));
        let response = self.fixture.sign_ins.router().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        for cookie in parts.headers.get_all(header::SET_COOKIE) {
            let (pair, attributes) = cookie.to_str().unwrap().split_once(';').unwrap();
            for attribute in ["HttpOnly", "SameSite=Lax", "Secure", "Path=/"] {
                assert!(attributes.contains(attribute), "{attributes}");
            }
            let (name, value) = pair.split_once('=').unwrap();
            assert!(name.starts_with("__Host-"));
            self.cookies.lock().insert(name.to_owned(), value.to_owned());
        }
        let text = String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap();
        PageResponse { status: parts.status, headers: parts.headers, text }
    }

    /// Opens a link and proves to be the owner of a key. Returns the page that leads to the authorization server.
    pub(super) async fn prove(&self, link: &str, key: &str) -> PageResponse {
        assert_eq!(self.get(link).await.status, StatusCode::OK);
        self.post(link, &format!("key={key}")).await
    }
}

/// Starts a server that requires tokens and issues them itself. Returns its URL.
async fn start_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let base = url.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, base.clone()));
        }
    });
    url
}

async fn answer(mut stream: TcpStream, base: String) {
    let mut request = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let count = stream.read(&mut buffer).await.unwrap_or(0);
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let length =
            text.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let is_complete =
            text.split_once("\r\n\r\n").is_some_and(|(_, body)| body.len() >= length.unwrap_or(0));
        if count == 0 || is_complete {
            break;
        }
    }
    let head = String::from_utf8_lossy(&request).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let body = match path {
        "/.well-known/oauth-protected-resource/mcp" => {
            json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]})
        }
        "/.well-known/oauth-authorization-server" => json!({
            "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        }),
        "/register" => json!({"client_id": "c", "redirect_uris": [format!("{ORIGIN}/oauth/callback")]}),
        "/token" => json!({"access_token": "s3cret-token", "token_type": "Bearer"}),
        _ => json!({}),
    };
    let status = if body == json!({}) { "404 Not Found" } else { "200 OK" };
    let body = body.to_string();
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(response.as_bytes()).await;
}
