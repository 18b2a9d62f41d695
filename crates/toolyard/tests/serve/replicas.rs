//! Several gateways on one store: they share sessions without a setting, and say what else they need.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    client::{HttpGateway, send},
    test_home::TestHome,
};

const TOKEN: &str = "a-token-of-more-than-thirty-two-characters";

/// A new database on the PostgreSQL server for tests.
pub(crate) fn new_database() -> String {
    let server = std::env::var("TOOLYARD_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("no PostgreSQL: run the tests with `just test` or `scripts/with-postgres`")
    });
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let name = format!("r_{}_{since}", std::process::id());
    let created = Command::new("psql")
        .args([&format!("{server}/postgres"), "-qc", &format!("CREATE DATABASE {name}")])
        .status();
    assert!(created.unwrap().success());
    format!("{server}/{name}")
}

/// A home with this store and these lines under `[serve]`.
fn home_of(store: &str, serve: &str) -> TestHome {
    let home = TestHome::new();
    home.write("config/toolyard/toolyard.toml", &format!("store = \"{store}\"\n[serve]\n{serve}\n"));
    home
}

fn start(home: &TestHome) -> HttpGateway {
    let mut command = home.command(&["serve", "--http", "127.0.0.1:0"]);
    command.env("SHARED_TOKEN", TOKEN);
    let mut gateway = HttpGateway::spawn(home, command);
    gateway.token = Some(TOKEN.to_owned());
    gateway
}

#[tokio::test]
async fn a_session_of_one_replica_is_known_to_the_others_without_a_setting() {
    let store = new_database();
    let homes = [(); 2].map(|()| home_of(&store, "token = \"${SHARED_TOKEN}\""));
    let replicas = [start(&homes[0]), start(&homes[1])];
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    let session = send(replicas[0].build_request("", "initialize", &hello)).await.session.unwrap();
    for replica in &replicas {
        let call = json!({"name": "calculate", "arguments": {"expression": "1+1"}});
        let request = replica.build_request("", "tools/call", &call).header("Mcp-Session-Id", &session);
        let answer = send(request.header("MCP-Protocol-Version", "2025-11-25")).await;
        assert_eq!(
            (answer.status, &answer.body["result"]["content"][0]["text"]),
            (200, &json!("2")),
            "{answer:?}"
        );
    }
    // Both record in one log, and no call id occurs twice.
    drop(replicas);
    let ids = |home: &TestHome| {
        let records: Value =
            serde_json::from_str(&home.run(&["audit", "tail", "--json"])).unwrap_or_default();
        let ids = records
            .as_array()
            .into_iter()
            .flatten()
            .map(|record| record["call"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    for _ in 0..2 {
        homes[0].run(&["call", "calculate", "--args", "{\"expression\": \"1+1\"}"]);
    }
    let mut all = ids(&homes[0]);
    let count = all.len();
    assert!(count >= 2, "{all:?}");
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "{all:?}");
}

/// Permits connections to a database, or refuses them and ends those that exist, as a failover does.
pub(crate) fn set_available(store: &str, is_available: bool) {
    let (server, name) = store.rsplit_once('/').unwrap();
    let permit = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {is_available}");
    let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    let done =
        Command::new("psql").args([&format!("{server}/postgres"), "-qc", &permit, "-c", &end]).output();
    assert!(done.unwrap().status.success());
}

/// Waits until `/readyz` reports the store like this; the gateway is ready all the time.
async fn wait_for_store_check(gateway: &HttpGateway, expected: &str) {
    let asked_at = Instant::now();
    loop {
        let (status, body) = gateway.get("/readyz", None).await;
        assert_eq!(status, 200, "{body}");
        if body.contains(expected) {
            return;
        }
        assert!(asked_at.elapsed() < Duration::from_secs(20), "{body}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_gateway_that_loses_its_store_reports_it_and_stays_ready() {
    let store = new_database();
    let home = home_of(&store, "");
    let gateway = HttpGateway::start(&home, &[]);
    wait_for_store_check(&gateway, r#"{"name":"store","ok":true}"#).await;
    let is_up = async || {
        let (_, metrics) = gateway.get("/metrics", gateway.token.as_deref()).await;
        metrics.lines().find_map(|line| Some(line.strip_prefix("toolyard_store_up ")?.to_owned()))
    };
    assert_eq!(is_up().await.as_deref(), Some("1"));
    set_available(&store, false);
    wait_for_store_check(&gateway, r#"{"name":"store","ok":false"#).await;
    assert_eq!(is_up().await.as_deref(), Some("0"));
    set_available(&store, true);
    wait_for_store_check(&gateway, r#"{"name":"store","ok":true}"#).await;
}

#[tokio::test]
async fn a_reload_that_waits_for_the_store_says_so() {
    let store = new_database();
    let home = home_of(&store, "");
    let gateway = HttpGateway::start(&home, &[]);
    // As a frozen replica would, in the middle of its commit.
    let hold = "BEGIN; LOCK TABLE audit_head IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(4); COMMIT";
    let mut holder = Command::new("psql").args([&store, "-qAtc", hold]).spawn().unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    gateway.hang_up("reloading settings").await;
    let says = |text: &str| gateway.stderr().contains(text);
    assert!(crate::test_home::wait_until(10_000, || says("settings are not reloaded yet")));
    assert!(!says("settings reloaded"), "{}", gateway.stderr());
    assert!(holder.wait().unwrap().success());
    assert!(crate::test_home::wait_until(10_000, || says("settings reloaded")), "{}", gateway.stderr());
}

#[test]
fn serve_and_doctor_say_what_replicas_need() {
    let store = new_database();
    let bare = home_of(&store, "");
    let token = "each machine generates a token of its own";
    let hosts = "requests that name another host than this machine's addresses are refused";
    let doctor = bare.run(&["doctor"]);
    assert!(doctor.contains(token) && doctor.contains(hosts), "{doctor}");
    let gateway = HttpGateway::start(&bare, &[]);
    assert!(crate::test_home::wait_until(5_000, || gateway.stderr().contains(hosts)), "{}", gateway.stderr());
    assert!(gateway.stderr().contains(token), "{}", gateway.stderr());
    let complete = home_of(&store, "token = \"${SHARED_TOKEN}\"\nallowed_hosts = [\"tools.example.com\"]");
    let mut doctor = complete.command(&["doctor"]);
    let doctor = complete.output_text(&doctor.env("SHARED_TOKEN", TOKEN).output().unwrap());
    assert!(!doctor.contains("replicas"), "{doctor}");
}
