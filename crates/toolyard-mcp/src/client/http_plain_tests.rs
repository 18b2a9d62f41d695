use serde_json::json;

use super::*;
use crate::client::http_test_server::{Peer, TestServer};

const CHUNKED: [(&str, &str); 2] = [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")];

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn idle(pool: &Arc<PlainPool>) -> usize {
    lock(&pool.idle).connections.len()
}

async fn post(pool: &Arc<PlainPool>, url: &str, body: &[u8]) -> Result<PlainAnswer, TransportError> {
    pool.send(&Method::POST, &Url::parse(url).unwrap(), &HeaderMap::new(), Some(body)).await
}

async fn whole(answer: &mut PlainAnswer) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.unwrap() {
        body.extend_from_slice(chunk);
    }
    body
}

#[tokio::test]
async fn connections_are_used_again_and_only_as_many_as_are_needed() {
    let server = TestServer::start(|seen, mut reply| async move {
        reply.json(&seen.body).await;
        Some(reply)
    })
    .await;
    let pool = Arc::<PlainPool>::default();
    for round in 0..3 {
        let (mut one, mut other) =
            (post(&pool, &server.url, b"1").await.unwrap(), post(&pool, &server.url, b"2").await.unwrap());
        assert_eq!((whole(&mut one).await, whole(&mut other).await), (b"1".to_vec(), b"2".to_vec()));
        assert_eq!((idle(&pool), server.connections()), (2, 2), "round {round}");
    }
}

#[tokio::test]
async fn a_body_that_is_left_takes_its_connection_along_unless_it_ends_soon() {
    let server = TestServer::start(|seen, mut reply| async move {
        reply.head(200, &CHUNKED).await;
        reply.raw(chunk("data: 1\n\n")).await;
        match seen.body.as_slice() {
            b"at once" => reply.raw("0\r\n\r\n").await,
            b"soon" => {
                sleep(Duration::from_millis(50)).await;
                reply.raw(format!("{}0\r\n\r\n", chunk(": bye\n\n"))).await;
            }
            _ => reply.hung_up().await,
        }
        reply.again();
        Some(reply)
    })
    .await;
    let pool = Arc::<PlainPool>::default();
    for (word, connections) in [("soon", 1), ("at once", 1), ("never", 2)] {
        for _ in 0..2 {
            let mut answer = post(&pool, &server.url, word.as_bytes()).await.unwrap();
            assert_eq!(answer.chunk().await.unwrap(), Some(b"data: 1\n\n".as_slice()));
            answer.leave();
            sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(server.connections(), connections, "{word}");
    }
    // The two that never end are given up after a moment.
    sleep(Duration::from_millis(1_200)).await;
    assert_eq!(idle(&pool), 0);
    // Dropped without a word, a body takes its connection along at once.
    drop(post(&pool, &server.url, b"at once").await.unwrap());
    assert_eq!(idle(&pool), 0);
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_not_used() {
    let server = TestServer::start(|seen, mut reply| async move {
        reply.json(&seen.body).await;
        None
    })
    .await;
    let pool = Arc::<PlainPool>::default();
    for number in 1..=5 {
        let mut answer = post(&pool, &server.url, b"x").await.unwrap();
        assert_eq!(whole(&mut answer).await, b"x");
        sleep(Duration::from_millis(20)).await;
        assert_eq!((server.seen().len(), server.connections()), (number, number));
    }
}

#[tokio::test]
async fn words_that_nobody_asked_for_are_no_answer_to_the_next_request() {
    let server = TestServer::start(|seen, mut reply| async move {
        reply.json(&seen.body).await;
        reply.raw("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsmuggle").await;
        Some(reply)
    })
    .await;
    let pool = Arc::<PlainPool>::default();
    for _ in 0..5 {
        let mut answer = post(&pool, &server.url, b"mine").await.unwrap();
        assert_eq!(whole(&mut answer).await, b"mine");
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.connections(), 5);
}

#[tokio::test(start_paused = true)]
async fn nobody_keeps_a_connection_that_is_not_used() {
    let server = TestServer::start(|seen, mut reply| async move {
        reply.json(&seen.body).await;
        Some(reply)
    })
    .await;
    let pool = Arc::<PlainPool>::default();
    whole(&mut post(&pool, &server.url, b"x").await.unwrap()).await;
    assert_eq!(idle(&pool), 1);
    sleep(IDLE_LIMIT + SWEEP * 2).await;
    assert_eq!((idle(&pool), lock(&pool.idle).minded), (0, false));
    whole(&mut post(&pool, &server.url, b"x").await.unwrap()).await;
    assert_eq!((idle(&pool), server.connections()), (1, 2));
}

#[tokio::test]
async fn a_refusal_in_the_middle_of_a_long_request_is_heard() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        sleep(Duration::from_secs(5)).await;
    });
    let pool = Arc::<PlainPool>::default();
    let sent = timeout(Duration::from_secs(2), post(&pool, &url, &vec![b'x'; 64 << 20])).await.unwrap();
    let mut answer = sent.unwrap();
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(whole(&mut answer).await, b"");
    assert_eq!(idle(&pool), 0, "what was not written whole leaves no connection behind");
}

#[tokio::test]
async fn a_long_request_and_a_long_answer_arrive_whole() {
    let server = TestServer::start(|seen, mut reply| async move {
        reply.json(&seen.body).await;
        Some(reply)
    })
    .await;
    let pool = Arc::<PlainPool>::default();
    for length in [0, 1, TOGETHER, TOGETHER + 1, 3 << 20] {
        let body: Vec<u8> = (0..length).map(|at| b'a' + u8::try_from(at % 26).unwrap()).collect();
        let mut answer = post(&pool, &server.url, &body).await.unwrap();
        assert_eq!(answer.announced(), Some(length as u64));
        assert!(whole(&mut answer).await == body, "{length} bytes");
    }
    assert_eq!(server.connections(), 1);
    assert!(lock(&pool.idle).connections.iter().all(|resting| resting.connection.came.capacity() <= READ));
}

#[tokio::test]
async fn a_name_and_a_password_in_the_address_are_sent_as_such() {
    let server = TestServer::start(|seen, mut reply| async move {
        let login = seen.header("authorization").unwrap_or_default().to_owned();
        reply.json(seen.answer(&json!([login, seen.header("host")]))).await;
        Some(reply)
    })
    .await;
    let host = server.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let peer = Peer::new(&format!("http://na%20me:w%3Ard@{host}/mcp"));
    assert_eq!(peer.result("tools/list").await, json!(["Basic bmEgbWU6dzpyZA==", host]));
}
