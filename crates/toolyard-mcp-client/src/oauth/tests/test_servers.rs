//! An authorization server, an MCP server that requires its tokens, and a user, for tests; all can misbehave.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use aws_lc_rs::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use parking_lot::{Mutex, MutexGuard};
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
/// Status, headers and body.
pub(super) type HttpResponse = (u16, Vec<(String, String)>, String);

/// The behavior and the state of both servers.
#[derive(Default)]
pub(super) struct ServerBehavior {
    /// The authorization server that the MCP server names in its metadata.
    pub(super) issuer: String,
    /// Valid access tokens with their scopes.
    pub(super) valid_tokens: HashMap<String, Vec<String>>,
    pub(super) refresh_tokens: Vec<String>,
    /// The scopes of refresh tokens.
    granted: HashMap<String, String>,
    codes: HashMap<String, Form>,
    /// The required scopes: of all other requests, and of `tools/call`.
    pub(super) required_scopes: (Vec<String>, Vec<String>),
    pub(super) lifetime: Option<u64>,
    /// Fields that are added to or replace those of the authorization server's metadata.
    pub(super) metadata: BTreeMap<String, Value>,
    /// The same for the metadata of the MCP server.
    pub(super) resource: BTreeMap<String, Value>,
    /// The same for the parameters of redirects; an empty value removes a parameter.
    pub(super) redirect: Form,
    /// The client secret that registered clients get.
    pub(super) secret: Option<String>,
    /// Every token is refused.
    pub(super) rejects_all_tokens: bool,
    /// The response to every token request.
    pub(super) token_response: Option<HttpResponse>,
    /// Called when the next token request arrives.
    pub(super) on_token_request: Option<Box<dyn FnOnce() + Send>>,
    /// Tokens of callers that are not accepted any more.
    pub(super) revoked_subjects: Vec<String>,
    /// Where metadata is redirected to.
    pub(super) metadata_moved: Option<String>,
    /// Sends no challenge and no metadata, like an MCP server of 2024-11-05.
    pub(super) without_discovery: bool,
    /// The received requests: `register`, `authorize` or `token`, with their parameters.
    pub(super) log: Vec<(&'static str, Form)>,
    id_count: usize,
}

/// Both servers and their behavior.
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

/// A new key for signed client assertions, PKCS#8 in PEM.
pub(super) fn ec_key_pem() -> String {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", STANDARD.encode(key.as_ref()))
}

/// The base URL that a request was sent to.
fn request_base_url(request: &ReceivedRequest) -> String {
    format!("http://{}", request.header("host").unwrap())
}

impl TestEnvironment {
    pub(super) async fn start() -> Self {
        let behavior = Arc::new(Mutex::new(ServerBehavior::default()));
        let issuer = start_issuer(&behavior).await;
        let shared = Arc::clone(&behavior);
        let server = TestServer::start(move |request, mut reply| {
            let behavior = Arc::clone(&shared);
            async move {
                let (status, headers, body) = serve_resource(&mut behavior.lock(), &request);
                let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                reply.full(status, &headers, body).await;
                Some(reply)
            }
        })
        .await;
        behavior.lock().issuer = base_url(&issuer);
        Self { behavior, issuer, server }
    }

    pub(super) fn behavior(&self) -> MutexGuard<'_, ServerBehavior> {
        self.behavior.lock()
    }

    pub(super) fn oauth_server(&self) -> OAuthServer {
        let mut server = OAuthServer::new("notes", Url::parse(&self.server.url).unwrap());
        server.login_timeout = Duration::from_secs(15);
        server
    }

    pub(super) fn authorizer(&self) -> OAuthAuthorizer {
        OAuthAuthorizer::new(self.oauth_server(), TokenStore::in_memory()).unwrap()
    }

    pub(super) fn client(&self, authorizer: OAuthAuthorizer) -> TestClient<StreamableHttp> {
        self.client_sharing(&Arc::new(authorizer))
    }

    pub(super) fn client_sharing(&self, authorizer: &Arc<OAuthAuthorizer>) -> TestClient<StreamableHttp> {
        let authorizer = Arc::clone(authorizer);
        let target = HttpTarget::new(&self.server.url, []).unwrap().with_authorizer(authorizer);
        TestClient::with(target, WireLimits::default())
    }

    /// The parameters of all requests of one kind.
    pub(super) fn requests_of(&self, kind: &str) -> Vec<Form> {
        self.behavior().log.iter().filter(|(name, _)| *name == kind).map(|(_, form)| form.clone()).collect()
    }

    /// The numbers of registrations, authorizations and token requests.
    pub(super) fn request_counts(&self) -> [usize; 3] {
        ["register", "authorize", "token"].map(|kind| self.requests_of(kind).len())
    }
}

