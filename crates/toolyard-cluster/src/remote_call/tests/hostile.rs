//! Malformed and hostile messages in both directions.

use proptest::prelude::*;
use toolyard_core::{Exchange, ExtendableDeadline, PeerError, PeerService};

use super::{
    super::{
        encode_request,
        wire::{
            message::{CallerMessage, ExecutorMessage},
            request::WireRequest,
        },
    },
    *,
};

/// Sends these messages to whoever calls.
struct Script(Vec<&'static str>);

impl PeerService for Script {
    fn serve(self: Arc<Self>, _: Vec<u8>, mut exchange: Box<dyn Exchange>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            for message in &self.0 {
                if exchange.send(message.as_bytes().to_vec()).await.is_err() {
                    return;
                }
            }
            // Waits for the caller to end the exchange.
            while let Ok(Some(_)) = exchange.receive().await {}
        })
    }
}

async fn call_script(messages: &[&'static str]) -> (Outcome, Vec<String>) {
    let cluster = MemoryCluster::new();
    let (caller_process, executor) = (cluster.join(CALLER), cluster.join(EXECUTOR));
    executor.serve(TOOL_CALL_SERVICE, Arc::new(Script(messages.to_vec())));
    let caller = Arc::new(TestCaller::default());
    let context = within(seconds(60)).with_caller(Some(Arc::clone(&caller) as Arc<dyn Caller>));
    let outcome = call_remote(&*caller_process, EXECUTOR, &target(), &request(), &context).await;
    (outcome, caller.told())
}

const SUCCESS: &str =
    r#"{"success":{"meta":{"source":null,"synthesized":false,"source_count":0,"sources":[],"attempts":0}}}"#;

#[tokio::test]
async fn unknown_kinds_and_fields_of_messages_are_ignored() {
    let (outcome, told) = call_script(&[
        r#"{"weather":{"rain":true}}"#,
        "{}",
        r#"{"progress":{"progress":1,"mood":"good"},"later":1}"#,
        r#"{"cancel_input":{"number":99}}"#,
        SUCCESS,
    ])
    .await;
    assert_eq!(outcome, Ok(ToolOutput::default()));
    assert_eq!(told, ["progress 1"]);
}

#[tokio::test]
async fn malformed_messages_lose_the_response_and_are_not_quoted() {
    let deep: &'static str = "[".repeat(100_000).leak();
    for message in [
        "",
        "null",
        "[]",
        "7",
        "\u{0}",
        r#"{"success":"#,
        r#"{"success":{}}"#,
        r#"{"success":7}"#,
        r#"{"failure":{"kind":"s3cret","message":"m","attempts":0}}"#,
        r#"{"failure":{"kind":"failed"}}"#,
        r#"{"failure":{"kind":"failed","message":"m","retry_after":{"secs":18446744073709551615,"nanos":4294967295}}}"#,
        r#"{"progress":{"progress":"s3cret"}}"#,
        r#"{"progress":{"progress":1},"log":{"params":{}}}"#,
        r#"{"activity":{},"activity":{}}"#,
        r#"{"input":{"number":-1,"requests":[]}}"#,
        r#"{"input":{"number":1,"requests":[{"key":"k","source":"s","kind":"s3cret"}]}}"#,
        deep,
    ] {
        let (outcome, _) = call_script(&[message, SUCCESS]).await;
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ResponseLost, "{message}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn two_open_input_requests_with_one_number_are_malformed() {
    let input = r#"{"input":{"number":1,"requests":[]}}"#;
    let caller = TestCaller { answer_delay: seconds(60), ..TestCaller::default() };
    let cluster = MemoryCluster::new();
    let (caller_process, executor) = (cluster.join(CALLER), cluster.join(EXECUTOR));
    executor.serve(TOOL_CALL_SERVICE, Arc::new(Script(vec![input, input])));
    let context = within(seconds(60)).with_caller(Some(Arc::new(caller)));
    let outcome = call_remote(&*caller_process, EXECUTOR, &target(), &request(), &context).await;
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ResponseLost);
}

/// Fails with this error after these messages.
struct FailingExchange(Vec<&'static str>, PeerError);

impl Exchange for FailingExchange {
    fn send(&mut self, _: Vec<u8>) -> BoxFuture<'_, Result<(), PeerError>> {
        Box::pin(std::future::ready(Err(self.1.clone())))
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, PeerError>> {
        let message = if self.0.is_empty() {
            Err(self.1.clone())
        } else {
            Ok(Some(self.0.remove(0).as_bytes().to_vec()))
        };
        Box::pin(std::future::ready(message))
    }
}

#[tokio::test]
async fn nothing_was_called_only_if_the_executor_was_never_heard() {
    let not_reached = || PeerError::NotReached("no responders".to_owned());
    let lost = || PeerError::Lost("no heartbeat".to_owned());
    let activity = r#"{"activity":{}}"#;
    let input = r#"{"input":{"number":1,"requests":[]}}"#;
    for (messages, error, kind) in [
        (vec![], not_reached(), ErrorKind::Unavailable),
        (vec![], lost(), ErrorKind::ResponseLost),
        (vec![activity], not_reached(), ErrorKind::ResponseLost),
        // The answer cannot be sent; the request was.
        (vec![input], not_reached(), ErrorKind::ResponseLost),
    ] {
        let exchange = Box::new(FailingExchange(messages, error));
        let context = within(seconds(60));
        let outcome = super::super::await_outcome(exchange, &target(), &request(), &context).await;
        assert_eq!(outcome.unwrap_err().kind(), kind);
    }
}

/// A cluster whose tool must not be called.
fn uncallable() -> TestCluster {
    TestCluster::new(|_, _| async { Err(ToolError::failed("called")) })
}

#[tokio::test]
async fn requests_of_another_version_are_refused_before_anything_is_called() {
    let cluster = uncallable();
    let current =
        String::from_utf8(encode_request(&target(), &request(), &within(seconds(9))).unwrap()).unwrap();
    let other_fields = r#"{"version":4000000000000,"everything":"else"}"#.to_owned();
    for request in [current.replace(r#""version":1"#, r#""version":2"#), other_fields] {
        let message = cluster.send_raw(request.as_bytes()).await.unwrap();
        let Ok(ExecutorMessage::Outcome(outcome)) = ExecutorMessage::decode(message.as_bytes()) else {
            panic!("{message}")
        };
        let error = outcome.unwrap_err();
        assert!(error.kind() == ErrorKind::Unavailable && error.had_no_effect(), "{error}");
        assert!(error.message().contains("version"), "{error}");
        assert!(error.hint().is_some());
    }
}

#[tokio::test]
async fn malformed_requests_are_refused_before_anything_is_called() {
    let cluster = uncallable();
    let current =
        String::from_utf8(encode_request(&target(), &request(), &within(seconds(9))).unwrap()).unwrap();
    let requests = [
        String::new(),
        "{}".to_owned(),
        "[1]".to_owned(),
        current.replace(r#""version":1,"#, ""),
        // Nobody becomes the operator because the owner is missing or unreadable.
        current.replace(r#""owner":"""#, r#""boss":"""#),
        current.replace(r#""owner":"""#, r#""owner":"s3cret""#),
        current.replace(r#""id":"call_7","#, ""),
        current.replace(r#""remaining_ms":"#, r#""remaining_ms":-"#),
        current.replace(r#""version":1"#, r#""version":1,"span":"s3cret""#),
    ];
    for request in requests {
        assert_ne!(request, current);
        let message = cluster.send_raw(request.as_bytes()).await.unwrap();
        let Ok(ExecutorMessage::Outcome(outcome)) = ExecutorMessage::decode(message.as_bytes()) else {
            panic!("{message}")
        };
        let error = outcome.unwrap_err();
        assert!(error.kind() == ErrorKind::Unavailable && !error.retryable(), "{request}: {error}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn extreme_times_neither_panic_nor_wait_forever() {
    let cluster = TestCluster::new(|_, context| async move {
        if let Some(deadline) = context.extendable_deadline {
            deadline.pause();
            deadline.deadline();
        }
        std::future::pending().await
    });
    let mut context = within(seconds(9));
    let now = Instant::now().into_std();
    context.extendable_deadline = Some(Arc::new(ExtendableDeadline::new(now, seconds(9), seconds(60))));
    let current = String::from_utf8(encode_request(&target(), &request(), &context).unwrap()).unwrap();
    for [fixed, idle, max] in [
        ["18446744073709551615"; 3],
        ["0"; 3],
        ["0", "0", "18446744073709551615"],
        ["0", "18446744073709551615", "0"],
    ] {
        let request = current
            .replace("\"remaining_ms\":9000", &format!("\"remaining_ms\":{fixed}"))
            .replace("\"idle_timeout_ms\":9000", &format!("\"idle_timeout_ms\":{idle}"))
            .replace("\"max_remaining_ms\":60000", &format!("\"max_remaining_ms\":{max}"));
        let message = cluster.send_raw(request.as_bytes()).await.unwrap();
        assert!(message.contains("timeout"), "{message}");
    }
}

#[tokio::test]
async fn a_caller_that_sends_nonsense_loses_its_call() {
    let cluster = TestCluster::new(|_, _| std::future::pending());
    let request = encode_request(&target(), &request(), &within(seconds(60))).unwrap();
    for nonsense in
        ["", "[]", r#"{"answer":{"number":1}}"#, r#"{"answer":{"number":1,"result":{"responses":7}}}"#]
    {
        let mut exchange = cluster.caller.open(EXECUTOR, TOOL_CALL_SERVICE, request.clone()).await.unwrap();
        exchange.send(r#"{"greeting":{}}"#.into()).await.unwrap();
        exchange.send(r#"{"answer":{"number":9,"result":{"responses":[]}}}"#.into()).await.unwrap();
        exchange.send(nonsense.into()).await.unwrap();
        assert_eq!(exchange.receive().await, Ok(None));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_readers_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = ExecutorMessage::decode(&bytes);
        let _ = CallerMessage::decode(&bytes);
        let _ = WireRequest::decode(&bytes);
    }

    #[test]
    fn no_damaged_request_makes_the_reader_panic(position in 0_usize..400, byte: u8, cut in 0_usize..400) {
        let mut request = encode_request(&target(), &request(), &within(seconds(9))).unwrap();
        if let Some(damaged) = request.get_mut(position) {
            *damaged = byte;
        }
        let _ = WireRequest::decode(&request);
        request.truncate(cut);
        prop_assert!(WireRequest::decode(&request).is_err() || cut > 50);
    }
}
