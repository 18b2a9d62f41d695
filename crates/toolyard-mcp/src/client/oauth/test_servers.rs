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

use super::*;
use crate::{
    client::{
        HttpTarget, StreamableHttp,
        http_test_server::{Peer, Reply, Seen, TestServer},
    },
    wire::WireLimits,
};

pub(super) type Form = BTreeMap<String, String>;
/// A status, headers and a body.
pub(super) type Answer = (u16, Vec<(String, String)>, String);

/// What both servers know and do.
#[derive(Default)]
pub(super) struct Rules {
    /// Where the server sends whoever needs a token; the authorization server's address if empty.
    pub(super) issuer: String,
    /// Access tokens that are good, with their scopes.
    pub(super) good: HashMap<String, Vec<String>>,
    pub(super) refresh_tokens: Vec<String>,
    codes: HashMap<String, Form>,
    /// What a token needs for anything, and for `tools/call`.
    pub(super) needs: (Vec<String>, Vec<String>),
    pub(super) lifetime: Option<u64>,
    /// Added to or put into the documents and answers.
    pub(super) metadata: BTreeMap<String, Value>,
    pub(super) resource: BTreeMap<String, Value>,
    pub(super) redirect: Form,
    /// The client secret that is given to whoever registers.
    pub(super) secret: Option<String>,
    /// Every token is refused.
    pub(super) refuses: bool,
    /// The answer to every request for a token.
    pub(super) token_answer: Option<Answer>,
    /// Where metadata is redirected to.
    pub(super) metadata_moved: Option<String>,
    /// No challenge and no documents: a server of the first revision.
    pub(super) silent: bool,
    /// Tokens are bound to a key, and both servers want this nonce in every proof.
    pub(super) bound: Option<String>,
    /// What happened: `register`, `authorize`, `token`, with all that was sent.
    pub(super) log: Vec<(&'static str, Form)>,
    count: usize,
}

/// The two servers and what they know.
pub(super) struct World {
    pub(super) rules: Arc<Mutex<Rules>>,
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
fn base(seen: &Seen) -> String {
    format!("http://{}", seen.header("host").unwrap())
}

impl World {
    pub(super) async fn start() -> Self {
        let rules = Arc::new(Mutex::new(Rules::default()));
        let issuer = issuer(&rules).await;
        let shared = Arc::clone(&rules);
        let server = TestServer::start(move |seen, mut reply| {
            let rules = Arc::clone(&shared);
            async move {
                let (status, headers, body) = resource(&mut rules.lock().unwrap(), &seen);
                let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                reply.full(status, &headers, body).await;
                Some(reply)
            }
        })
        .await;
        rules.lock().unwrap().issuer = address(&issuer);
        Self { rules, issuer, server }
    }

    pub(super) fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap()
    }

    pub(super) fn oauth_server(&self) -> OAuthServer {
        let mut server = OAuthServer::new("notes", Url::parse(&self.server.url).unwrap());
        server.login_limit = Duration::from_secs(15);
        server
    }

    pub(super) fn authorizer(&self) -> OAuthAuthorizer {
        OAuthAuthorizer::new(self.oauth_server(), TokenStore::in_memory()).unwrap()
    }

    pub(super) fn peer(&self, authorizer: OAuthAuthorizer) -> Peer<StreamableHttp> {
        self.peer_of(&Arc::new(authorizer))
    }

    pub(super) fn peer_of(&self, authorizer: &Arc<OAuthAuthorizer>) -> Peer<StreamableHttp> {
        let authorizer = Arc::clone(authorizer);
        let target = HttpTarget::new(&self.server.url, []).unwrap().with_authorizer(authorizer);
        Peer::with(target, WireLimits::default())
    }

    /// What was sent with everything of one kind.
    pub(super) fn all(&self, kind: &str) -> Vec<Form> {
        self.rules().log.iter().filter(|(name, _)| *name == kind).map(|(_, form)| form.clone()).collect()
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
pub(super) async fn issuer(rules: &Arc<Mutex<Rules>>) -> TestServer {
    let rules = Arc::clone(rules);
    TestServer::start(move |seen, mut reply| {
        let rules = Arc::clone(&rules);
        async move {
            authorize(&rules, &seen, &mut reply).await;
            Some(reply)
        }
    })
    .await
}

async fn authorize(rules: &Mutex<Rules>, seen: &Seen, reply: &mut Reply) {
    let (path, query) = seen.path.split_once('?').unwrap_or((&seen.path, ""));
    let (status, headers, body) = {
        let mut rules = rules.lock().unwrap();
        match path {
            "/.well-known/oauth-authorization-server" => match &rules.metadata_moved {
                Some(to) => (302, vec![("Location".to_owned(), to.clone())], String::new()),
                None if rules.silent => (404, Vec::new(), String::new()),
                None => (200, Vec::new(), metadata(&rules, &base(seen)).to_string()),
            },
            "/register" => rules.register(seen),
            "/authorize" => rules.authorize(form(query), &base(seen)),
            "/token" => rules.token(seen),
            _ => (404, Vec::new(), String::new()),
        }
    };
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    reply.full(status, &[&[("Content-Type", "application/json")], &headers[..]].concat(), body).await;
}

fn metadata(rules: &Rules, base: &str) -> Value {
    let mut document = json!({
        "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
        "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
    });
    for (name, value) in &rules.metadata {
        document[name] = value.clone();
    }
    document
}

impl Rules {
    fn next(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}-{:x}-{}", fastrand::u64(..), self.count)
    }

    fn register(&mut self, seen: &Seen) -> Answer {
        let asked = seen.json();
        let said =
            asked.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.to_string()));
        self.log.push(("register", said.collect()));
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
        if self.bound.is_some() { "DPoP" } else { "Bearer" }
    }

