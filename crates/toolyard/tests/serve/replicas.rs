//! Several gateways on one store: they share sessions without a setting, and say what else they need.

use std::process::Command;

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

#[test]
fn serve_and_doctor_say_what_replicas_need() {
    let store = new_database();
    let bare = home_of(&store, "");
    let token = "each machine generates a token of its own";
    let hosts = "requests that name another host than this machine's addresses are refused";
    let doctor = bare.run(&["doctor"]);
    assert!(doctor.contains(token) && doctor.contains(hosts) && !doctor.contains("session_keys"), "{doctor}");
    let gateway = HttpGateway::start(&bare, &[]);
    assert!(crate::test_home::wait_until(5_000, || gateway.stderr().contains(hosts)), "{}", gateway.stderr());
    assert!(gateway.stderr().contains(token), "{}", gateway.stderr());
    let complete = home_of(&store, "token = \"${SHARED_TOKEN}\"\nallowed_hosts = [\"tools.example.com\"]");
    let mut doctor = complete.command(&["doctor"]);
    let doctor = complete.output_text(&doctor.env("SHARED_TOKEN", TOKEN).output().unwrap());
    assert!(!doctor.contains("replicas"), "{doctor}");
}
