//! Synthesis: a model combines the outputs of several equivalent sources.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Instant,
};

use serde_json::json;

use super::Fixture;
use crate::{
    client::HttpGateway,
    model_server::{ModelServer, ReplyFormat},
    test_home::{TestHome, greet_tool},
};

/// How the prompt of a synthesis begins.
const PROMPT: &str = "Several sources answered";
const COMBINED: &str = "Both say hello to Ada.";
/// A simple merge, in the order in which the servers answered.
const MERGED: [&str; 2] =
    ["[east] Hello, Ada!\n\n[west] Hello, Ada!", "[west] Hello, Ada!\n\n[east] Hello, Ada!"];

fn is_merged(text: &str) -> bool {
    MERGED.iter().any(|merged| text.starts_with(merged))
}

/// Adds two trusted servers with the same tool `greet`, whose results are combined.
fn add_equivalent_servers(home: &TestHome, settings: &str) {
    let mut text = settings.to_owned();
    for server in ["east", "west"] {
        home.set_tools(server, &[greet_tool("Greets somebody")]);
        let [program, script, tools] = home.server_command(server);
        writeln!(
            text,
            "\n[servers.{server}]\ncommand = {program:?}\nargs = [{script:?}, {tools:?}]\ntrusted = true"
        )
        .unwrap();
    }
    text += "\n[equivalent]\ngreet = [\"east\", \"west\"]\n";
    home.write("config/toolyard/toolyard.toml", &text);
}

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let file = fixture.home.path("config/toolyard/toolyard.toml");
    add_equivalent_servers(&fixture.home, &std::fs::read_to_string(file).unwrap());
    fixture.model.script_reply(PROMPT, ReplyFormat::Text, COMBINED);
    fixture
}

/// Output and decisions of a call that both servers answer.
fn call_greet(home: &TestHome, args: &[&str]) -> String {
    let call = ["call", "greet", "--args", r#"{"name":"Ada"}"#, "--explain"];
    home.run(&[&call, args].concat())
}

#[test]
fn the_configured_model_combines_the_outputs_of_several_servers() {
    let fixture = fixture();
    let output = call_greet(&fixture.home, &[]);
    assert!(output.starts_with(COMBINED) && output.contains("combined by the model"), "{output}");
    let requests = fixture.model.requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].to_string().contains("Hello, Ada!"), "{}", requests[0]);
    fixture.append_settings("[call]\nsynthesis = \"merge\"\n");
    let output = call_greet(&fixture.home, &[]);
    assert!(is_merged(&output) && output.contains("simple merge: no model"), "{output}");
    assert_eq!(fixture.model.requests().len(), 1, "the model receives nothing");
}

#[test]
fn a_model_that_hangs_or_fails_leads_to_a_simple_merge() {
    // Accepts connections and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let home = TestHome::new();
    let model = format!("http://{}/v1", silent.local_addr().unwrap());
    add_equivalent_servers(&home, &format!("[models.silent]\nurl = \"{model}\"\nmodel = \"m\"\n"));
    let started = Instant::now();
    let output = call_greet(&home, &["--timeout", "4s"]);
    assert!(is_merged(&output) && output.contains("the model was too slow"), "{output}");
    assert!(started.elapsed().as_secs() < 10, "the call keeps its own timeout");
    // No rule of the scripted model fits.
    let fixture = Fixture::new();
    let file = fixture.home.path("config/toolyard/toolyard.toml");
    add_equivalent_servers(&fixture.home, &std::fs::read_to_string(file).unwrap());
    let output = call_greet(&fixture.home, &[]);
    assert!(is_merged(&output) && output.contains("the model failed"), "{output}");
}

#[tokio::test]
async fn a_gateway_asks_the_model_and_follows_the_settings() {
    let fixture = fixture();
    let file = "config/toolyard/toolyard.toml";
    let text = std::fs::read_to_string(fixture.home.path(file)).unwrap();
    fixture.home.write(file, &format!("{text}\n[call]\nsynthesis = \"merge\"\n"));
    let gateway = HttpGateway::start(&fixture.home, &[]);
    let greet =
        || gateway.send_request("", "tools/call", json!({"name": "greet", "arguments": {"name": "Ada"}}));
    gateway.send_request("", "tools/list", json!({})).await;
    let merged = greet().await["result"]["content"][0]["text"].clone();
    assert!(is_merged(merged.as_str().unwrap()), "{merged}");
    fixture.home.write(file, &text);
    gateway.hang_up("settings reloaded").await;
    let answer = greet().await;
    assert_eq!(answer["result"]["content"][0]["text"], COMBINED, "{answer}");
}

#[test]
fn the_outputs_of_an_agents_call_go_to_its_own_model_only() {
    let fixture = fixture();
    let other = ModelServer::start();
    other.script_reply(PROMPT, ReplyFormat::Text, "Combined elsewhere.");
    let file = "config/toolyard/toolyard.toml";
    let text = std::fs::read_to_string(fixture.home.path(file)).unwrap();
    let models = format!(
        "default_model = \"other\"\n{text}\n[models.other]\nurl = \"{}\"\nmodel = \"m\"\n[agents.clerk]\nmodel = \"local\"\n",
        other.address()
    );
    fixture.home.write(file, &models);
    let steps = json!([{"id": "hello", "tool_type": "greet", "arguments": {"name": "Ada"}}]);
    fixture.model.script_plan("greet her", &steps);
    fixture.model.script_answer("greet her", "Both say hello.");
    let output = fixture.run(&["ask", "--agent", "clerk", "greet her"]);
    assert!(output.starts_with("Both say hello.") && output.contains(COMBINED), "{output}");
    assert!(other.requests().is_empty(), "the default model receives nothing of the agent's");
}

/// The smallest real model, served as long as this exists.
struct SmallModel {
    server: Option<Child>,
    url: String,
    name: String,
}

impl SmallModel {
    /// Uses the model that CI started, or starts one.
    fn start() -> Self {
        let (server, line) = match std::env::var("TOOLYARD_LOCAL_MODEL") {
            Ok(line) => (None, line),
            Err(_) => {
                let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/local-model");
                let mut command = Command::new(script);
                let mut server = command.args(["smol", "0", "1"]).stdout(Stdio::piped()).spawn().unwrap();
                let mut line = String::new();
                BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
                (Some(server), line)
            }
        };
        let (url, name) = line.trim().split_once(' ').unwrap_or_else(|| panic!("{line:?}"));
        Self { server, url: url.to_owned(), name: name.to_owned() }
    }
}

impl Drop for SmallModel {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

#[test]
fn a_real_small_model_combines_the_outputs_of_two_servers() {
    let model = SmallModel::start();
    let home = TestHome::new();
    let settings = format!("[models.small]\nurl = \"{}\"\nmodel = \"{}\"\n", model.url, model.name);
    add_equivalent_servers(&home, &settings);
    // On a busy machine the model may need more than its 10 seconds.
    let mut outputs = (0..4).map(|_| call_greet(&home, &["--timeout", "60s"]));
    let combined = outputs.find(|output| output.contains("combined by the model")).unwrap();
    assert!(!combined.starts_with("[east]") && !combined.starts_with("--- stderr"), "{combined}");
}
