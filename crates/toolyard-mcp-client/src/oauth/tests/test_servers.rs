//! An authorization server and a server that asks for its tokens, for tests; both can misbehave.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolyard_core::BoxFuture;
use url::{Url, form_urlencoded};

use super::super::*;
use crate::{
    HttpTarget,
    transport::http::{
        streamable::StreamableHttp,
        test_server::{ReceivedRequest, Reply, TestClient, TestServer},
    },
};
use toolyard_mcp::WireLimits;

pub(super) type Form = BTreeMap<String, String>;
/// A status, headers and a body.
pub(super) type Answer = (u16, Vec<(String, String)>, String);

/// What both servers know and do.
#[derive(Default)]
pub(super) struct ServerBehavior {
    /// Where the server sends whoever needs a token; the authorization server's address if empty.
    pub(super) issuer: String,
    /// Access tokens that are good, with their scopes.
    pub(super) valid_tokens: HashMap<String, Vec<String>>,
    pub(super) refresh_tokens: Vec<String>,
    codes: HashMap<String, Form>,
    /// What a token needs for anything, and for `tools/call`.
    pub(super) required_scopes: (Vec<String>, Vec<String>),
    pub(super) lifetime: Option<u64>,
    /// Added to or put into the documents and answers.
    pub(super) metadata: BTreeMap<String, Value>,
    pub(super) resource: BTreeMap<String, Value>,
    pub(super) redirect: Form,
    /// The client secret that is given to whoever registers.
    pub(super) secret: Option<String>,
    /// Every token is refused.
    pub(super) rejects_all_tokens: bool,
    /// The answer to every request for a token.
    pub(super) token_answer: Option<Answer>,
    /// Where metadata is redirected to.
    pub(super) metadata_moved: Option<String>,
    /// No challenge and no documents: a server of the first revision.
    pub(super) without_discovery: bool,
    /// Tokens are bound to a key, and both servers want this nonce in every proof.
    pub(super) dpop_nonce: Option<String>,
    /// What happened: `register`, `authorize`, `token`, with all that was sent.
    pub(super) log: Vec<(&'static str, Form)>,
    count: usize,
}

/// The two servers and what they know.
pub(super) struct TestEnvironment {
    pub(super) behavior: Arc<Mutex<ServerBehavior>>,
    pub(super) issuer: TestServer,
    pub(super) server: TestServer,
}

pub(super) fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn form(text: &str) -> Form {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// The address a request was sent to.
fn base(request: &ReceivedRequest) -> String {
    format!("http://{}", request.header("host").unwrap())
}

impl TestEnvironment {
    pub(super) async fn start() -> Self {
        let behavior = Arc::new(Mutex::new(ServerBehavior::default()));
        let issuer = issuer(&behavior).await;
        let shared = Arc::clone(&behavior);
        let server = TestServer::start(move |request, mut reply| {
            let behavior = Arc::clone(&shared);
            async move {
                let (status, headers, body) = resource(&mut behavior.lock().unwrap(), &request);
                let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                reply.full(status, &headers, body).await;
                Some(reply)
            }
        })
        .await;
        behavior.lock().unwrap().issuer = address(&issuer);
        Self { behavior, issuer, server }
    }

    pub(super) fn behavior(&self) -> MutexGuard<'_, ServerBehavior> {
        self.behavior.lock().unwrap()
    }

    pub(super) fn oauth_server(&self) -> OAuthServer {
        let mut server = OAuthServer::new("notes", Url::parse(&self.server.url).unwrap());
        server.login_timeout = Duration::from_secs(15);
        server
    }

    pub(super) fn authorizer(&self) -> OAuthAuthorizer {
        OAuthAuthorizer::new(self.oauth_server(), TokenStore::in_memory()).unwrap()
    }

    pub(super) fn peer(&self, authorizer: OAuthAuthorizer) -> TestClient<StreamableHttp> {
        self.peer_of(&Arc::new(authorizer))
    }

    pub(super) fn peer_of(&self, authorizer: &Arc<OAuthAuthorizer>) -> TestClient<StreamableHttp> {
        let authorizer = Arc::clone(authorizer);
        let target = HttpTarget::new(&self.server.url, []).unwrap().with_authorizer(authorizer);
        TestClient::with(target, WireLimits::default())
    }

    /// What was sent with everything of one kind.
    pub(super) fn all(&self, kind: &str) -> Vec<Form> {
        self.behavior().log.iter().filter(|(name, _)| *name == kind).map(|(_, form)| form.clone()).collect()
    }

    /// How often each thing happened.
    pub(super) fn counts(&self) -> [usize; 3] {
        ["register", "authorize", "token"].map(|kind| self.all(kind).len())
    }
}

/// The address of a test server.
pub(super) fn address(server: &TestServer) -> String {
    server.url.trim_end_matches("/mcp").to_owned()
}

/// An authorization server that goes by these rules.
pub(super) async fn issuer(behavior: &Arc<Mutex<ServerBehavior>>) -> TestServer {
    let behavior = Arc::clone(behavior);
    TestServer::start(move |request, mut reply| {
        let behavior = Arc::clone(&behavior);
        async move {
            authorize(&behavior, &request, &mut reply).await;
            Some(reply)
        }
    })
    .await
}

async fn authorize(behavior: &Mutex<ServerBehavior>, request: &ReceivedRequest, reply: &mut Reply) {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let (status, headers, body) = {
        let mut behavior = behavior.lock().unwrap();
        match path {
            "/.well-known/oauth-authorization-server" => match &behavior.metadata_moved {
                Some(to) => (302, vec![("Location".to_owned(), to.clone())], String::new()),
                None if behavior.without_discovery => (404, Vec::new(), String::new()),
                None => (200, Vec::new(), metadata(&behavior, &base(request)).to_string()),
            },
            "/register" => behavior.register(request),
            "/authorize" => behavior.authorize(form(query), &base(request)),
            "/token" => behavior.token(request),
            _ => (404, Vec::new(), String::new()),
        }
    };
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    reply.full(status, &[&[("Content-Type", "application/json")], &headers[..]].concat(), body).await;
}

fn metadata(behavior: &ServerBehavior, base: &str) -> Value {
    let mut document = json!({
        "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
        "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
    });
    for (name, value) in &behavior.metadata {
        document[name] = value.clone();
    }
    document
}

impl ServerBehavior {
    fn next(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}-{:x}-{}", fastrand::u64(..), self.count)
    }

