//! A client that calls one tool repeatedly and checks every response.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, StatusCode, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::sleep};

use super::replica::TOKEN;

/// Totals of all clients.
#[derive(Default)]
pub(crate) struct Tally {
    /// Calls with the expected result.
    pub(crate) good: AtomicUsize,
    /// Responses other than the expected result, such as that of another call.
    pub(crate) wrong_responses: AtomicUsize,
    /// Calls answered with 400 or 404, as for a lost session.
    pub(crate) rejected: AtomicUsize,
    /// Calls without a usable response, mostly because a stopping replica closed the connection. They are repeated, because
    /// they are idempotent.
    pub(crate) unanswered: AtomicUsize,
    pub(crate) first_problem: Mutex<Option<String>>,
}

impl Tally {
    fn count_problem(&self, counter: &AtomicUsize, problem: impl FnOnce() -> String) {
        counter.fetch_add(1, Ordering::Relaxed);
        self.first_problem.lock().get_or_insert_with(problem);
    }
}

/// Makes all calls of one client: legacy in one session, modern without any.
pub(crate) async fn run_client(
    client_number: usize,
    calls: usize,
    legacy: bool,
    address: SocketAddr,
    tally: &Tally,
) {
    let mut connection = connect(address).await;
    let session = if legacy { Some(initialize(&mut connection).await) } else { None };
    let mut call_id = 0;
    while call_id < calls {
        let expected = client_number * 100_000 + call_id;
        let (method, body) = ("tools/call", tool_call(call_id, expected, legacy));
        match post(&mut connection, method, &body, session.as_deref()).await {
            Some((StatusCode::OK, _, answer)) => {
                let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
                if answer["id"] == json!(call_id) && text == expected.to_string() {
                    tally.good.fetch_add(1, Ordering::Relaxed);
                } else {
                    tally.count_problem(&tally.wrong_responses, || {
                        format!("expected {expected}, got {answer}")
                    });
                }
                call_id += 1;
            }
            Some((status @ (StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST), _, answer)) => {
                tally.count_problem(&tally.rejected, || format!("{status}: {answer}"));
                call_id += 1;
            }
            other => {
                tally.count_problem(&tally.unanswered, || {
                    format!("no usable response: {:?}", other.map(|(status, ..)| status))
                });
                sleep(Duration::from_millis(20)).await;
                connection = connect(address).await;
            }
        }
    }
}

fn tool_call(id: usize, expected: usize, legacy: bool) -> Value {
    let mut params = json!({"name": "calculate", "arguments": {"expression": format!("{expected}+0")}});
    if !legacy {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "replicas", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

async fn initialize(connection: &mut SendRequest<Full<Bytes>>) -> String {
    let body = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "replicas", "version": "1"}}});
    for _ in 0..100 {
        if let Some((StatusCode::OK, Some(session), _)) = post(connection, "initialize", &body, None).await {
            return session;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("no session");
}

async fn connect(address: SocketAddr) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    sender
}

/// Status, session id and body of one POST; `None` if the connection broke.
async fn post(
    connection: &mut SendRequest<Full<Bytes>>,
    method: &str,
    body: &Value,
    session: Option<&str>,
) -> Option<(StatusCode, Option<String>, Value)> {
    let mut request = Request::post("/mcp")
        .header("host", "127.0.0.1")
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    request = match session {
        Some(session) => {
            request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25")
        }
        None if method == "initialize" => request,
        None => request
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method)
            .header("mcp-name", "calculate"),
    };
    let request = request.body(Full::from(body.to_string())).unwrap();
    connection.ready().await.ok()?;
    let answer = connection.send_request(request).await.ok()?;
    let (head, body) = answer.into_parts();
    let session = head.headers.get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let body = body.collect().await.ok()?.to_bytes();
    Some((head.status, session, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
