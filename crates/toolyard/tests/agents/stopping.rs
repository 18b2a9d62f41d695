//! A hub that ends while agents work, and the one that starts after it.

use serde_json::json;

use crate::{Yard, client::Serving, running::Runs};

async fn begun(yard: &Yard) {
    let begun = yard.place.path("begun");
    while !begun.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn two_notes(yard: &Yard) {
    yard.plans_two_notes();
    yard.set("[approvals]\nallow = [\"*_note\"]\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_laid_down_with_its_calls_ended_and_taken_over_by_the_next_hub() {
    let yard = Yard::new();
    two_notes(&yard);
    let mut hub = Runs(Serving::start(&yard.place, &[]));
    let (_, answer) = hub.post("/runs", &json!({"question": "two notes"})).await;
    let run = answer["run"].as_str().unwrap().to_owned();
    begun(&yard).await;
    hub.0.terminate();
    assert!(tokio::task::block_in_place(|| hub.0.wait()), "{}", hub.0.said());
    assert_eq!(
        yard.notes(),
        [r#"{"text":"one"}"#],
        "the call that was under way has ended, and none was begun"
    );
    let unknown = yard.run(&["runs", "unknown"]);
    assert!(unknown.contains("nothing is unknown"), "{unknown}");
    let list = yard.run(&["runs", "list"]);
    assert!(list.contains("RUN open DATE two notes"), "free at once: {list}");
    assert!(list.contains("1 run is open") && list.contains("toolyard runs resume"), "{list}");

    let hub = Runs(Serving::start(&yard.place, &[]));
    let facts = hub.until(&run, |facts| facts["state"] == "done").await;
    assert_eq!(facts["end"]["answer"], "Both are written.", "{facts}");
    assert_eq!(yard.notes(), [r#"{"text":"one"}"#, r#"{"text":"two"}"#], "each once");
    assert!(hub.0.said().contains("goes on with 1 run"), "{}", hub.0.said());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_somebody_asked_for_at_a_terminal_is_left_to_them() {
    let yard = Yard::new();
    two_notes(&yard);
    let mut asking =
        yard.place.command(&["ask", "two notes"]).stderr(std::process::Stdio::null()).spawn().unwrap();
    begun(&yard).await;
    asking.kill().unwrap();
    asking.wait().unwrap();
    // The lease of a command is short.
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    let hub = Serving::start(&yard.place, &[]);
    for _ in 0..200 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        if hub.said().contains("1 run of agents left open") {
            return;
        }
    }
    panic!("{}", hub.said());
}