    fn register(&mut self, request: &ReceivedRequest) -> Answer {
        let asked = request.json();
        let dpop_claim =
            asked.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.to_string()));
        self.log.push(("register", dpop_claim.collect()));
        let id = self.next("client");
        let body = json!({
            "client_id": id, "client_secret": self.secret, "redirect_uris": asked["redirect_uris"],
        });
        (201, Vec::new(), body.to_string())
    }

    fn authorize(&mut self, asked: Form, base: &str) -> Answer {
        self.log.push(("authorize", asked.clone()));
        let code = self.next("code");
        let mut back = Url::parse(&asked["redirect_uri"]).unwrap();
        let mut answer = form("");
        answer.insert("code".to_owned(), code.clone());
        answer.insert("state".to_owned(), asked["state"].clone());
        answer.insert("iss".to_owned(), base.to_owned());
        answer.extend(self.redirect.clone());
        answer.retain(|_, value| !value.is_empty());
        back.query_pairs_mut().extend_pairs(answer);
        self.codes.insert(code, asked);
        (302, vec![("Location".to_owned(), back.into())], String::new())
    }

    fn scheme(&self) -> &'static str {
        if self.dpop_nonce.is_some() { "DPoP" } else { "Bearer" }
    }

    fn token(&mut self, request: &ReceivedRequest) -> Answer {
        let mut asked = form(std::str::from_utf8(&request.body).unwrap());
        asked.insert("basic".to_owned(), request.header("authorization").unwrap_or_default().to_owned());
        self.log.push(("token", asked.clone()));
        if let Some(answer) = &self.token_answer {
            return answer.clone();
        }
        if let Some(nonce) =
            self.dpop_nonce.clone().filter(|nonce| dpop_claim(request, "nonce") != json!(nonce))
        {
            let body = json!({"error": "use_dpop_nonce"}).to_string();
            return (400, vec![("DPoP-Nonce".to_owned(), nonce)], body);
        }
        let scope = match asked["grant_type"].as_str() {
            "authorization_code" => {
                let Some(question) = self.codes.remove(&asked["code"]) else { return invalid_grant() };
                let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, asked["code_verifier"].as_bytes()));
                let same = |name: &str| question.get(name) == asked.get(name);
                if question["code_challenge_method"] != "S256"
                    || question["code_challenge"] != challenge
                    || !same("resource")
                    || !same("redirect_uri")
                {
                    return invalid_grant();
                }
                question.get("scope").cloned()
            }
            "refresh_token" => {
                let known = self.refresh_tokens.iter().position(|token| *token == asked["refresh_token"]);
                let Some(known) = known else { return invalid_grant() };
                self.refresh_tokens.remove(known);
                asked.get("scope").cloned()
            }
            _ => asked.get("scope").cloned(),
        };
        let (access, refresh) = (self.next("access"), self.next("refresh"));
        let scopes = scope.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        self.valid_tokens.insert(access.clone(), scopes);
        let mut body =
            json!({"access_token": access, "token_type": self.scheme(), "id_token": self.next("identity")});
        if asked["grant_type"] != "client_credentials" {
            self.refresh_tokens.push(refresh.clone());
            body["refresh_token"] = json!(refresh);
        }
        if let Some(lifetime) = self.lifetime {
            body["expires_in"] = json!(lifetime);
        }
        (200, Vec::new(), body.to_string())
    }
}

