//! Stopping a gateway while agents work, and starting the next one.

use serde_json::json;

use super::{Fixture, runs_api::RunsApi};
use crate::client::HttpGateway;

/// Waits until the slow call of the plan has started.
async fn wait_for_call(fixture: &Fixture) {
    let call_started = fixture.home.path("call_started");
    while !call_started.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn script_two_allowed_notes(fixture: &Fixture) {
    fixture.script_two_notes();
    fixture.append_settings("[approvals]\nallow = [\"*_note\"]\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_gateway_releases_its_runs_and_the_next_one_resumes_them() {
    let fixture = Fixture::new();
    script_two_allowed_notes(&fixture);
    let mut gateway = RunsApi(HttpGateway::start(&fixture.home, &[]));
    let (_, answer) = gateway.post("/runs", &json!({"question": "two notes"})).await;
    let run = answer["run"].as_str().unwrap().to_owned();
    wait_for_call(&fixture).await;
    gateway.0.terminate();
    assert!(tokio::task::block_in_place(|| gateway.0.wait()), "{}", gateway.0.stderr());
    assert_eq!(
        fixture.notes(),
        [r#"{"text":"one"}"#],
        "the call in flight has finished, and no other has started"
    );
    let unknown = fixture.run(&["runs", "unknown"]);
    assert!(unknown.contains("No steps with an unknown outcome"), "{unknown}");
    let list = fixture.run(&["runs", "list"]);
    assert!(list.contains("RUN unfinished DATE two notes"), "the run was released at once: {list}");
    assert!(list.contains("1 interrupted run") && list.contains("toolyard runs resume"), "{list}");

    let gateway = RunsApi(HttpGateway::start(&fixture.home, &[]));
    let run_status = gateway.wait_for(&run, |run_status| run_status["state"] == "answered").await;
    assert_eq!(run_status["answer"], "Both are written.", "{run_status}");
    assert_eq!(fixture.notes(), [r#"{"text":"one"}"#, r#"{"text":"two"}"#], "each once");
    assert!(gateway.0.stderr().contains("resumed 1 run"), "{}", gateway.0.stderr());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_reports_but_does_not_resume_a_run_of_the_command_line() {
    let fixture = Fixture::new();
    script_two_allowed_notes(&fixture);
    let mut ask_process =
        fixture.home.command(&["ask", "two notes"]).stderr(std::process::Stdio::null()).spawn().unwrap();
    wait_for_call(&fixture).await;
    ask_process.kill().unwrap();
    ask_process.wait().unwrap();
    // Wait until the lease of the killed command has expired.
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    let gateway = HttpGateway::start(&fixture.home, &[]);
    for _ in 0..200 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        if gateway.stderr().contains("1 interrupted run") {
            return;
        }
    }
    panic!("{}", gateway.stderr());
}
