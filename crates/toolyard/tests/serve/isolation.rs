//! Failures and slow calls of one client do not stop another, and a server that was down is soon used again.

use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    client::{HttpGateway, modern_meta, send, tool_names},
    http_upstream::HttpUpstream,
    test_home::TestHome,
};

/// A server that was down must be used again within this time of its return.
const MAX_RETURN_DELAY: Duration = Duration::from_secs(5);

/// A number from the environment, so that `just outage` and `just fairness` can run longer than CI.
fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Calls a tool as a client of this name. Returns whether it succeeded, and the text of the result.
async fn call(gateway: &HttpGateway, client: &str, tool: &str, arguments: Value) -> (bool, String) {
    let params = json!({"name": tool, "arguments": arguments, "_meta": modern_meta(client)});
    let body = send(gateway.build_request("", "tools/call", &params)).await.body;
    let text = body["result"]["content"][0]["text"].as_str();
    (text.is_some() && body["result"]["isError"] != json!(true), text.map_or(body.to_string(), str::to_owned))
}

/// A gateway that knows the tools of the server.
async fn start_gateway(home: &TestHome) -> HttpGateway {
    let gateway = HttpGateway::start(home, &[]);
    let listed = gateway.send_request("", "tools/list", json!({})).await;
    assert!(tool_names(&listed).contains(&"sleep"), "{listed}");
    gateway
}

#[tokio::test]
async fn the_call_timeout_holds_for_a_server_that_never_responds() {
    let upstream = HttpUpstream::start().await;
    let home = upstream.home("[call]\ntimeout = \"1s\"");
    let gateway = start_gateway(&home).await;
    let started = Instant::now();
    let (succeeded, text) = call(&gateway, "a", "sleep", json!({"milliseconds": 300_000})).await;
    assert!(!succeeded && text.contains("within 1 s"), "{text}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[tokio::test]
async fn failed_calls_of_one_client_do_not_stop_another() {
    let upstream = HttpUpstream::start().await;
    let home = upstream.home("");
    let gateway = start_gateway(&home).await;
    for status in [500, 404, 400, 429, 502, 503] {
        for _ in 0..6 {
            let (succeeded, text) = call(&gateway, "hog", "respond", json!({"status": status})).await;
            assert!(!succeeded, "{text}");
        }
        let (succeeded, text) = call(&gateway, "other", "sleep", json!({})).await;
        assert!(succeeded, "after HTTP status {status}: {text}");
    }
}

#[tokio::test]
async fn the_sixth_call_of_a_failing_server_is_not_made() {
    let upstream = HttpUpstream::start().await;
    let home = upstream.home("");
    let gateway = start_gateway(&home).await;
    let mut texts = Vec::new();
    for _ in 0..6 {
        texts.push(call(&gateway, "a", "respond", json!({"status": 502})).await.1);
    }
    let is_open: Vec<bool> = texts.iter().map(|text| text.contains("circuit open")).collect();
    assert_eq!(is_open, [false, false, false, false, false, true], "{texts:?}");
}

#[tokio::test]
async fn a_client_is_told_when_to_retry_and_gets_no_result_that_is_not_an_object() {
    let upstream = HttpUpstream::start().await;
    let home = upstream.home("");
    let gateway = start_gateway(&home).await;
    let (succeeded, text) = call(&gateway, "a", "respond", json!({"status": 429, "retry_after": "77"})).await;
    assert!(!succeeded && text.contains("the server asks to retry in 77 s"), "{text}");
    for result in
        [json!("words"), json!(7), json!([]), json!([{"type": "text", "text": "words"}]), Value::Null]
    {
        let (succeeded, text) = call(&gateway, "a", "respond", json!({"result": result})).await;
        assert!(!succeeded && text.contains("not a JSON object"), "{result}: {text}");
    }
    let prompt = gateway.send_request("", "prompts/get", json!({"name": "invalid"})).await;
    assert!(prompt["error"].to_string().contains("not a JSON object"), "{prompt}");
}

/// `just outage` runs it with an outage of 45 s.
#[tokio::test]
async fn a_server_is_used_again_soon_after_its_return() {
    let outage = Duration::from_secs(number_from_env("TOOLYARD_OUTAGE_SECONDS", 4));
    let mut upstream = HttpUpstream::start().await;
    let home = upstream.home("");
    let gateway = start_gateway(&home).await;
    let call = async || call(&gateway, "a", "sleep", json!({})).await;
    assert!(call().await.0);
    upstream.stop();
    let (stopped, mut failures) = (Instant::now(), 0);
    while stopped.elapsed() < outage {
        let (succeeded, text) = call().await;
        assert!(!succeeded, "{text}");
        failures += 1;
        sleep(Duration::from_millis(100)).await;
    }
    assert!(gateway.stderr().contains("source=upstream tool=sleep host=127.0.0.1:"), "{}", gateway.stderr());
    upstream.restart().await;
    let returned = Instant::now();
    loop {
        let (succeeded, text) = call().await;
        let elapsed = returned.elapsed();
        if succeeded {
            eprintln!("down {outage:?}, {failures} failed calls, used again after {elapsed:?}");
            break;
        }
        assert!(elapsed < MAX_RETURN_DELAY, "{elapsed:?} after its return: {text}\n{}", gateway.stderr());
        sleep(Duration::from_millis(100)).await;
    }
}

/// Every call needs a connection to the gateway, and one from the gateway to the server.
fn raise_open_files_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

/// `just fairness` runs it with more calls.
#[tokio::test(flavor = "multi_thread")]
async fn slow_calls_of_one_client_make_another_at_most_twice_as_slow() {
    raise_open_files_limit();
    let hog_calls = number_from_env("TOOLYARD_HOG_CALLS", 1_100);
    let measured_calls = number_from_env("TOOLYARD_MEASURED_CALLS", 2);
    let upstream = HttpUpstream::start().await;
    let home = upstream.home("");
    let gateway = std::sync::Arc::new(start_gateway(&home).await);
    let slowest_call = async || {
        let mut slowest = Duration::ZERO;
        for _ in 0..measured_calls {
            let started = Instant::now();
            let (succeeded, text) = call(&gateway, "other", "sleep", json!({"milliseconds": 500})).await;
            assert!(succeeded, "{text}");
            slowest = slowest.max(started.elapsed());
        }
        slowest
    };
    let alone = slowest_call().await;
    let mut hog = JoinSet::new();
    for _ in 0..hog_calls {
        let gateway = std::sync::Arc::clone(&gateway);
        hog.spawn(async move { call(&gateway, "hog", "sleep", json!({"milliseconds": 100_000})).await });
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    // All slots that one caller may occupy, and a while for the calls that have to wait.
    while upstream.running_calls() < 512 && Instant::now() < deadline {
        sleep(Duration::from_millis(20)).await;
    }
    sleep(Duration::from_millis(500)).await;
    let beside_hog = slowest_call().await;
    eprintln!("{hog_calls} slow calls, alone {alone:?}, beside them {beside_hog:?}");
    assert!(beside_hog <= 2 * alone, "alone {alone:?}, beside {hog_calls} slow calls {beside_hog:?}");
    hog.abort_all();
}