/// What the proof of a request says about this.
fn dpop_claim(request: &ReceivedRequest, claim: &str) -> Value {
    let claims = request.header("dpop").and_then(|proof| proof.split('.').nth(1));
    let claims = claims.and_then(|claims| URL_SAFE_NO_PAD.decode(claims).ok()).unwrap_or_default();
    serde_json::from_slice::<Value>(&claims).unwrap_or_default()[claim].clone()
}

fn invalid_grant() -> Answer {
    let body = json!({"error": "invalid_grant", "error_description": "no such grant"});
    (400, Vec::new(), body.to_string())
}

/// The server that wants tokens.
fn resource(
    behavior: &mut ServerBehavior,
    request: &ReceivedRequest,
) -> (u16, Vec<(&'static str, String)>, String) {
    let document = "/.well-known/oauth-protected-resource/mcp";
    let json_type = ("Content-Type", "application/json".to_owned());
    if request.path == document && !behavior.without_discovery {
        let mut body =
            json!({"resource": format!("{}/mcp", base(request)), "authorization_servers": [behavior.issuer]});
        for (name, value) in &behavior.resource {
            body[name] = value.clone();
        }
        return (200, vec![json_type], body.to_string());
    }
    if !request.path.starts_with("/mcp") {
        // A server of the first revision is its own authorization server.
        let (status, headers, body) = match request.path.split('?').next() {
            Some("/register") => behavior.register(request),
            Some("/authorize") => behavior.authorize(form(request.path.split_once('?').unwrap().1), ""),
            Some("/token") => behavior.token(request),
            _ => (404, Vec::new(), String::new()),
        };
        let location = headers.into_iter().map(|(_, value)| ("Location", value));
        return (status, location.chain([json_type]).collect(), body);
    }
    let scheme = behavior.scheme();
    let sent = request.header("authorization").and_then(|header| header.strip_prefix(scheme));
    let sent = sent.map(str::trim);
    if let (Some(nonce), Some(token)) = (&behavior.dpop_nonce, sent) {
        assert_eq!(
            dpop_claim(request, "ath"),
            json!(URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes())))
        );
        if dpop_claim(request, "nonce") != json!(nonce) {
            let challenge = "DPoP error=\"use_dpop_nonce\"".to_owned();
            return (
                401,
                vec![("WWW-Authenticate", challenge), ("DPoP-Nonce", nonce.clone())],
                String::new(),
            );
        }
    }
    let scopes =
        sent.and_then(|token| behavior.valid_tokens.get(token)).filter(|_| !behavior.rejects_all_tokens);
    let (all, calls) = &behavior.required_scopes;
    let metadata = format!("resource_metadata=\"{}{document}\"", base(request));
    let needed = if request.json()["method"] == "tools/call" { calls } else { all };
    match scopes {
        None if behavior.without_discovery => (401, Vec::new(), String::new()),
        None => {
            let scope = if all.is_empty() { String::new() } else { format!(", scope=\"{}\"", all.join(" ")) };
            (401, vec![("WWW-Authenticate", format!("{scheme} {metadata}{scope}"))], String::new())
        }
        Some(scopes) if !needed.iter().all(|scope| scopes.contains(scope)) => {
            let challenge =
                format!("Bearer error=\"insufficient_scope\", scope=\"{}\", {metadata}", needed.join(" "));
            (403, vec![("WWW-Authenticate", challenge)], String::new())
        }
        Some(_) => (200, vec![json_type], request.response(&json!({"let": "in"}))),
    }
}

/// A person who consents to everything, at once; or does something else before.
#[derive(Default)]
pub(super) struct TestUser {
    pub(super) opened_urls: Mutex<Vec<String>>,
    /// Visits first, at the address the person is sent back to, with these queries.
    pub(super) earlier_callbacks: Vec<String>,
    /// Never goes back.
    pub(super) abandons_login: bool,
    /// Waits for this before consenting.
    pub(super) consent_signal: Option<Arc<Notify>>,
}

impl Browser for TestUser {
    fn open<'a>(&'a self, _: &'a str, url: &'a BrowserUrl) -> BoxFuture<'a, Result<(), BrowserError>> {
        self.opened_urls.lock().unwrap().push(url.as_str().to_owned());
        Box::pin(async move {
            let web = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
            let answer = web.get(url.as_str()).send().await.map_err(|error| BrowserError::new(&error))?;
            let back = answer
                .headers()
                .get("location")
                .ok_or_else(|| BrowserError::new(&"no redirect"))?
                .to_str()
                .unwrap()
                .to_owned();
            for query in &self.earlier_callbacks {
                let mut other = Url::parse(&back).unwrap();
                other.set_query(Some(query));
                web.get(other).send().await.map_err(|error| BrowserError::new(&error))?;
            }
            if let Some(notify) = &self.consent_signal {
                notify.notified().await;
            }
            if !self.abandons_login {
                web.get(back).send().await.map_err(|error| BrowserError::new(&error))?;
            }
            Ok(())
        })
    }
}
