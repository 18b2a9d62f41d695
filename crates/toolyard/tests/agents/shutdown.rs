//! Stopping a hub while agents work, and starting the next one.

use serde_json::json;

use crate::{Fixture, client::HttpGateway, runs_api::Runs};

async fn begun(fixture: &Fixture) {
    let begun = fixture.home.path("begun");
    while !begun.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn two_notes(fixture: &Fixture) {
    fixture.plans_two_notes();
    fixture.set("[approvals]\nallow = [\"*_note\"]\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_hub_releases_its_runs_and_the_next_one_resumes_them() {
    let fixture = Fixture::new();
    two_notes(&fixture);
    let mut hub = Runs(HttpGateway::start(&fixture.home, &[]));
    let (_, answer) = hub.post("/runs", &json!({"question": "two notes"})).await;
    let run = answer["run"].as_str().unwrap().to_owned();
    begun(&fixture).await;
    hub.0.terminate();
    assert!(tokio::task::block_in_place(|| hub.0.wait()), "{}", hub.0.stderr());
    assert_eq!(
        fixture.notes(),
        [r#"{"text":"one"}"#],
        "the call that was under way has ended, and none was begun"
    );
    let unknown = fixture.run(&["runs", "unknown"]);
    assert!(unknown.contains("No steps with an unknown outcome"), "{unknown}");
    let list = fixture.run(&["runs", "list"]);
    assert!(list.contains("RUN unfinished DATE two notes"), "free at once: {list}");
    assert!(list.contains("1 interrupted run") && list.contains("toolyard runs resume"), "{list}");

    let hub = Runs(HttpGateway::start(&fixture.home, &[]));
    let facts = hub.until(&run, |facts| facts["state"] == "done").await;
    assert_eq!(facts["end"]["answer"], "Both are written.", "{facts}");
    assert_eq!(fixture.notes(), [r#"{"text":"one"}"#, r#"{"text":"two"}"#], "each once");
    assert!(hub.0.stderr().contains("resumed 1 run"), "{}", hub.0.stderr());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_reports_but_does_not_resume_a_terminals_run() {
    let fixture = Fixture::new();
    two_notes(&fixture);
    let mut asking =
        fixture.home.command(&["ask", "two notes"]).stderr(std::process::Stdio::null()).spawn().unwrap();
    begun(&fixture).await;
    asking.kill().unwrap();
    asking.wait().unwrap();
    // The lease of a command is short.
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    let hub = HttpGateway::start(&fixture.home, &[]);
    for _ in 0..200 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        if hub.stderr().contains("1 interrupted run") {
            return;
        }
    }
    panic!("{}", hub.stderr());
}
