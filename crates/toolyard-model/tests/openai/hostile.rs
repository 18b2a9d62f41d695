//! Servers that send anything but an answer.

use std::time::Duration;

use proptest::prelude::*;
use toolyard_model::{ModelErrorKind, OpenAiConfig, StreamLimits};

use crate::{
    ask_with, config,
    server::{DONE, Server, Step, answer, head, said, stream, write},
};

fn careful(server: &Server) -> OpenAiConfig {
    let mut config = config(server);
    config.limits = StreamLimits { event_bytes: 64 << 10, total_bytes: 1 << 20 };
    config.attempts = 1;
    config
}

async fn error_of(steps: Vec<Step>) -> (ModelErrorKind, String) {
    let server = Server::start([steps]).await;
    let asked = tokio::time::timeout(Duration::from_secs(20), ask_with(careful(&server)));
    let error = asked.await.expect("it ends").unwrap_err();
    (error.kind, error.to_string())
}

fn begun() -> Step {
    head("200 OK", "text/event-stream", "")
}

#[tokio::test]
async fn floods_end_at_their_limits() {
    let nothing = Duration::ZERO;
    for flood in [
        Step::Drip(vec![b'x'; 10_000], nothing),
        Step::Drip([b"data: ".to_vec(), vec![b'x'; 10_000]].concat(), nothing),
        Step::Drip(b"data: 1\n".repeat(1_000), nothing),
        Step::Drip(b": comment\n\n".repeat(1_000), nothing),
        Step::Drip(said(&"word ".repeat(1_000)).into_bytes(), nothing),
        Step::Drip(b"{\"a\":".repeat(1_000), nothing),
        Step::Drip(vec![b' '; 10_000], nothing),
        Step::Drip(b"data: {}\n\n".repeat(1_000), nothing),
    ] {
        let shown = format!("{flood:?}").chars().take(80).collect::<String>();
        let (kind, error) = error_of(vec![begun(), flood]).await;
        assert_eq!(kind, ModelErrorKind::Garbled, "{shown}: {error}");
    }
}

#[tokio::test]
async fn garbage_is_named() {
    for (steps, expected) in [
        (stream("data: {\"choices\": [{\"delta\": {\"content\n\n"), "said something that is no answer"),
        (stream("data: hello\n\n"), "said something that is no answer: hello"),
        (stream(&said("Hel")), "ended in the middle of its answer"),
        (stream(""), "ended in the middle of its answer"),
        (
            answer("200 OK", "text/html", "", "<html>Sign in</html>"),
            "said something that is no answer: a web page",
        ),
        (
            answer("200 OK", "application/json", "", "{\"ok\":true}"),
            "said something that is no answer: {\"ok\":true}",
        ),
        (answer("200 OK", "application/json", "", "{\"choices\":"), "said something that is no answer"),
        (answer("200 OK", "application/json", "", "{\"error\":\"no\"}"), "broke off: no"),
        (stream(&format!("data: {}\n\n", "[".repeat(50_000))), "said something that is no answer"),
        (
            stream("data: \u{1b}[31mred\u{202e}\n\n"),
            "said something that is no answer: \\u{1b}\\u{5b}\\u{33}\\u{31}\\u{6d}red\\u{202e}",
        ),
    ] {
        let (kind, error) = error_of(steps).await;
        assert!(error.contains(expected), "{error}");
        assert!(kind == ModelErrorKind::Garbled || error.ends_with("broke off: no"), "{kind:?} {error}");
        assert!(error.len() < 500, "{error}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_an_error_in_every_place() {
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
            matches!(kind, ModelErrorKind::Unreachable | ModelErrorKind::Garbled),
            "{shown}: {kind:?} {error}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_is_complete_survives_an_untidy_end() {
    let chunked = head("200 OK", "text/event-stream", "Transfer-Encoding: chunked\r\n");
    let events = said("Hello.") + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let body = format!("{:x}\r\n{events}\r\n", events.len());
    let server =
        Server::start([vec![chunked, write(body), Step::Wait(Duration::from_millis(50)), Step::Reset]]).await;
    assert_eq!(ask_with(careful(&server)).await.unwrap().text, "Hello.");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_that_was_damaged_ends_in_an_answer_or_an_error(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut bytes = (said("Hello, ") + &said("world.") + DONE).into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::start([vec![begun(), Step::Write(bytes)]]).await;
            let asked = tokio::time::timeout(Duration::from_secs(10), ask_with(careful(&server))).await;
            prop_assert!(asked.is_ok(), "it ends");
            Ok(())
        })?;
    }
}