/// The URL of a test server without its path.
pub(super) fn base_url(server: &TestServer) -> String {
    server.url.trim_end_matches("/mcp").to_owned()
}

/// Starts an authorization server with this behavior.
pub(super) async fn start_issuer(behavior: &Arc<Mutex<ServerBehavior>>) -> TestServer {
    let behavior = Arc::clone(behavior);
    TestServer::start(move |request, mut reply| {
        let behavior = Arc::clone(&behavior);
        async move {
            serve_authorization(&behavior, &request, &mut reply).await;
            Some(reply)
        }
    })
    .await
}

async fn serve_authorization(behavior: &Mutex<ServerBehavior>, request: &ReceivedRequest, reply: &mut Reply) {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let (status, headers, body) = {
        let mut behavior = behavior.lock();
        match path {
            "/.well-known/oauth-authorization-server" => match &behavior.metadata_moved {
                Some(to) => (302, vec![("Location".to_owned(), to.clone())], String::new()),
                None if behavior.without_discovery => (404, Vec::new(), String::new()),
                None => (200, Vec::new(), metadata(&behavior, &request_base_url(request)).to_string()),
            },
            "/register" => behavior.register(request),
            "/authorize" => behavior.authorize(form(query), &request_base_url(request)),
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
    fn new_id(&mut self, kind: &str) -> String {
        self.id_count += 1;
        format!("{kind}-{:x}-{}", fastrand::u64(..), self.id_count)
    }

    fn register(&mut self, request: &ReceivedRequest) -> HttpResponse {
        let registration = request.json();
        let fields = registration
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.to_string()));
        self.log.push(("register", fields.collect()));
        let id = self.new_id("client");
        let body = json!({
            "client_id": id, "client_secret": self.secret, "redirect_uris": registration["redirect_uris"],
        });
        (201, Vec::new(), body.to_string())
    }

    fn authorize(&mut self, parameters: Form, base: &str) -> HttpResponse {
        self.log.push(("authorize", parameters.clone()));
        let code = self.new_id("code");
        let mut redirect_uri = Url::parse(&parameters["redirect_uri"]).unwrap();
        let mut query = form("");
        query.insert("code".to_owned(), code.clone());
        query.insert("state".to_owned(), parameters["state"].clone());
        query.insert("iss".to_owned(), base.to_owned());
        query.extend(self.redirect.clone());
        query.retain(|_, value| !value.is_empty());
        redirect_uri.query_pairs_mut().extend_pairs(query);
        self.codes.insert(code, parameters);
        (302, vec![("Location".to_owned(), redirect_uri.into())], String::new())
    }

    fn token(&mut self, request: &ReceivedRequest) -> HttpResponse {
        let mut parameters = form(std::str::from_utf8(&request.body).unwrap());
        parameters.insert("basic".to_owned(), request.header("authorization").unwrap_or_default().to_owned());
        self.log.push(("token", parameters.clone()));
        if let Some(hook) = self.on_token_request.take() {
            hook();
        }
        if let Some(response) = &self.token_response {
            return response.clone();
        }
        if parameters.get("subject_token").is_some_and(|token| self.revoked_subjects.contains(token)) {
            return invalid_grant();
        }
        let scope = match parameters["grant_type"].as_str() {
            "authorization_code" => {
                let Some(authorization) = self.codes.remove(&parameters["code"]) else {
                    return invalid_grant();
                };
                let challenge =
                    URL_SAFE_NO_PAD.encode(digest(&SHA256, parameters["code_verifier"].as_bytes()));
                let matches = |name: &str| authorization.get(name) == parameters.get(name);
                if authorization["code_challenge_method"] != "S256"
                    || authorization["code_challenge"] != challenge
                    || !matches("resource")
                    || !matches("redirect_uri")
                {
                    return invalid_grant();
                }
                authorization.get("scope").cloned()
            }
            "refresh_token" => {
                let position =
                    self.refresh_tokens.iter().position(|token| *token == parameters["refresh_token"]);
                let Some(position) = position else { return invalid_grant() };
                let token = self.refresh_tokens.remove(position);
                // RFC 6749, section 6: without the parameter, the scopes stay as they were.
                parameters.get("scope").cloned().or_else(|| self.granted.get(&token).cloned())
            }
            _ => parameters.get("scope").cloned(),
        };
        let (access, refresh) = (self.new_id("access"), self.new_id("refresh"));
        self.granted.insert(refresh.clone(), scope.clone().unwrap_or_default());
        let scopes = scope.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        self.valid_tokens.insert(access.clone(), scopes);
        let mut body =
            json!({"access_token": access, "token_type": "Bearer", "id_token": self.new_id("identity")});
        if parameters["grant_type"] != "client_credentials" {
            self.refresh_tokens.push(refresh.clone());
            body["refresh_token"] = json!(refresh);
        }
        if let Some(requested) = parameters.get("requested_token_type") {
            body["issued_token_type"] = json!(requested);
        }
        if let Some(lifetime) = self.lifetime {
            body["expires_in"] = json!(lifetime);
        }
        (200, Vec::new(), body.to_string())
    }
}

