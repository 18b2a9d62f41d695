//! Reuse of connections, and connections that must not be reused.

use serde_json::json;

use super::*;
use crate::transport::http::test_server::{TestClient, TestServer};

const CHUNKED: [(&str, &str); 2] = [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")];

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn idle_connections(pool: &Arc<ConnectionPool>) -> usize {
    pool.idle.lock().connections.len()
}

async fn post(pool: &Arc<ConnectionPool>, url: &str, body: &[u8]) -> Result<PooledResponse, TransportError> {
    pool.send(&Method::POST, &Url::parse(url).unwrap(), &HeaderMap::new(), Some(body)).await
}

async fn read_body(response: &mut PooledResponse) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.unwrap() {
        body.extend_from_slice(chunk);
    }
    body
}

#[tokio::test]
async fn connections_are_reused_and_only_as_many_as_needed_are_opened() {
    let server = TestServer::start(|request, mut reply| async move {
        reply.json(&request.body).await;
        Some(reply)
    })
    .await;
    let pool = Arc::<ConnectionPool>::default();
    for round in 0..3 {
        let (mut one, mut other) =
            (post(&pool, &server.url, b"1").await.unwrap(), post(&pool, &server.url, b"2").await.unwrap());
        assert_eq!((read_body(&mut one).await, read_body(&mut other).await), (b"1".to_vec(), b"2".to_vec()));
        assert_eq!((idle_connections(&pool), server.connections()), (2, 2), "round {round}");
    }
}

#[tokio::test]
async fn an_abandoned_body_costs_its_connection_unless_it_ends_soon() {
    let server = TestServer::start(|request, mut reply| async move {
        reply.head(200, &CHUNKED).await;
        reply.raw(chunk("data: 1\n\n")).await;
        match request.body.as_slice() {
            b"at once" => reply.raw("0\r\n\r\n").await,
            b"soon" => {
                sleep(Duration::from_millis(50)).await;
                reply.raw(format!("{}0\r\n\r\n", chunk(": bye\n\n"))).await;
            }
            _ => reply.disconnected().await,
        }
        reply.keep_alive();
        Some(reply)
    })
    .await;
    let pool = Arc::<ConnectionPool>::default();
    for (body, connections) in [("soon", 1), ("at once", 1), ("never", 2)] {
        for _ in 0..2 {
            let mut response = post(&pool, &server.url, body.as_bytes()).await.unwrap();
            assert_eq!(response.chunk().await.unwrap(), Some(b"data: 1\n\n".as_slice()));
            response.release();
            sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(server.connections(), connections, "{body}");
    }
    // The two that never end are closed after a moment.
    sleep(Duration::from_millis(1_200)).await;
    assert_eq!(idle_connections(&pool), 0);
    // A dropped body closes its connection at once.
    drop(post(&pool, &server.url, b"at once").await.unwrap());
    assert_eq!(idle_connections(&pool), 0);
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_not_reused() {
    let server = TestServer::start(|request, mut reply| async move {
        reply.json(&request.body).await;
        None
    })
    .await;
    let pool = Arc::<ConnectionPool>::default();
    for number in 1..=5 {
        let mut response = post(&pool, &server.url, b"x").await.unwrap();
        assert_eq!(read_body(&mut response).await, b"x");
        sleep(Duration::from_millis(20)).await;
        assert_eq!((server.received().len(), server.connections()), (number, number));
    }
}

#[tokio::test]
async fn unsolicited_bytes_are_not_taken_for_the_next_response() {
    let server = TestServer::start(|request, mut reply| async move {
        reply.json(&request.body).await;
        reply.raw("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsmuggle").await;
        Some(reply)
    })
    .await;
    let pool = Arc::<ConnectionPool>::default();
    for _ in 0..5 {
        let mut response = post(&pool, &server.url, b"mine").await.unwrap();
        assert_eq!(read_body(&mut response).await, b"mine");
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.connections(), 5);
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed() {
    let server = TestServer::start(|request, mut reply| async move {
        reply.json(&request.body).await;
        Some(reply)
    })
    .await;
    let pool = Arc::<ConnectionPool>::default();
    read_body(&mut post(&pool, &server.url, b"x").await.unwrap()).await;
    assert_eq!(idle_connections(&pool), 1);
    sleep(IDLE_TIMEOUT + SWEEP_INTERVAL * 2).await;
    assert_eq!((idle_connections(&pool), pool.idle.lock().has_sweeper), (0, false));
    read_body(&mut post(&pool, &server.url, b"x").await.unwrap()).await;
    assert_eq!((idle_connections(&pool), server.connections()), (1, 2));
}

#[tokio::test]
async fn a_refusal_in_the_middle_of_a_long_request_is_read() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        sleep(Duration::from_secs(5)).await;
    });
    let pool = Arc::<ConnectionPool>::default();
    let sent = timeout(Duration::from_secs(2), post(&pool, &url, &vec![b'x'; 64 << 20])).await.unwrap();
    let mut response = sent.unwrap();
    assert_eq!(response.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(read_body(&mut response).await, b"");
    assert_eq!(idle_connections(&pool), 0, "the connection of a partial request is not reused");
}

#[tokio::test]
async fn long_requests_and_responses_arrive_completely() {
    let server = TestServer::start(|request, mut reply| async move {
        reply.json(&request.body).await;
        Some(reply)
    })
    .await;
    let pool = Arc::<ConnectionPool>::default();
    for length in [0, 1, MAX_COMBINED_WRITE_BYTES, MAX_COMBINED_WRITE_BYTES + 1, 3 << 20] {
        let body: Vec<u8> = (0..length).map(|at| b'a' + u8::try_from(at % 26).unwrap()).collect();
        let mut response = post(&pool, &server.url, &body).await.unwrap();
        assert_eq!(response.content_length(), Some(length as u64));
        assert!(read_body(&mut response).await == body, "{length} bytes");
    }
    assert_eq!(server.connections(), 1);
    assert!(pool.idle.lock().connections.iter().all(|idle| idle.connection.buffer.capacity() <= READ_BYTES));
}

#[tokio::test]
async fn user_and_password_in_the_url_are_sent_as_basic_authorization() {
    let server = TestServer::start(|request, mut reply| async move {
        let login = request.header("authorization").unwrap_or_default().to_owned();
        reply.json(request.response(&json!([login, request.header("host")]))).await;
        Some(reply)
    })
    .await;
    let host = server.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let client = TestClient::new(&format!("http://na%20me:w%3Ard@{host}/mcp"));
    assert_eq!(client.result("tools/list").await, json!(["Basic bmEgbWU6dzpyZA==", host]));
}
