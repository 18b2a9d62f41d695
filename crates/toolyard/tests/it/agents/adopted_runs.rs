//! Two gateways on one PostgreSQL: one is killed or stopped, the other finishes its runs; and a store that is away.

use std::{
    collections::BTreeMap,
    io::{Read, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Fixture, runs_api::RunsApi};
use crate::{client::HttpGateway, test_home::TestHome};

const TOKEN: &str = "a-token-of-more-than-thirty-two-characters";
const LEASE: Duration = Duration::from_secs(2);
/// How much later than the end of its lease a run is taken over.
const ADOPTION_TIME: Duration = Duration::from_secs(5);
const LABELS: [&str; 4] = ["alpha", "beta", "gamma", "delta"];
const LINES: usize = 5;

/// A new database on the PostgreSQL server for tests.
fn new_database() -> String {
    let server = std::env::var("TOOLYARD_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("no PostgreSQL: run the tests with `just test` or `scripts/with-postgres`")
    });
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let name = format!("a_{}_{since}", std::process::id());
    let create = format!("CREATE DATABASE {name}");
    let created = Command::new("psql").args([&format!("{server}/postgres"), "-qc", &create]).status();
    assert!(created.unwrap().success());
    format!("{server}/{name}")
}

/// Two homes with the same settings, and a ledger to which the tool of both writes.
struct Replicas {
    fixture: Fixture,
    other: TestHome,
}

impl Replicas {
    fn new(store: &str) -> Self {
        let fixture = Fixture::new();
        let ledger = fixture.home.path("ledger.txt");
        // If Toolyard is killed before it writes the program's input, the input is empty, and no line is written.
        let body = format!(
            "line=$(cat); sleep 0.2; [ -n \"$line\" ] && echo \"$line\" >> '{}'; echo '{{\"written\":true}}'",
            ledger.display()
        );
        fixture.add_program("write_line", &body);
        let settings = fixture.home.path("config/toolyard/toolyard.toml");
        let text = std::fs::read_to_string(&settings).unwrap();
        // A gateway that drains would finish some of its runs itself.
        let serve = "[serve]\ntoken = \"${SHARED_TOKEN}\"\nrun_lease = \"2s\"\nremote_approval = true\ndrain = \"0s\"\n";
        let text = format!("store = \"{store}\"\n{text}\n[approvals]\nallow = [\"write_line\"]\n{serve}");
        std::fs::write(&settings, text).unwrap();
        for label in LABELS {
            let step = |at: usize| {
                let dependencies = at.checked_sub(1).map(|before| format!("s{before}"));
                json!({"id": format!("s{at}"), "tool_type": "write_line", "arguments": {"text": format!("{label} {at}")},
                       "dependencies": dependencies.into_iter().collect::<Vec<_>>()})
            };
            fixture.model.script_plan(&question(label), &(0..LINES).map(step).collect());
            fixture.model.script_answer(&question(label), "All are written.");
        }
        let other = TestHome::new();
        let copied = Command::new("cp")
            .args(["-a", fixture.home.path("config").to_str().unwrap(), other.path("").to_str().unwrap()])
            .status();
        assert!(copied.unwrap().success());
        Self { fixture, other }
    }

    fn serve(home: &TestHome) -> RunsApi {
        let mut command = home.command(&["serve", "--http", "127.0.0.1:0"]);
        command.env("SHARED_TOKEN", TOKEN);
        let mut gateway = HttpGateway::spawn(home, command);
        gateway.token = Some(TOKEN.to_owned());
        RunsApi(gateway)
    }

