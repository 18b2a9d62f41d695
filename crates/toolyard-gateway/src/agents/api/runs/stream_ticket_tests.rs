//! For what a ticket is accepted, for how long, and who gets one.

use axum::body::Body;
use futures_util::StreamExt as _;
use http::HeaderMap;
use serde_json::{Value, json};
use toolyard_core::PresentedToken;
use toolyard_mcp_server::{HttpRoutes as _, RouteBody, RouteRequest};
use tower::ServiceExt as _;

use super::*;
use crate::{AuthenticatedCaller, HttpApi, agents::testing::TestAgents};

fn caller(name: &str) -> Arc<CallerIdentity> {
    Arc::new(CallerIdentity::principal("https://id.example", name))
}

fn holder_of(tickets: &StreamTickets, run: &str, ticket: &str) -> Option<Arc<CallerIdentity>> {
    tickets.holder(&Method::GET, &format!("/api/v1/runs/{run}/events"), &format!("ticket={ticket}"))
}

#[tokio::test(start_paused = true)]
async fn a_ticket_opens_the_events_of_one_run_for_a_minute() {
    let (tickets, ada) = (StreamTickets::default(), caller("ada"));
    let ticket = tickets.issue(&"01A".into(), &ada).unwrap();
    assert_eq!(ticket.len(), 22, "128 bits");
    let query = format!("after=3&ticket={ticket}");
    for _ in 0..2 {
        let holder = tickets.holder(&Method::GET, "/api/v1/runs/01A/events", &query);
        assert_eq!(holder.as_ref(), Some(&ada), "an EventSource reconnects");
    }
    for (method, path) in [
        (Method::POST, "/api/v1/runs/01A/events"),
        (Method::GET, "/api/v1/runs/01B/events"),
        (Method::GET, "/api/v1/runs/01A/events/"),
        (Method::GET, "/api/v1/runs/01A"),
        (Method::GET, "/api/v1/runs/01A/log"),
        (Method::GET, "/api/v1/runs/events"),
        (Method::GET, "/api/v1/runs/x/../01A/events"),
        (Method::GET, "/runs/01A/events"),
        (Method::GET, "/api/v1/tools"),
        (Method::GET, "/mcp"),
    ] {
        assert_eq!(tickets.holder(&method, path, &query), None, "{method} {path}");
    }
    for guessed in ["", "AAAAAAAAAAAAAAAAAAAAAA", ticket.get(..21).unwrap()] {
        assert_eq!(holder_of(&tickets, "01A", guessed), None, "{guessed}");
    }
    assert_eq!(tickets.holder(&Method::GET, "/api/v1/runs/01A/events", &ticket), None, "not as `ticket=`");
    tokio::time::advance(TICKET_LIFETIME - Duration::from_millis(1)).await;
    assert_eq!(holder_of(&tickets, "01A", &ticket), Some(ada));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(holder_of(&tickets, "01A", &ticket), None);
}

