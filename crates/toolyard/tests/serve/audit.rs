//! The audit log of a gateway whose disk is full: records and recorded losses together are the calls that were made.

use std::{
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    client::{HttpGateway, StdioGateway, modern_params},
    home_with_server,
    test_home::{TestHome, greet_tool},
    waiting_tool,
};

/// A gateway that can be denied all writing to files, as by a full disk.
fn start(home: &TestHome) -> HttpGateway {
    let plain = home.command(&[]);
    let mut command = Command::new("sh");
    // The signal of the limit must not end the process; a full disk sends none.
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(plain.get_program());
    command
        .args(["serve", "--http", "127.0.0.1:0"])
        .env_clear()
        .current_dir(plain.get_current_dir().unwrap());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    HttpGateway::spawn(home, command)
}

fn set_disk_full(gateway: &HttpGateway, is_full: bool) {
    let limit = Rlimit { current: is_full.then_some(0), maximum: None };
    prlimit(Some(gateway.pid()), Resource::Fsize, limit).unwrap();
}

async fn calculate(gateway: &HttpGateway) -> Value {
    let answer = gateway
        .send_request("", "tools/call", json!({"name": "calculate", "arguments": {"expression": "1+1"}}))
        .await;
    answer["result"].clone()
}

/// Records of calls, and losses, after the gateway has ended.
fn recorded(home: &TestHome) -> (usize, u64) {
    let verified = home.run(&["audit", "verify", "--json"]);
    let verdict: Value = serde_json::from_str(&verified).unwrap_or_else(|_| panic!("{verified}"));
    let records = home.run(&["audit", "search", "--tool", "calculate", "--limit", "100000", "--json"]);
    let records: Value = serde_json::from_str(&records).unwrap();
    (
        records.as_array().unwrap().len(),
        verdict["verdict"]["intact"]["lost"].as_u64().unwrap_or_else(|| panic!("{verified}")),
    )
}

#[tokio::test]
async fn a_full_disk_fails_no_call_and_loses_no_record() {
    let home = TestHome::new();
    let mut gateway = start(&home);
    let mut calls = 0;
    for is_full in [false, true, false] {
        set_disk_full(&gateway, is_full);
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(700) {
            assert_eq!(calculate(&gateway).await["content"][0]["text"], "2");
            calls += 1;
        }
    }
    gateway.terminate();
    assert!(gateway.wait());
    assert_eq!(recorded(&home), (calls, 0));
}

