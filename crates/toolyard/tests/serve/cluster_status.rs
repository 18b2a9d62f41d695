//! `/api/v1/cluster`, `/metrics` and the console show the gateways and workers of a cluster, over a real NATS and PostgreSQL.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    client::HttpGateway,
    replicas::new_database,
    test_home::{TestHome, greet_tool, named_tool},
    workers::{NatsServer, WorkerProcess},
};

const TOKEN: &str = "a-token-of-more-than-thirty-two-characters";

/// A gateway with a stateful server, and the tools of workers.
fn start_gateway(store: &str, nats: &NatsServer, shared: &TestHome) -> (TestHome, HttpGateway) {
    let home = TestHome::new();
    let [program, script, tools] = shared.server_command("notes");
    let settings = format!(
        "store = \"{store}\"\n[cluster]\nnats = \"{}\"\nworkers = [\"office\"]\n[serve]\ntoken = \"${{SHARED_TOKEN}}\"\ndrain = \"0s\"\n\
         [servers.notes]\ncommand = \"{program}\"\nargs = [\"{script}\", \"{tools}\"]\n",
        nats.url()
    );
    home.write("config/toolyard/toolyard.toml", &settings);
    let mut command = home.command(&["serve", "--http", "127.0.0.1:0", "--surface", "full"]);
    command.env("SHARED_TOKEN", TOKEN);
    let mut gateway = HttpGateway::spawn(&home, command);
    gateway.token = Some(TOKEN.to_owned());
    (home, gateway)
}

