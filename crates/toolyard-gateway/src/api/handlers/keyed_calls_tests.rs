//! Which calls with a key are made, which answers are kept, and for how long.

use http::{HeaderMap, Method};
use toolyard_core::CallerIdentity;

use super::*;

fn request_of(caller: &str, key: &str, body: &str) -> RouteRequest {
    let mut headers = HeaderMap::new();
    headers.insert("idempotency-key", key.parse().unwrap());
    RouteRequest {
        method: Method::POST,
        path: "/tools/pay/call".to_owned(),
        query: String::new(),
        headers,
        identity: Arc::new(CallerIdentity::principal("https://issuer", caller)),
        body: body.to_owned(),
    }
}

fn request(key: &str) -> RouteRequest {
    request_of("ada", key, "{}")
}

fn reserve(calls: &KeyedCalls, tool: &str, request: &RouteRequest) -> CallReservation {
    match calls.reserve(tool, request) {
        Ok(CallLookup::New(Some(reservation))) => reservation,
        Ok(CallLookup::New(None)) => panic!("no key"),
        Ok(CallLookup::Repeated(answer)) => panic!("{answer:?}"),
        Err(error) => panic!("{error:?}"),
    }
}

/// The text of the answer to a repeated request, or the code of the error.
fn repeat(calls: &KeyedCalls, request: &RouteRequest) -> String {
    match calls.reserve("pay", request) {
        Ok(CallLookup::New(_)) => "called again".to_owned(),
        Ok(CallLookup::Repeated(RouteResponse { body: RouteBody::Json(text), .. })) => {
            String::from_utf8(text.to_vec()).unwrap()
        }
        Ok(CallLookup::Repeated(answer)) => panic!("{answer:?}"),
        Err(error) => error.to_json()["error"]["code"].as_str().unwrap().to_owned(),
    }
}

fn complete(calls: &KeyedCalls, key: &str, answer: &str) {
    let answer = RouteResponse::json(StatusCode::OK, answer.to_owned());
    reserve(calls, "pay", &request(key)).complete(&answer);
}

#[test]
fn a_key_identifies_one_call_of_one_caller_and_one_tool() {
    let calls = KeyedCalls::default();
    let first = reserve(&calls, "pay", &request("k"));
    assert_eq!(repeat(&calls, &request("k")), "already_started");
    first.complete(&RouteResponse::json(StatusCode::OK, "paid"));
    assert_eq!(repeat(&calls, &request("k")), "paid");
    assert_eq!(repeat(&calls, &request_of("ada", "k", r#"{"source": "bank"}"#)), "idempotency_key_reused");
    reserve(&calls, "pay", &request_of("eve", "k", "{}")).release();
    reserve(&calls, "pay.twice", &request("k")).release();
    assert_eq!(repeat(&calls, &request("k")), "paid");
}

#[test]
fn a_call_that_was_released_or_interrupted_before_it_had_an_effect_is_made_again() {
    let calls = KeyedCalls::default();
    reserve(&calls, "pay", &request("k")).release();
    drop(reserve(&calls, "pay", &request("k")));
    assert_eq!(repeat(&calls, &request("k")), "called again");
}

#[tokio::test(start_paused = true)]
async fn a_key_is_recognized_for_a_day() {
    let calls = KeyedCalls::default();
    complete(&calls, "k", "paid");
    tokio::time::advance(RETENTION).await;
    assert_eq!(repeat(&calls, &request("k")), "paid");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(repeat(&calls, &request("k")), "called again");
}

#[test]
fn an_answer_that_is_too_large_is_not_kept_but_its_call_is_recognized() {
    let calls = KeyedCalls::default();
    complete(&calls, "large", &"x".repeat(MAX_ANSWER_BYTES + 1));
    assert_eq!(repeat(&calls, &request("large")), "already_executed");
    let largest = "x".repeat(MAX_ANSWER_BYTES);
    let fitting = MAX_TOTAL_ANSWER_BYTES / MAX_ANSWER_BYTES;
    (0..=fitting).for_each(|number| complete(&calls, &number.to_string(), &largest));
    assert_eq!(repeat(&calls, &request("0")), "already_executed", "the oldest answer makes room");
    assert_eq!(repeat(&calls, &request("1")), largest);
    assert_eq!(repeat(&calls, &request(&fitting.to_string())), largest);
}

#[test]
fn the_number_of_keys_of_a_caller_is_limited_and_a_running_call_is_never_forgotten() {
    let calls = KeyedCalls { max_per_caller: 3, ..KeyedCalls::default() };
    let paid = RouteResponse::json(StatusCode::OK, "paid to eve");
    reserve(&calls, "pay", &request_of("eve", "k", "{}")).complete(&paid);
    let running = reserve(&calls, "pay", &request("running"));
    // With the one that is running, one more than fits.
    ["0", "1", "2"].into_iter().for_each(|key| complete(&calls, key, "paid"));
    assert_eq!(repeat(&calls, &request("running")), "already_started");
    assert_eq!(repeat(&calls, &request("1")), "paid", "only one was forgotten");
    assert_eq!(repeat(&calls, &request_of("eve", "k", "{}")), "paid to eve", "and none of another caller");
    assert_eq!(repeat(&calls, &request("0")), "called again");
    running.release();
}

#[test]
fn a_key_without_room_is_refused_and_no_other_is_forgotten() {
    let calls = KeyedCalls { max_per_caller: 2, max_total: 3, ..KeyedCalls::default() };
    let running = ["0", "1"].map(|key| reserve(&calls, "pay", &request(key)));
    assert_eq!(repeat(&calls, &request("2")), "too_many_keys", "both calls of the caller are running");
    let answer = RouteResponse::json(StatusCode::OK, "paid");
    running.into_iter().for_each(|reservation| reservation.complete(&answer));
    reserve(&calls, "pay", &request_of("eve", "k", "{}")).complete(&answer);
    assert_eq!(repeat(&calls, &request_of("bob", "k", "{}")), "too_many_keys", "there is no room at all");
    for known in [request("0"), request("1"), request_of("eve", "k", "{}")] {
        assert_eq!(repeat(&calls, &known), "paid");
    }
    complete(&calls, "2", "paid");
    assert_eq!(calls.lock().len(), 3, "a caller makes room for itself");
    let refused = too_many_keys();
    assert!(refused.status == StatusCode::TOO_MANY_REQUESTS && refused.is_retryable(), "{refused:?}");
}

#[test]
fn only_calls_that_are_safe_to_repeat_are_forgotten() {
    use ErrorKind as K;
    for (kind, expected) in [
        (K::InvalidArguments, true),
        (K::Unavailable, true),
        (K::QuotaExceeded, true),
        (K::Timeout, true),
        (K::ResponseLost, true),
        (K::Failed, false),
        (K::OutcomeUnknown, false),
        (K::Internal, false),
    ] {
        assert_eq!(may_be_repeated(&ToolError::new(kind, "x")), expected, "{kind:?}");
    }
}
