//! For what a ticket is accepted, for how long, and who gets one.

use futures_util::StreamExt as _;
use http::HeaderMap;
use serde_json::{Value, json};
use toolyard_mcp_server::{HttpRoutes as _, RouteBody, RouteRequest};

use super::*;
use crate::{HttpApi, agents::testing::TestAgents};

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
async fn the_number_of_tickets_is_limited_and_expired_ones_are_removed() {
    let (tickets, ada) = (StreamTickets::default(), caller("ada"));
    let issue = || tickets.issue(&"01A".into(), &ada).unwrap();
    let issued: Vec<String> = (0..=MAX_TICKETS).map(|_| issue()).collect();
    assert_eq!(tickets.lock().len(), MAX_TICKETS);
    assert_eq!(holder_of(&tickets, "01A", &issued[0]), None);
    assert_eq!(holder_of(&tickets, "01A", &issued[1]), Some(Arc::clone(&ada)));
    tokio::time::advance(TICKET_LIFETIME).await;
    issue();
    assert_eq!(tickets.lock().len(), 1);
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
}
