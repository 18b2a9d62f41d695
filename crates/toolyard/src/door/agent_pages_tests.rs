//! Requests that are dropped, made again or made too late, against a hub in this process.

use std::{future::poll_fn, pin::pin, task::Poll};

use toolyard_agent::{RUN_KIND, RunEvent};
use toolyard_core::{Lease, RawJson, ServiceCall, ToolCallRequest};
use toolyard_model::{ScriptedModel, ToolCalling};
use toolyard_store::{Location, Store};

use super::*;
use crate::{
    Toolyard,
    door::{ask_agent::AskAgent, live_runs::AgentTerms, openai::waits},
};

async fn yard(folder: &tempfile::TempDir) -> Toolyard {
    let model = ScriptedModel::saying(ToolCalling::Schema, [r#"{"answer": "done"}"#]);
    let store = Store::open(Location::Sqlite(folder.path().join("toolyard.db"))).await.unwrap();
    Toolyard::builder().store(store).model(Arc::new(model)).build().await.unwrap()
}

fn door(yard: &Toolyard) -> AgentDoor {
    AgentDoor::new(yard.agents().clone(), AgentTerms::default())
}

fn post(path: &str, headers: &[(&'static str, &str)], body: &Value) -> PageRequest {
    let headers = headers
        .iter()
        .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
    PageRequest {
        method: Method::POST,
        path: path.to_owned(),
        query: String::new(),
        headers: headers.collect(),
        body: body.to_string(),
    }
}

fn question(key: &str) -> PageRequest {
    post("/runs", &[("idempotency-key", key)], &json!({ "question": key }))
}

fn read(answer: PageAnswer) -> (u16, Value) {
    match answer.body {
        PageBody::Json(bytes) => (answer.status.as_u16(), serde_json::from_slice(&bytes).unwrap()),
        PageBody::Events { .. } => panic!("events"),
    }
}

/// Runs of agents that were begun, by what they were asked.
async fn begun(yard: &Toolyard, question: &str) -> Vec<RunId> {
    let log = yard.agents().log();
    let mut found = Vec::new();
    for run in log.runs(1_000).await.unwrap().into_iter().filter(|run| run.kind == RUN_KIND) {
        let asked = run.detail.to_value()["question"] == question;
        if asked && !log.events(&run.id, 0).await.unwrap().is_empty() {
            found.push(run.id);
        }
    }
    found
}

/// What comes of something that is dropped after it was looked at so often, unless it is over by then.
async fn dropped_after<T>(looks: usize, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut left) = (pin!(future), looks);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if left <= 1 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Makes a request until it is not said to be under way any more.
async fn until_begun(pages: &AgentPages, key: &str) -> (u16, Value) {
    for _ in 0..500 {
        let (status, answer) = read(pages.answer(question(key)).await);
        if status == 202 {
            return (status, answer);
        }
        assert_eq!(answer["error"]["code"], "already_begun", "{answer}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{key} is under way for ever");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_dropped_at_any_point_and_made_again_begins_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let yard = yard(&folder).await;
    let pages = AgentPages::new(door(&yard));
    for looks in 1..100 {
        let key = format!("dropped-{looks}");
        let answered = dropped_after(looks, pages.answer(question(&key))).await;
        let (_, again) = until_begun(&pages, &key).await;
        let runs = begun(&yard, &key).await;
        assert_eq!(runs.len(), 1, "dropped after {looks} looks");
        assert_eq!(again["run"], json!(runs[0]), "dropped after {looks} looks");
        if answered.is_some() {
            return;
        }
    }
    panic!("it is never over");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_known_to_the_next_hub() {
    let folder = tempfile::tempdir().unwrap();
    let first = yard(&folder).await;
    let (_, begun_first) = until_begun(&AgentPages::new(door(&first)), "once").await;
    first.close().await.unwrap();
    let second = yard(&folder).await;
    let pages = AgentPages::new(door(&second));
    let (status, again) = read(pages.answer(question("once")).await);
    assert_eq!((status, &again["run"]), (202, &begun_first["run"]));
    assert_eq!(begun(&second, "once").await.len(), 1);
    let other = post("/runs", &[("idempotency-key", "once")], &json!({"question": "another"}));
    let (_, refused) = read(pages.answer(other).await);
    assert_eq!(refused["error"]["code"], "idempotency_key_reused", "{refused}");
    let repeated = post("/runs", &[("x-stainless-retry-count", "1")], &json!({"question": "once"}));
    let (_, refused) = read(pages.answer(repeated).await);
    assert_eq!(refused["error"]["code"], "already_begun", "{refused}");
    let someone_else = post(
        "/runs",
        &[("idempotency-key", "once"), ("authorization", "Bearer other")],
        &json!({"question": "b"}),
    );
    assert_eq!(read(pages.answer(someone_else).await).0, 202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_question_was_never_written_down_does_not_keep_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let yard = yard(&folder).await;
    let pages = AgentPages::new(door(&yard));
    let (_, first) = until_begun(&pages, "once").await;
    let log = yard.agents().log();
    let detail = log.run(&RunId::from(first["run"].as_str().unwrap())).await.unwrap().detail;
    let detail = detail.get().replace("once", "twice");
    // As if a process had ended between the two: the run is there, what it is about is not.
    log.create_run(RUN_KIND, &RawJson::parse(detail).unwrap()).await.unwrap();
    let (status, again) = read(AgentPages::new(door(&yard)).answer(question("once")).await);
    assert_eq!((status, &again["run"]), (202, &first["run"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_door_that_closes_begins_nothing_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let yard = yard(&folder).await;
    let door = door(&yard);
    let (pages, ask) = (AgentPages::new(door.clone()), AskAgent::new(door.clone()));
    door.close();
    let completion = json!({"model": "assistant", "messages": [{"role": "user", "content": "hello"}]});
    for request in [question("late"), post("/v1/chat/completions", &[], &completion)] {
        let (status, refused) = read(pages.answer(request).await);
        assert_eq!((status, refused["error"]["code"].as_str()), (503, Some("closing")), "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("nothing was begun"), "{refused}");
    }
    let request = ToolCallRequest::new("ask_agent", json!({"question": "late"}));
    let refused = ask.call(&ServiceCall { request, caller: None, who: "client".into() }).await.unwrap_err();
    assert!(refused.to_string().contains("nothing was begun"), "{refused}");
    assert!(yard.agents().log().runs(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn counting_what_was_left_takes_nothing_from_whoever_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let yard = yard(&folder).await;
    let (agents, log) = (yard.agents(), yard.agents().log());
    let run =
        agents.agent("assistant", None).unwrap().begin(agents.question("assistant", "q")).await.unwrap();
    // Somebody's command, which was stopped for longer than its lease.
    let lease = log.claim(&run, "a command", Duration::from_millis(1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let found = door(&yard).take_over().await.unwrap();
    assert_eq!((found.left, found.held, found.taken_over), (1, 0, 0));
    log.renew(&lease, Duration::from_secs(5)).await.unwrap();
    let found = door(&yard).take_over().await.unwrap();
    assert_eq!((found.left, found.held, found.taken_over), (0, 1, 0));
    log.renew(&lease, Duration::from_secs(5)).await.unwrap();
}

/// A run that was answered.
async fn answered(yard: &Toolyard, answer: &str) -> RunId {
    let log = yard.agents().log();
    let run = log.create_run(RUN_KIND, &RawJson::empty_object()).await.unwrap();
    let lease: Lease = log.claim(&run, "somebody", Duration::from_secs(5)).await.unwrap();
    let end = RunEnd::Answered { answer: answer.to_owned(), sources: Vec::new(), cut_off: false };
    let events = [RunEvent::Asked { ask: Ask::default() }, RunEvent::Ended { end }];
    let events: Vec<RawJson> = events.iter().map(|event| RawJson::from_serialize(event).unwrap()).collect();
    log.append_all(&lease, 0, &events).await.unwrap();
    run
}

#[tokio::test]
async fn of_many_runs_that_waited_the_last_are_looked_at_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let yard = yard(&folder).await;
    let mut history = Vec::new();
    for number in 0..25 {
        let run = answered(&yard, &format!("answer {number}")).await;
        history.push(ModelMessage::user(format!("question {number}")));
        history.push(ModelMessage::assistant(waits(&run, &[])));
        history.push(ModelMessage::assistant(waits(&run, &[])));
    }
    let settled = AgentPages::new(door(&yard)).settled(history).await;
    let answers: Vec<&str> = settled
        .iter()
        .filter(|message| message.role == Role::Assistant)
        .map(|message| message.text.as_str())
        .collect();
    let last: Vec<String> = (5..25).map(|number| format!("answer {number}")).collect();
    assert_eq!(answers, last);
    assert_eq!(settled.iter().filter(|message| message.role == Role::User).count(), 25);
}

#[test]
fn whoever_asks_for_something_else_hears_of_everything_there_is() {
    for approve in [false, true] {
        let refused = not_here(&Method::GET, &["nothing"], approve);
        let about = if approve { "POST /runs/ID/approve " } else { "POST /runs/ID/approve (to say no)" };
        assert!(refused.message.contains(about), "{}", refused.message);
    }
}