async fn cluster(gateway: &HttpGateway) -> Value {
    let (status, text) = gateway.get("/api/v1/cluster", Some(TOKEN)).await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Waits until the cluster looks like this.
async fn until(gateway: &HttpGateway, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
    let start = Instant::now();
    loop {
        let report = cluster(gateway).await;
        if condition(&report) {
            return report;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "{what}: {report:#}\n{}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn gateway_states(report: &Value) -> Vec<&str> {
    let gateways = report["gateways"].as_array().unwrap();
    let mut states: Vec<&str> = gateways.iter().map(|gateway| gateway["state"].as_str().unwrap()).collect();
    states.sort_unstable();
    states
}

async fn call(gateway: &HttpGateway, tool: &str) -> (u16, Value) {
    let url = gateway.url.replace("/mcp", &format!("/api/v1/tools/{tool}/call"));
    let response = gateway.http.post(url).bearer_auth(TOKEN).json(&json!({})).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn until_known(gateway: &HttpGateway, tool: &str) {
    let start = Instant::now();
    while gateway.get(&format!("/api/v1/tools/{tool}"), Some(TOKEN)).await.0 != 200 {
        assert!(start.elapsed() < Duration::from_secs(30), "{tool}: {}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The value of a metric.
async fn metric(gateway: &HttpGateway, name: &str) -> u64 {
    let (status, text) = gateway.get("/metrics", Some(TOKEN)).await;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    assert_eq!(status, 200);
    line.unwrap_or_else(|| panic!("{name} is not in {text}")).parse().unwrap()
}

/// A page of the console, as a signed-in operator sees it.
async fn console_page(gateway: &HttpGateway, path: &str) -> String {
    let url = gateway.url.trim_end_matches("/mcp");
    let sign_in = gateway
        .http
        .post(format!("{url}/console/sign-in"))
        .header("Content-Type", "application/x-www-form-urlencoded");
    let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let signed_in = browser.execute(sign_in.body(format!("token={TOKEN}")).build().unwrap()).await.unwrap();
    let cookie = signed_in.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let page = browser.get(format!("{url}{path}")).header("Cookie", cookie).send().await.unwrap();
    page.text().await.unwrap()
}

#[tokio::test]
async fn the_gateways_workers_and_sessions_of_a_cluster_are_shown() {
    let (mut nats, store) = (NatsServer::start(), new_database());
    let machine = TestHome::new();
    machine.add_server("fake", &[]);
    let worker = WorkerProcess::start(&machine, &nats);
    let shared = TestHome::new();
    shared.set_tools("notes", &[named_tool("note")]);
    let (_home, one) = start_gateway(&store, &nats, &shared);
    let (_other_home, two) = start_gateway(&store, &nats, &shared);
    let report = until(&one, "two gateways and a worker", |report| {
        gateway_states(report) == ["seen", "seen"] && report["workers"][0]["tools"] == 1
    })
    .await;
    assert_eq!(report["nats_connected"], true);
    let this: Vec<&Value> =
        report["gateways"].as_array().unwrap().iter().filter(|gateway| gateway["is_this"] == true).collect();
    let [this] = this.as_slice() else { panic!("{report:#}") };
    assert!(this["name"].as_str().unwrap().ends_with(&format!(":{}", one.pid().as_raw_nonzero())), "{this}");
    assert_eq!(this["version"], env!("CARGO_PKG_VERSION"));
    let group = &report["workers"][0];
    assert_eq!((&group["name"], &group["source"]), (&json!("office"), &json!("worker:office")));
    assert_eq!((&group["state"], &group["trusted"]), (&json!("available"), &json!(false)));
    assert_eq!(group["awaiting_approval"], json!([]));
    let process = &group["processes"][0];
    assert_eq!((&process["state"], &process["concurrency"]), (&json!("seen"), &json!(4)), "{process}");
    assert_eq!((&process["running_calls"], &process["tools"]), (&json!(0), &json!(1)), "{process}");
    assert!(process["name"].is_string(), "{process}");

    // One of the gateways owns the session with the stateful server, and the other forwards calls to it.
    for gateway in [&one, &two] {
        until_known(gateway, "note").await;
    }
    for gateway in [&one, &two, &one, &two] {
        let (status, result) = call(gateway, "note").await;
        assert_eq!(status, 200, "{result}");
    }
    let report = cluster(&one).await;
    let sessions = report["sessions"].as_array().unwrap();
    assert_eq!(
        (sessions.len(), &sessions[0]["server"], &sessions[0]["sessions"]),
        (1, &json!("notes"), &json!(1))
    );
    let owns = sessions[0]["gateway"] == this["process"];
    let (owner, forwarder) = if owns { (&one, &two) } else { (&two, &one) };
    let forwarded = "toolyard_cluster_forwarded_calls_total{outcome=\"success\"}";
    assert_eq!((metric(forwarder, forwarded).await, metric(owner, forwarded).await), (2, 0));
    let owned = "toolyard_cluster_sessions_owned";
    assert_eq!((metric(owner, owned).await, metric(forwarder, owned).await), (1, 0));
    assert_eq!(metric(owner, "toolyard_cluster_session_takeovers_total").await, 0);
    assert_eq!(call(&one, "greet").await.0, 200);
    assert_eq!(metric(&one, "toolyard_cluster_worker_calls_total{outcome=\"success\"}").await, 1);
    assert_eq!(metric(&one, "toolyard_cluster_nats_connected").await, 1);
    assert_eq!(metric(&one, "toolyard_cluster_gateways").await, 2);
    assert_eq!(metric(&one, "toolyard_cluster_workers").await, 1);

    // The console shows the same.
    let page = console_page(&one, "/console/cluster").await;
    assert!(page.contains("office") && page.contains(this["process"].as_str().unwrap()), "{page}");

    let _worker = show_changed_worker(&one, worker, &machine, &nats).await;
    let (owner, survivor) = if owns { (one, two) } else { (two, one) };
    drop(owner);
    show_losses(&survivor, &mut nats).await;
}

/// The owner of the session was killed, and this gateway takes the session over; then NATS goes away.
async fn show_losses(survivor: &HttpGateway, nats: &mut NatsServer) {
    until(survivor, "a gateway was killed", |report| gateway_states(report) == ["lost", "seen"]).await;
    assert_eq!(metric(survivor, "toolyard_cluster_gateways").await, 1);
    let start = Instant::now();
    while call(survivor, "note").await.0 != 200 {
        assert!(start.elapsed() < Duration::from_secs(60), "{}", survivor.stderr());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(metric(survivor, "toolyard_cluster_session_takeovers_total").await, 1);
    nats.kill();
    until(survivor, "NATS is away", |report| report["nats_connected"] == false).await;
    assert_eq!(metric(survivor, "toolyard_cluster_nats_connected").await, 0);
}

/// A group whose worker was stopped has no process; one that is started with another definition awaits approval.
async fn show_changed_worker(
    gateway: &HttpGateway,
    worker: WorkerProcess,
    machine: &TestHome,
    nats: &NatsServer,
) -> WorkerProcess {
    assert!(worker.stop());
    machine.set_tools("fake", &[greet_tool("Greets somebody and tells everybody")]);
    machine.run(&["servers", "approve", "fake", "--yes"]);
    until(gateway, "the worker has left", |report| report["workers"][0]["state"] == "no_process").await;
    assert_eq!(metric(gateway, "toolyard_cluster_workers").await, 0);
    let worker = WorkerProcess::start(machine, nats);
    let held = until(gateway, "the changed definition is held", |report| {
        report["workers"][0]["awaiting_approval"][0]["tool"] == "greet"
    })
    .await;
    assert_eq!(
        (&held["workers"][0]["state"], &held["workers"][0]["tools"]),
        (&json!("available"), &json!(0))
    );
    worker
}