#[tokio::test(start_paused = true)]
async fn a_caller_gets_a_limited_number_of_tickets_and_expired_ones_are_removed() {
    let (tickets, ada, eve) = (StreamTickets::default(), caller("ada"), caller("eve"));
    let issue = |caller: &Arc<CallerIdentity>| tickets.issue(&"01A".into(), caller);
    let first = issue(&ada).unwrap();
    tokio::time::advance(Duration::from_secs(20)).await;
    (1..MAX_TICKETS_PER_CALLER).for_each(|_| drop(issue(&ada).unwrap()));
    let refused = issue(&ada).unwrap_err();
    assert_eq!(
        (refused.status, refused.code),
        (StatusCode::TOO_MANY_REQUESTS, Some(ErrorCode::TooManyTickets))
    );
    assert_eq!(refused.retry_after, Some(Duration::from_secs(40)), "then the first one expires");
    let of_eve = issue(&eve).unwrap();
    assert_eq!(holder_of(&tickets, "01A", &first), Some(Arc::clone(&ada)), "no ticket makes room");
    tokio::time::advance(Duration::from_secs(40)).await;
    assert_eq!(holder_of(&tickets, "01A", &of_eve), Some(eve));
    assert_eq!(tickets.lock().len(), MAX_TICKETS_PER_CALLER, "the expired one was removed");
    issue(&ada).unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_number_of_tickets_of_all_callers_is_limited() {
    let (tickets, ada) = (StreamTickets::default(), caller("ada"));
    for number in 0..MAX_TICKETS {
        let (run, hash) = ("01A".into(), ContentHash::of(number.to_string()));
        let expires_at = Instant::now() + TICKET_LIFETIME;
        tickets.lock().push_back(StreamTicket { hash, run, identity: Arc::clone(&ada), expires_at });
    }
    let refused = tickets.issue(&"01A".into(), &caller("eve")).unwrap_err();
    assert_eq!((refused.code, refused.retry_after), (Some(ErrorCode::TooManyTickets), Some(TICKET_LIFETIME)));
}

#[test]
fn the_token_of_a_caller_is_not_kept_with_its_ticket() {
    let tickets = StreamTickets::default();
    let token = PresentedToken::new("s3cret", 100);
    let ada = CallerIdentity::principal("https://id.example", "ada").with_presented_token(token);
    let ticket = tickets.issue(&"01A".into(), &ada).unwrap();
    let holder = holder_of(&tickets, "01A", &ticket).unwrap();
    assert_eq!(*holder, ada);
    assert!(holder.presented_token().is_none());
}

async fn send(
    api: &HttpApi,
    identity: &Arc<CallerIdentity>,
    method: Method,
    (path, query): (&str, &str),
    body: &Value,
) -> RouteResponse {
    let request = RouteRequest {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        headers: HeaderMap::new(),
        identity: Arc::clone(identity),
        body: body.to_string(),
    };
    api.handle(request).await
}

fn json_body(response: RouteResponse) -> Value {
    match response.body {
        RouteBody::Json(bytes) => serde_json::from_slice(&bytes).unwrap(),
        RouteBody::Events { .. } | RouteBody::Empty => panic!("no JSON"),
    }
}

#[tokio::test]
async fn a_caller_gets_tickets_for_its_own_runs_and_follows_them() {
    let agents = TestAgents::in_memory();
    let api = HttpApi::of_agents(agents.service());
    let (ada, eve) = (caller("ada"), caller("eve"));
    let start = json!({"question": "hello"});
    let started = json_body(send(&api, &ada, Method::POST, ("/api/v1/runs", ""), &start).await);
    let run = started["run"].as_str().unwrap();
    let (events, tickets) =
        (format!("/api/v1/runs/{run}/events"), format!("/api/v1/runs/{run}/stream-ticket"));
    let foreign = send(&api, &eve, Method::POST, (&tickets, ""), &json!({})).await;
    assert_eq!(foreign.status, 404);
    let local = Arc::new(CallerIdentity::local_token([1; 32]));
    let unknown = ("/api/v1/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV/stream-ticket", "");
    assert_eq!(send(&api, &local, Method::POST, unknown, &json!({})).await.status, 404);
    let created = send(&api, &ada, Method::POST, (&tickets, ""), &json!({})).await;
    let is_stored = !created.headers.iter().any(|(name, value)| name == CACHE_CONTROL && value == "no-store");
    assert!(created.status == 200 && !is_stored, "{created:?}");
    let created = json_body(created);
    assert_eq!(created["expires_in"], 60);
    let query = format!("ticket={}", created["ticket"].as_str().unwrap());
    let holder = api.ticket_holder(&Method::GET, &events, &query).unwrap();
    assert_eq!(holder, ada);
    let followed = send(&api, &holder, Method::GET, (&events, &query), &json!({})).await;
    let RouteBody::Events { mut stream, .. } = followed.body else { panic!("{}", followed.status) };
    let first = stream.next().await.unwrap();
    assert!(first.windows(11).any(|bytes| bytes == b"run_created"), "{first:?}");
    let other_process = HttpApi::of_agents(agents.in_process("other").service());
    assert_eq!(other_process.ticket_holder(&Method::GET, &events, &query), None);
    // An application authenticates the requests to its router.
    let mut request = http::Request::get(format!("{events}?{query}")).body(Body::empty()).unwrap();
    request.extensions_mut().insert(AuthenticatedCaller(eve));
    assert_eq!(api.router().oneshot(request).await.unwrap().status(), 404);
}