fn invalid_grant() -> HttpResponse {
    let body = json!({"error": "invalid_grant", "error_description": "no such grant"});
    (400, Vec::new(), body.to_string())
}

/// The response of the MCP server, which requires tokens.
fn serve_resource(
    behavior: &mut ServerBehavior,
    request: &ReceivedRequest,
) -> (u16, Vec<(&'static str, String)>, String) {
    let document = "/.well-known/oauth-protected-resource/mcp";
    let json_type = ("Content-Type", "application/json".to_owned());
    if request.path == document && !behavior.without_discovery {
        let mut body = json!({"resource": format!("{}/mcp", request_base_url(request)), "authorization_servers": [behavior.issuer]});
        for (name, value) in &behavior.resource {
            body[name] = value.clone();
        }
        return (200, vec![json_type], body.to_string());
    }
    if !request.path.starts_with("/mcp") {
        // An MCP server of 2024-11-05 is its own authorization server.
        let (status, headers, body) = match request.path.split('?').next() {
            Some("/register") => behavior.register(request),
            Some("/authorize") => behavior.authorize(form(request.path.split_once('?').unwrap().1), ""),
            Some("/token") => behavior.token(request),
            _ => (404, Vec::new(), String::new()),
        };
        let location = headers.into_iter().map(|(_, value)| ("Location", value));
        return (status, location.chain([json_type]).collect(), body);
    }
    let sent_token = request.header("authorization").and_then(|header| header.strip_prefix("Bearer "));
    let scopes = sent_token
        .and_then(|token| behavior.valid_tokens.get(token))
        .filter(|_| !behavior.rejects_all_tokens);
    let (default_scopes, call_scopes) = &behavior.required_scopes;
    let metadata = format!("resource_metadata=\"{}{document}\"", request_base_url(request));
    let required = if request.json()["method"] == "tools/call" { call_scopes } else { default_scopes };
    match scopes {
        None if behavior.without_discovery => (401, Vec::new(), String::new()),
        None => {
            let scope = if default_scopes.is_empty() {
                String::new()
            } else {
                format!(", scope=\"{}\"", default_scopes.join(" "))
            };
            (401, vec![("WWW-Authenticate", format!("Bearer {metadata}{scope}"))], String::new())
        }
        Some(scopes) if !required.iter().all(|scope| scopes.contains(scope)) => {
            let challenge =
                format!("Bearer error=\"insufficient_scope\", scope=\"{}\", {metadata}", required.join(" "));
            (403, vec![("WWW-Authenticate", challenge)], String::new())
        }
        Some(_) => (200, vec![json_type], request.response(&json!({"access": "granted"}))),
    }
}

/// A user who consents to every login, at once unless configured otherwise.
#[derive(Default)]
pub(super) struct TestUser {
    pub(super) opened_urls: Mutex<Vec<String>>,
    /// Queries with which the redirect URI is visited before the real redirect.
    pub(super) earlier_callbacks: Vec<String>,
    /// Never follows the redirect.
    pub(super) abandons_login: bool,
    /// Waits for this before consenting.
    pub(super) consent_signal: Option<Arc<Notify>>,
}

impl Browser for TestUser {
    fn open<'a>(&'a self, _: &'a str, url: &'a BrowserUrl) -> BoxFuture<'a, Result<(), BrowserError>> {
        self.opened_urls.lock().push(url.as_str().to_owned());
        Box::pin(async move {
            let http_client =
                reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
            let response =
                http_client.get(url.as_str()).send().await.map_err(|error| BrowserError::new(&error))?;
            let redirect_uri = response
                .headers()
                .get("location")
                .ok_or_else(|| BrowserError::new(&"no redirect"))?
                .to_str()
                .unwrap()
                .to_owned();
            for query in &self.earlier_callbacks {
                let mut other = Url::parse(&redirect_uri).unwrap();
                other.set_query(Some(query));
                http_client.get(other).send().await.map_err(|error| BrowserError::new(&error))?;
            }
            if let Some(notify) = &self.consent_signal {
                notify.notified().await;
            }
            if !self.abandons_login {
                http_client.get(redirect_uri).send().await.map_err(|error| BrowserError::new(&error))?;
            }
            Ok(())
        })
    }
}
