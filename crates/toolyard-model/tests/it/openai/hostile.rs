//! Servers that send anything but a reply.

use std::time::Duration;

use proptest::prelude::*;
use toolyard_model::{ModelErrorKind, ModelServerConfig, ResponseLimits};

use super::{
    config, send_with,
    server::{DONE, Server, Step, head, response, stream, text_event, write},
};

fn limited_config(server: &Server) -> ModelServerConfig {
    let mut config = config(server);
    config.response_limits = ResponseLimits { max_event_bytes: 64 << 10, max_total_bytes: 1 << 20 };
    config.max_attempts = 1;
    config
}

async fn error_of(steps: Vec<Step>) -> (ModelErrorKind, String) {
    let server = Server::start([steps]).await;
    let reply = tokio::time::timeout(Duration::from_secs(20), send_with(limited_config(&server)));
    let error = reply.await.expect("the request ends").unwrap_err();
    (error.kind, error.to_string())
}

fn stream_head() -> Step {
    head("200 OK", "text/event-stream", "")
}

#[tokio::test]
async fn endless_responses_end_at_the_limits() {
    let pause = Duration::ZERO;
    for flood in [
        Step::Repeat(vec![b'x'; 10_000], pause),
        Step::Repeat([b"data: ".to_vec(), vec![b'x'; 10_000]].concat(), pause),
        Step::Repeat(b"data: 1\n".repeat(1_000), pause),
        Step::Repeat(b": comment\n\n".repeat(1_000), pause),
        Step::Repeat(text_event(&"word ".repeat(1_000)).into_bytes(), pause),
        Step::Repeat(b"{\"a\":".repeat(1_000), pause),
        Step::Repeat(vec![b' '; 10_000], pause),
        Step::Repeat(b"data: {}\n\n".repeat(1_000), pause),
    ] {
        let shown = format!("{flood:?}").chars().take(80).collect::<String>();
        let (kind, error) = error_of(vec![stream_head(), flood]).await;
        assert_eq!(kind, ModelErrorKind::InvalidResponse, "{shown}: {error}");
    }
}

#[tokio::test]
async fn invalid_responses_are_quoted() {
    for (steps, expected) in [
        (stream("data: {\"choices\": [{\"delta\": {\"content\n\n"), "returned an invalid response"),
        (stream("data: hello\n\n"), "returned an invalid response: hello"),
        (stream(&text_event("Hel")), "ended its response before the reply was complete"),
        (stream(""), "ended its response before the reply was complete"),
        (
            response("200 OK", "text/html", "", "<html>Sign in</html>"),
            "returned an invalid response: a web page",
        ),
        (
            response("200 OK", "application/json", "", "{\"ok\":true}"),
            "returned an invalid response: {\"ok\":true}",
        ),
        (response("200 OK", "application/json", "", "{\"choices\":"), "returned an invalid response"),
        (response("200 OK", "application/json", "", "{\"error\":\"no\"}"), "returned an error: no"),
        (stream(&format!("data: {}\n\n", "[".repeat(50_000))), "returned an invalid response"),
        (stream("data: \u{1b}[31mred\u{202e}\n\n"), "returned an invalid response: \\u{1b}[31mred\\u{202e}"),
    ] {
        let (kind, error) = error_of(steps).await;
        assert!(error.contains(expected), "{error}");
        assert!(
            kind == ModelErrorKind::InvalidResponse || error.ends_with("returned an error: no"),
            "{kind:?} {error}"
        );
        assert!(error.len() < 500, "{error}");
    }
}

#[tokio::test]
async fn a_broken_connection_is_an_error_at_every_point() {
    let chunked = head("200 OK", "text/event-stream", "Transfer-Encoding: chunked\r\n");
    let short = head("200 OK", "application/json", "Content-Length: 500\r\n");
    for steps in [
        vec![Step::Reset],
        vec![write("HTTP/1.1 200 O"), Step::Reset],
        vec![write("HELLO\r\n\r\n")],
        vec![chunked.clone(), Step::Reset],
        vec![chunked, write("5\r\ndata:\r\n")],
        vec![short, write("{\"choices\":[")],
    ] {
        let shown = format!("{steps:?}");
        let (kind, error) = error_of(steps).await;
        assert!(
            matches!(kind, ModelErrorKind::Unreachable | ModelErrorKind::InvalidResponse),
            "{shown}: {kind:?} {error}"
        );
    }
}

#[tokio::test]
async fn a_complete_reply_needs_no_orderly_end() {
    let chunked = head("200 OK", "text/event-stream", "Transfer-Encoding: chunked\r\n");
    let events = text_event("Hello.") + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let body = format!("{:x}\r\n{events}\r\n", events.len());
    let server =
        Server::start([vec![chunked, write(body), Step::Wait(Duration::from_millis(50)), Step::Reset]]).await;
    assert_eq!(send_with(limited_config(&server)).await.unwrap().text, "Hello.");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_stream_ends_in_a_reply_or_an_error(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut bytes = (text_event("Hello, ") + &text_event("world.") + DONE).into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::start([vec![stream_head(), Step::Write(bytes)]]).await;
            let reply = tokio::time::timeout(Duration::from_secs(10), send_with(limited_config(&server))).await;
            prop_assert!(reply.is_ok(), "the request ends");
            Ok(())
        })?;
    }
}