    fn token(&mut self, seen: &Seen) -> Answer {
        let mut asked = form(std::str::from_utf8(&seen.body).unwrap());
        asked.insert("basic".to_owned(), seen.header("authorization").unwrap_or_default().to_owned());
        self.log.push(("token", asked.clone()));
        if let Some(answer) = &self.token_answer {
            return answer.clone();
        }
        if let Some(nonce) = self.bound.clone().filter(|nonce| said(seen, "nonce") != json!(nonce)) {
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
        self.good.insert(access.clone(), scopes);
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
fn said(seen: &Seen, claim: &str) -> Value {
    let claims = seen.header("dpop").and_then(|proof| proof.split('.').nth(1));
    let claims = claims.and_then(|claims| URL_SAFE_NO_PAD.decode(claims).ok()).unwrap_or_default();
    serde_json::from_slice::<Value>(&claims).unwrap_or_default()[claim].clone()
}

fn invalid_grant() -> Answer {
    let body = json!({"error": "invalid_grant", "error_description": "no such grant"});
    (400, Vec::new(), body.to_string())
}

/// The server that wants tokens.
fn resource(rules: &mut Rules, seen: &Seen) -> (u16, Vec<(&'static str, String)>, String) {
    let document = "/.well-known/oauth-protected-resource/mcp";
    let json_type = ("Content-Type", "application/json".to_owned());
    if seen.path == document && !rules.silent {
        let mut body =
            json!({"resource": format!("{}/mcp", base(seen)), "authorization_servers": [rules.issuer]});
        for (name, value) in &rules.resource {
            body[name] = value.clone();
        }
        return (200, vec![json_type], body.to_string());
    }
    if !seen.path.starts_with("/mcp") {
        // A server of the first revision is its own authorization server.
        let (status, headers, body) = match seen.path.split('?').next() {
            Some("/register") => rules.register(seen),
            Some("/authorize") => rules.authorize(form(seen.path.split_once('?').unwrap().1), ""),
            Some("/token") => rules.token(seen),
            _ => (404, Vec::new(), String::new()),
        };
        let location = headers.into_iter().map(|(_, value)| ("Location", value));
        return (status, location.chain([json_type]).collect(), body);
    }
    let scheme = rules.scheme();
    let sent = seen.header("authorization").and_then(|header| header.strip_prefix(scheme));
    let sent = sent.map(str::trim);
    if let (Some(nonce), Some(token)) = (&rules.bound, sent) {
        assert_eq!(said(seen, "ath"), json!(URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes()))));
        if said(seen, "nonce") != json!(nonce) {
            let challenge = "DPoP error=\"use_dpop_nonce\"".to_owned();
            return (
                401,
                vec![("WWW-Authenticate", challenge), ("DPoP-Nonce", nonce.clone())],
                String::new(),
            );
        }
    }
    let scopes = sent.and_then(|token| rules.good.get(token)).filter(|_| !rules.refuses);
    let (all, calls) = &rules.needs;
    let metadata = format!("resource_metadata=\"{}{document}\"", base(seen));
    let needed = if seen.json()["method"] == "tools/call" { calls } else { all };
    match scopes {
        None if rules.silent => (401, Vec::new(), String::new()),
        None => {
            let scope = if all.is_empty() { String::new() } else { format!(", scope=\"{}\"", all.join(" ")) };
            (401, vec![("WWW-Authenticate", format!("{scheme} {metadata}{scope}"))], String::new())
        }
        Some(scopes) if !needed.iter().all(|scope| scopes.contains(scope)) => {
            let challenge =
                format!("Bearer error=\"insufficient_scope\", scope=\"{}\", {metadata}", needed.join(" "));
            (403, vec![("WWW-Authenticate", challenge)], String::new())
        }
        Some(_) => (200, vec![json_type], seen.answer(&json!({"let": "in"}))),
    }
}

/// A person who consents to everything, at once; or does something else before.
#[derive(Default)]
pub(super) struct Person {
    pub(super) opened: Mutex<Vec<String>>,
    /// Visits first, at the address the person is sent back to, with these queries.
    pub(super) before: Vec<String>,
    /// Never goes back.
    pub(super) walks_away: bool,
    /// Waits for this before consenting.
    pub(super) hesitates: Option<Arc<Notify>>,
}

impl Browser for Person {
    fn open<'a>(&'a self, _: &'a str, url: &'a BrowserUrl) -> BoxFuture<'a, Result<(), String>> {
        self.opened.lock().unwrap().push(url.as_str().to_owned());
        Box::pin(async move {
            let web = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
            let answer = web.get(url.as_str()).send().await.map_err(|error| error.to_string())?;
            let back = answer.headers().get("location").ok_or("no redirect")?.to_str().unwrap().to_owned();
            for query in &self.before {
                let mut other = Url::parse(&back).unwrap();
                other.set_query(Some(query));
                web.get(other).send().await.map_err(|error| error.to_string())?;
            }
            if let Some(notify) = &self.hesitates {
                notify.notified().await;
            }
            if !self.walks_away {
                web.get(back).send().await.map_err(|error| error.to_string())?;
            }
            Ok(())
        })
    }
}
