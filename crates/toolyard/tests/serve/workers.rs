//! `toolyard worker` serves the tools of its settings to a gateway, over a real NATS, with a real PostgreSQL.

use std::{
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    client::{HttpGateway, modern_params, send, tool_names},
    replicas::new_database,
    test_home::{TestHome, greet_tool, named_tool, wait_until},
};

/// A NATS server that ends with this value.
pub(crate) struct NatsServer {
    port: u16,
    child: Child,
}

impl NatsServer {
    pub(crate) fn start() -> Self {
        let cache = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache");
        let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(cache, PathBuf::from);
        let parts =
            std::env::var_os("TOOLYARD_PARTS").map_or_else(|| cache.join("toolyard-parts"), PathBuf::from);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(parts.join("nats/bin/nats-server"))
            .args(["-a", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(wait_until(10_000, || TcpStream::connect(("127.0.0.1", port)).is_ok()));
        Self { port, child }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends it before this value.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running worker.
pub(crate) struct WorkerProcess(Child);

impl WorkerProcess {
    pub(crate) fn start(home: &TestHome, nats: &NatsServer) -> Self {
        let log = std::fs::File::create(home.path("worker.log")).unwrap();
        let mut command = home.command(&["worker", "office", "--nats", &nats.url(), "--concurrency", "4"]);
        Self(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }

    /// Sends SIGTERM. Returns whether it ended as it should.
    pub(crate) fn stop(mut self) -> bool {
        let pid = rustix::process::Pid::from_raw(self.0.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.0.wait().unwrap().success()
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn gateway_settings(nats: &NatsServer) -> String {
    format!(
        "store = \"{}\"\n[cluster]\nnats = \"{}\"\nworkers = [\"off*\"]\n[serve]\ndrain = \"0s\"\n",
        new_database(),
        nats.url()
    )
}

async fn greet(gateway: &HttpGateway) -> Value {
    let call = json!({"name": "greet", "arguments": {"name": "Ada"}});
    send(gateway.build_request("", "tools/call", &modern_params(call))).await.body
}

fn is_success(answer: &Value) -> bool {
    answer["result"]["content"][0]["text"].is_string() && answer["result"]["isError"] != json!(true)
}

async fn until_greeted(gateway: &HttpGateway, home: &TestHome) {
    let mut last = Value::Null;
    for _ in 0..200 {
        last = greet(gateway).await;
        if is_success(&last) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = std::fs::read_to_string(home.path("worker.log")).unwrap_or_default();
    panic!("{last}\nworker: {log}\ngateway: {}", gateway.stderr());
}

#[tokio::test]
async fn a_gateway_serves_the_approved_tools_of_a_worker() {
    let nats = NatsServer::start();
    let machine = TestHome::new();
    machine.add_server("fake", &[]);
    let office = TestHome::new();
    office.write("config/toolyard/toolyard.toml", &gateway_settings(&nats));
    let gateway = HttpGateway::start(&office, &["--surface", "full"]);
    let worker = WorkerProcess::start(&machine, &nats);
    until_greeted(&gateway, &machine).await;
    let list = gateway.send_request("", "tools/list", json!({})).await;
    assert!(tool_names(&list).contains(&"greet"), "{list}");
    assert_eq!(list.to_string().matches("calculate").count(), 1, "only the gateway's own: {list}");
    assert_eq!(machine.calls("fake"), ["greet"]);
    let servers = office.run(&["servers", "list"]);
    assert!(servers.contains("worker:office") && servers.contains("workers over NATS"), "{servers}");

    // SIGTERM ends the worker. Its tools stay, as those of a server that is down.
    assert!(worker.stop(), "{}", std::fs::read_to_string(machine.path("worker.log")).unwrap());
    machine.assert_stopped("fake");
    let answer = greet(&gateway).await.to_string();
    assert!(answer.contains("no process of worker group `office`"), "{answer}");

    // A changed definition is not called until it is approved, although it is approved where the worker runs.
    machine.set_tools("fake", &[greet_tool("Greets somebody and tells everybody")]);
    let approved = machine.run(&["servers", "approve", "fake", "--yes"]);
    assert!(approved.contains("approved greet"), "{approved}");
    let _worker = WorkerProcess::start(&machine, &nats);
    let held = || office.run(&["servers", "show", "office"]);
    assert!(wait_until(10_000, || held().contains("the definition changed")), "{}", held());
    let answer = greet(&gateway).await;
    assert!(!is_success(&answer), "{answer}");
    assert_eq!(machine.calls("fake").len(), 1, "{answer}");
    let approved = office.run(&["servers", "approve", "office", "--yes"]);
    assert!(approved.contains("approved greet") && approved.contains("tells everybody"), "{approved}");
    until_greeted(&gateway, &machine).await;
    assert_eq!(machine.calls("fake").len(), 2);
}

#[tokio::test]
async fn a_call_of_a_worker_that_is_killed_is_not_repeated() {
    let nats = NatsServer::start();
    let machine = TestHome::new();
    machine.add_server("fake", &[]);
    machine.set_tools("fake", &[named_tool("sleep_long")]);
    let office = TestHome::new();
    office.write("config/toolyard/toolyard.toml", &gateway_settings(&nats));
    let gateway = HttpGateway::start(&office, &["--surface", "full"]);
    let mut killed = WorkerProcess::start(&machine, &nats);
    let listed = async || {
        let list = gateway.send_request("", "tools/list", json!({})).await;
        tool_names(&list).contains(&"sleep_long")
    };
    for _ in 0..200 {
        if listed().await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let call = json!({"name": "sleep_long", "arguments": {}});
    let call = tokio::spawn(send(gateway.build_request("", "tools/call", &modern_params(call))));
    while machine.calls("fake").is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let other = TestHome::new();
    other.add_server("fake", &[]);
    other.set_tools("fake", &[named_tool("sleep_long")]);
    let _other = WorkerProcess::start(&other, &nats);
    assert!(wait_until(10_000, || std::fs::read_to_string(other.path("worker.log"))
        .unwrap()
        .contains("serves")));
    killed.0.kill().unwrap();
    let answer = call.await.unwrap().body.to_string();
    assert!(answer.contains("may have taken effect"), "{answer}");
    assert_eq!((machine.calls("fake").len(), other.calls("fake").len()), (1, 0));
}

#[test]
fn a_worker_whose_server_recovers_prints_the_new_number_of_its_tools() {
    let nats = NatsServer::start();
    let machine = TestHome::new();
    machine.set_tools("fake", &[greet_tool("Greets somebody")]);
    // Not with a command, which could start the server and keep its tools.
    let [script, tools] = ["server.py", "fake.json"].map(|name| machine.path(name).display().to_string());
    let settings = format!("[servers.fake]\ncommand = \"python3\"\nargs = [{script:?}, {tools:?}]\n");
    machine.write("config/toolyard/toolyard.toml", &settings);
    let program = std::fs::read_to_string(machine.path("server.py")).unwrap();
    machine.write("server.py", "import sys\nsys.exit('out of memory')\n");
    let _worker = WorkerProcess::start(&machine, &nats);
    let says =
        |text: &str| std::fs::read_to_string(machine.path("worker.log")).is_ok_and(|log| log.contains(text));
    assert!(wait_until(20_000, || says("serves 0 tools")));
    machine.write("server.py", &program);
    assert!(wait_until(60_000, || says("this worker serves 1 tool now")));
}

#[test]
fn a_worker_says_what_is_missing() {
    let home = TestHome::new();
    let nowhere = home.run(&["worker", "office"]);
    assert!(
        nowhere.contains("needs the address of NATS") && nowhere.contains("hint: pass --nats"),
        "{nowhere}"
    );
    let name = home.run(&["worker", "my office", "--nats", "nats://127.0.0.1:1"]);
    assert!(name.contains("cannot be the name of a group") && name.contains("hint: "), "{name}");
    let unreachable = home.run(&["worker", "office", "--nats", "nats://127.0.0.1:1"]);
    assert!(
        unreachable.contains("cannot reach NATS at nats://127.0.0.1:1") && unreachable.contains("hint: "),
        "{unreachable}"
    );
    let help = home.run(&["worker", "--help"]);
    assert!(help.contains("workers = [\"office\"]") && help.contains("--concurrency"), "{help}");
}
