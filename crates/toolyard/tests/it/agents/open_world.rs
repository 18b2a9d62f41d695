//! What an agent read on this machine does not reach a search engine without an approval.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::json;

use super::Fixture;

const CANARY: &str = "CANARY7Q4X9Z";

/// A search engine that finds nothing and remembers the requests.
fn start_search_engine(fixture: &Fixture) -> Arc<Mutex<Vec<String>>> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    fixture.append_settings(&format!("[web_search]\nengine = \"searxng\"\nurl = \"http://{address}\"\n"));
    let queries: Arc<Mutex<Vec<String>>> = Arc::default();
    let received = Arc::clone(&queries);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            received.lock().push(lines.next().unwrap_or_default());
            lines.find(String::is_empty);
            let body = r#"{"results":[]}"#;
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    queries
}

/// A tool that reads something private, and a plan that searches the web for it.
fn script_leak(fixture: &Fixture) {
    fixture.add_program("read_diary", &format!("echo '{{\"note\":\"{CANARY}\"}}'"));
    fixture.model.script_plan(
        "my diary",
        &json!([
            {"id": "read", "tool_type": "read_diary", "arguments": {"text": "today"}},
            {"id": "find", "tool_type": "search_web", "arguments": {"query": "$read.note"}},
        ]),
    );
    fixture.model.script_answer("my diary", "Found nothing.");
    fixture.model.script_plan(
        "weather",
        &json!([
            {"id": "read", "tool_type": "read_diary", "arguments": {"text": "today"}},
            {"id": "find", "tool_type": "search_web", "arguments": {"query": "weather Rome"}},
        ]),
    );
    fixture.model.script_answer("weather", "Found nothing.");
}

#[test]
fn private_data_reaches_the_search_engine_only_with_an_approval_or_a_rule() {
    let fixture = Fixture::new();
    let queries = start_search_engine(&fixture);
    script_leak(&fixture);
    fixture.append_settings("[approvals]\nallow = [\"read_diary\"]\n");
    let sent = || queries.lock().iter().filter(|query| query.contains(CANARY)).count();

    let output = fixture.run(&["ask", "my diary"]);
    assert!(output.contains("until you approve: search_web") && output.ends_with("--- exit 6"), "{output}");
    assert_eq!(sent(), 0);
    let shown = fixture.run(&["runs", "show", "last"]);
    for expected in
        ["find needs approval (read-only, open world)", CANARY, "non-public data (skill:notebook)"]
    {
        assert!(shown.contains(expected), "{shown}");
    }
    fixture.run(&["runs", "deny", "last"]);
    assert_eq!(sent(), 0);

    // What the user asks for needs no approval, although something private is read as well.
    let output = fixture.run(&["ask", "weather in Rome?"]);
    assert!(output.contains("Found nothing.") && queries.lock().len() == 1, "{output}");

    fixture.run(&["ask", "my diary"]);
    fixture.run(&["runs", "approve", "last", "--yes"]);
    assert_eq!(sent(), 1, "approved");
    for (rule, expected) in [
        ("allow = [\"read_diary\", \"search_web@native\"]", 2),
        ("open_world = \"allow\"\nallow = [\"read_diary\"]", 3),
    ] {
        let file = fixture.home.path("config/toolyard/toolyard.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let (before, _) = text.split_once("[approvals]").unwrap();
        std::fs::write(&file, format!("{before}[approvals]\n{rule}\n")).unwrap();
        let output = fixture.run(&["ask", "my diary"]);
        assert_eq!(sent(), expected, "{rule}: {output}");
    }
}