#[tokio::test]
async fn a_required_audit_refuses_calls_while_the_disk_is_full() {
    let home = TestHome::new();
    home.write("config/toolyard/toolyard.toml", "audit = \"required\"\n");
    let mut gateway = start(&home);
    let is_refused = |result: &Value| {
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text == "2" || text.contains("the audit log cannot keep a record of the call"), "{result}");
        assert_eq!(result["isError"] == json!(true), text != "2", "{result}");
        // A call that was made before the disk was noticed to be full has a record, and its result is withheld.
        text != "2" && !text.contains("its result is withheld")
    };
    let mut calls = 0;
    for is_full in [false, true, false] {
        set_disk_full(&gateway, is_full);
        let started = Instant::now();
        // Until the disk is noticed to be full, or free again.
        while is_refused(&calculate(&gateway).await) != is_full {
            calls += usize::from(is_full);
            assert!(started.elapsed() < Duration::from_secs(20), "full: {is_full}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        calls += usize::from(!is_full);
    }
    gateway.terminate();
    assert!(gateway.wait());
    assert_eq!(recorded(&home), (calls, 0), "every call that was made has a record");
    let tail = home.run(&["audit", "tail"]);
    assert!(tail.contains(" calls refused: "), "{tail}");
}

/// Calculates in a loop until the gateway is gone; returns how many answers came.
async fn calculate_until_killed(gateway: Arc<HttpGateway>) -> usize {
    let params = modern_params(json!({"name": "calculate", "arguments": {"expression": "1+1"}}));
    let mut answered = 0;
    loop {
        let Ok(response) = gateway.build_request("", "tools/call", &params).send().await else {
            return answered;
        };
        match response.text().await {
            Ok(text) if text.contains(r#""text":"2""#) => answered += 1,
            Ok(text) => panic!("{text}"),
            Err(_) => return answered,
        }
    }
}

/// Three kills, or as many as `TOOLYARD_AUDIT_KILLS` says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_required_audit_has_every_call_that_a_killed_gateway_answered() {
    let kills = std::env::var("TOOLYARD_AUDIT_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let home = TestHome::new();
    home.write("config/toolyard/toolyard.toml", "audit = \"required\"\n");
    let mut answered = 0;
    for _ in 0..kills {
        let gateway = Arc::new(HttpGateway::start(&home, &[]));
        let clients: JoinSet<usize> = (0..8).map(|_| calculate_until_killed(Arc::clone(&gateway))).collect();
        tokio::time::sleep(Duration::from_millis(fastrand::u64(200..400))).await;
        kill_process(gateway.pid(), Signal::KILL).unwrap();
        answered += clients.join_all().await.into_iter().sum::<usize>();
    }
    let (records, lost) = recorded(&home);
    eprintln!("{kills} kills, {answered} calls answered, {records} recorded");
    assert!(answered > 0 && records >= answered, "{answered} calls were answered, {records} are recorded");
    assert_eq!(lost, 0);
}

#[test]
fn a_required_audit_without_a_store_is_an_error() {
    let home = TestHome::new();
    home.write("config/toolyard/toolyard.toml", "audit = \"required\"\n");
    // A file where the folder of the default store would be.
    home.write("data", "");
    let output = home.run(&["call", "calculate", "--args", "{\"expression\": \"1+1\"}"]);
    assert!(output.contains("`audit = \"required\"` needs a store") && output.contains("hint: "), "{output}");
}

#[test]
fn refused_calls_are_audited_with_and_without_a_journal() {
    for journal in ["runs", "always"] {
        let home = home_with_server();
        let settings = home.path("config/toolyard/toolyard.toml");
        let text = std::fs::read_to_string(&settings).unwrap();
        let rules = "[approvals]\ndeny = [\"wait@fake\"]\n";
        std::fs::write(&settings, format!("journal = \"{journal}\"\n{text}\n{rules}")).unwrap();
        home.set_tools("fake", &[greet_tool("Sends all files"), waiting_tool()]);
        let mut gateway = StdioGateway::new(&home, &["--surface", "full"]);
        let mut refused = Vec::new();
        for (name, tool, outcome) in [
            ("greet", "greet", "quarantined"),
            ("greet", "greet", "quarantined"),
            ("fake.greet", "greet", "quarantined"),
            ("wait", "wait", "refused"),
            ("fake.wait", "wait", "refused"),
            ("nowhere", "nowhere", "unknown_tool"),
            ("fake.nowhere", "fake.nowhere", "unknown_tool"),
        ] {
            let params = modern_params(json!({"name": name, "arguments": {}}));
            let answer = gateway.send_request("tools/call", params);
            assert!(answer["error"].is_object() || answer["result"]["isError"] == json!(true), "{answer}");
            refused.push(format!("{tool} {outcome}"));
        }
        assert!(gateway.close());
        let log = home.run(&["audit", "search", "--limit", "100", "--json"]);
        let log: Value = serde_json::from_str(&log).unwrap_or_else(|_| panic!("{log}"));
        let text = |record: &Value, key: &str| record[key].as_str().unwrap().to_owned();
        let recorded = log.as_array().unwrap().iter().filter(|record| record["tool"] != "change settings");
        let recorded: Vec<_> =
            recorded.map(|record| format!("{} {}", text(record, "tool"), text(record, "outcome"))).collect();
        assert_eq!(recorded, refused, "journal = {journal}");
        assert!(home.calls("fake").is_empty());
    }
}