    /// How often each line was written.
    fn ledger(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.fixture.home.path("ledger.txt")).unwrap_or_default();
        let mut lines = BTreeMap::new();
        for line in text.lines() {
            let arguments: Value = serde_json::from_str(line).unwrap();
            *lines.entry(arguments["text"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        lines
    }

    async fn start_runs(gateway: &RunsApi) -> Vec<String> {
        let mut runs = Vec::new();
        for label in LABELS {
            let (status, created) = gateway.post("/runs", &json!({"question": question(label)})).await;
            assert_eq!(status, 202, "{created}");
            runs.push(created["run"].as_str().unwrap().to_owned());
        }
        runs
    }

    async fn wait_for_lines(&self, count: usize) {
        for _ in 0..1_000 {
            if self.ledger().len() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{:?}", self.ledger());
    }

    /// Waits until the gateway continues each of the runs, or they ended or wait for a user. No other gateway may drive them.
    async fn assert_adopted(runs: &[String], gateway: &RunsApi, deadline: Instant) {
        let mut last_events = Vec::new();
        for run in runs {
            last_events.push(gateway.get(&format!("/runs/{run}")).await.1["last_event"].as_i64());
        }
        for (run, last_event) in runs.iter().zip(last_events) {
            loop {
                let (_, shown) = gateway.get(&format!("/runs/{run}")).await;
                if shown["last_event"].as_i64() > last_event || shown["state"] != "running" {
                    break;
                }
                assert!(Instant::now() < deadline, "not taken over in time: {shown}\n{}", gateway.0.stderr());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Waits until all runs are done; unknown outcomes are resolved over HTTP by looking at the ledger. Returns how many there
    /// were.
    async fn finish(&self, runs: &[String], gateway: &RunsApi) -> usize {
        let mut resolved = 0;
        for run in runs {
            let is_at_rest = |shown: &Value| shown["state"] != "running";
            loop {
                let shown = gateway.wait_for(run, is_at_rest).await;
                if shown["state"] != "suspended" {
                    assert_eq!(shown["answer"], "All are written.", "{shown}");
                    break;
                }
                for step in shown["unknown_steps"].as_array().unwrap() {
                    let was_written = self.ledger().contains_key(step["arguments"]["text"].as_str().unwrap());
                    let outcome = if was_written { "done" } else { "not_done" };
                    let body = json!({"run": run, "step": step["step"], "outcome": outcome});
                    let (status, answer) = gateway.post("/api/v1/unknown-steps", &body).await;
                    assert_eq!(status, 202, "{answer}");
                    resolved += 1;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        let ledger = self.ledger();
        assert_eq!(ledger.len(), LABELS.len() * LINES, "lines are missing: {ledger:?}");
        assert!(ledger.values().all(|times| *times == 1), "lines were written twice: {ledger:?}");
        resolved
    }
}

fn question(label: &str) -> String {
    format!("write the lines of {label}.")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_surviving_gateway_finishes_the_runs_of_a_killed_one_without_repeating_a_call() {
    let replicas = Replicas::new(&new_database());
    let first = Replicas::serve(&replicas.fixture.home);
    let second = Replicas::serve(&replicas.other);
    let runs = Replicas::start_runs(&first).await;
    replicas.wait_for_lines(LABELS.len() + 1).await;
    // SIGKILL.
    drop(first);
    let killed = Instant::now();
    Replicas::assert_adopted(&runs, &second, killed + LEASE + ADOPTION_TIME).await;
    let adopted = killed.elapsed();
    // Every call that was in flight is listed, now that all leases are over.
    let (_, unknown) = second.get("/api/v1/unknown-steps").await;
    let listed = replicas.other.run(&["runs", "unknown"]);
    for step in unknown["steps"].as_array().unwrap() {
        assert!(listed.contains(step["run"].as_str().unwrap()), "{listed}");
    }
    let resolved = replicas.finish(&runs, &second).await;
    assert!(second.0.stderr().contains("resumed "), "{}", second.0.stderr());
    println!("taken over {adopted:?} after the kill, {resolved} unknown outcomes resolved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_surviving_gateway_finishes_the_runs_of_a_stopped_one() {
    let replicas = Replicas::new(&new_database());
    let mut first = Replicas::serve(&replicas.fixture.home);
    let second = Replicas::serve(&replicas.other);
    let runs = Replicas::start_runs(&first).await;
    replicas.wait_for_lines(LABELS.len() + 1).await;
    first.0.terminate();
    assert!(tokio::task::block_in_place(|| first.0.wait()), "{}", first.0.stderr());
    let stopped = Instant::now();
    Replicas::assert_adopted(&runs, &second, stopped + ADOPTION_TIME).await;
    let adopted = stopped.elapsed();
    assert_eq!(replicas.finish(&runs, &second).await, 0, "a stop leaves no unknown outcome");
    println!("taken over {adopted:?} after the process ended");
}

/// Forwards connections to PostgreSQL, except while it is paused.
struct PausableProxy {
    address: String,
    is_paused: Arc<AtomicBool>,
}

impl PausableProxy {
    fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let is_paused = Arc::new(AtomicBool::new(false));
        let (server, paused) = (server.to_owned(), Arc::clone(&is_paused));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let upstream = TcpStream::connect(&server).unwrap();
                for (from, to) in [(&client, &upstream), (&upstream, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let paused = Arc::clone(&paused);
                    std::thread::spawn(move || forward(from, to, &paused));
                }
            }
        });
        Self { address, is_paused }
    }

    fn pause(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::SeqCst);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, is_paused: &AtomicBool) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        while is_paused.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // The other side may be gone.
    let _ = to.shutdown(Shutdown::Both);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_refused_while_the_store_is_away_never_runs_later() {
    let database = new_database();
    let server = database.split(['@', '/']).nth(3).unwrap();
    let proxy = PausableProxy::start(server);
    let replicas = Replicas::new(&database.replace(server, &proxy.address));
    let gateway = Replicas::serve(&replicas.fixture.home);
    let start = |key: Option<&'static str>| {
        let body = json!({"question": question("alpha")});
        let request = gateway.0.http.post(gateway.url("/runs")).bearer_auth(TOKEN).json(&body);
        let request = request.timeout(Duration::from_secs(20));
        key.map_or_else(
            || request.try_clone().unwrap(),
            |key| request.try_clone().unwrap().header("Idempotency-Key", key),
        )
    };
    proxy.pause(true);
    for key in [None, Some("k"), None] {
        let asked = Instant::now();
        let response = start(key).send().await.unwrap();
        assert!(asked.elapsed() < Duration::from_secs(4), "answered after {:?}", asked.elapsed());
        assert_eq!((response.status().as_u16(), response.headers().contains_key("retry-after")), (503, true));
        let error: Value = response.json().await.unwrap();
        assert_eq!(error["error"]["code"], "store_unavailable", "{error}");
    }
    proxy.pause(false);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(replicas.ledger().is_empty(), "a refused run was started: {:?}", replicas.ledger());
    // The client repeats its request until it is accepted; one run results.
    let mut runs = Vec::new();
    for _ in 0..100 {
        let response = start(Some("k")).send().await.unwrap();
        let status = response.status().as_u16();
        let answer: Value = response.json().await.unwrap();
        if status == 202 {
            runs.push(answer["run"].as_str().unwrap().to_owned());
        }
        if runs.len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0], runs[1], "the same key starts one run");
    gateway.wait_for(&runs[0], |shown| shown["state"] == "answered").await;
    let ledger = replicas.ledger();
    assert!(ledger.len() == LINES && ledger.values().all(|times| *times == 1), "{ledger:?}");
    let requests = replicas.fixture.model.requests().len();
    assert_eq!(requests, 2, "one plan and one answer");
}
