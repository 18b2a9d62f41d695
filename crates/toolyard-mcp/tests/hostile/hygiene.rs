//! What servers leave behind and how often they are started: nothing, and once.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use toolyard_core::{CallContext, ErrorKind, RawJson, ToolCallRequest};
use toolyard_mcp::config::McpServerConfig;

use crate::house::{House, Way, program};

const PATIENCE: Duration = Duration::from_secs(10);

/// A good server that notes each of its starts.
fn noted(house: &House, id: &str, case: &str) -> McpServerConfig {
    let note = house.path("starts").display().to_string();
    house.server_with(id, Way::Stdio, ["stdio", "--note", &note, case].map(str::to_owned).to_vec())
}

/// The processes that noted their start.
fn starts(house: &House) -> Vec<String> {
    let text = fs::read_to_string(house.path("starts")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_first_calls_start_one_process() {
    let house = House::new();
    house.manager.apply(vec![noted(&house, "server", "good")]).await.unwrap();
    house.manager.connect("server").await.unwrap();
    house.manager.server("server").unwrap().stop().await;
    assert_eq!(house.survivors(), Vec::<String>::new());
    assert_eq!(starts(&house).len(), 1);
    let calls = join_all((0..100).map(|number| {
        let (house, text) = (&house, format!("call {number}"));
        async move { (house.call("server", &text, PATIENCE).await.unwrap().to_text(), text) }
    }));
    for (answer, text) in calls.await {
        assert_eq!(answer, text);
    }
    assert_eq!(starts(&house).len(), 2, "the calls started one process between them");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_started_before_the_first_call() {
    let house = House::new();
    house.manager.apply(vec![noted(&house, "server", "good")]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(starts(&house), Vec::<String>::new());
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_is_stopped_and_comes_back_when_called() {
    let house = House::new();
    let mut config = noted(&house, "server", "good");
    config.idle_stop = Some(Duration::from_millis(300));
    house.manager.apply(vec![config]).await.unwrap();
    house.manager.connect("server").await.unwrap();
    until("it is stopped", || house.manager.server("server").unwrap().state().word() == "known").await;
    assert_eq!(house.survivors(), Vec::<String>::new());
    assert_eq!(house.call("server", "again", PATIENCE).await.unwrap().to_text(), "again");
    assert_eq!(starts(&house).len(), 2);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crashed_server_comes_back_without_anyone_asking() {
    let house = House::new();
    house.manager.apply(vec![noted(&house, "server", "good")]).await.unwrap();
    house.manager.connect("server").await.unwrap();
    let first = starts(&house).pop().unwrap();
    let killed = std::process::Command::new("kill").args(["-9", &first]).status().unwrap();
    assert!(killed.success());
    until("it is started again", || starts(&house).len() == 2).await;
    until("it is ready again", || house.manager.is_connected("server")).await;
    assert_eq!(house.call("server", "back", PATIENCE).await.unwrap().to_text(), "back");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_down_gets_its_tools_when_it_is_up() {
    let house = House::new();
    let up = house.path("up");
    let script = format!("test -e {} || exit 1; exec {} stdio good", up.display(), program().display());
    let config = house.command("server", "/bin/sh".to_owned(), vec!["-c".to_owned(), script]);
    house.manager.apply(vec![config]).await.unwrap();
    assert!(house.manager.connect("server").await.is_err());
    assert_eq!(house.manager.server("server").unwrap().state().word(), "down");
    assert!(house.shelves.find("server", "echo").is_none());
    fs::write(&up, "").unwrap();
    until("its tools are there", || house.shelves.find("server", "echo").is_some()).await;
    assert_eq!(house.call("server", "up", PATIENCE).await.unwrap().to_text(), "up");
    house.close().await;
}

/// Whoever still holds a tool of it does not bring it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_configured_any_more_is_not_started_by_anyone() {
    let house = House::new();
    house.manager.apply(vec![noted(&house, "server", "good")]).await.unwrap();
    house.manager.connect("server").await.unwrap();
    let held = house.shelves.find("server", "echo").unwrap();
    house.manager.apply(Vec::new()).await.unwrap();
    assert_eq!(house.survivors(), Vec::<String>::new());
    let request = ToolCallRequest::new("echo", RawJson::from(serde_json::json!({"text": "late"})));
    let error = held.call(&request, &CallContext::until(Instant::now() + PATIENCE)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(starts(&house).len(), 1);
    assert!(house.shelves.find("server", "echo").is_none());
    house.close().await;
}

/// The news of its end must not be lost among everything else it said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_amid_a_flood_of_questions_is_noticed() {
    let house = House::new();
    house.manager.apply(vec![noted(&house, "server", "questions-then-exit")]).await.unwrap();
    house.manager.connect("server").await.unwrap();
    until("it is started again", || starts(&house).len() >= 2).await;
    house.close().await;
}

/// A thousand starts and ends, ten servers at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn file_descriptors_stay_flat_over_a_thousand_cycles() {
    let house = House::new();
    let ids: Vec<String> = (0..10).map(|number| format!("server{number}")).collect();
    let configs = ids.iter().map(|id| noted(&house, id, "good")).collect();
    house.manager.apply(configs).await.unwrap();
    let cycles = |count: usize| {
        let house = &house;
        join_all(ids.iter().map(move |id| async move {
            for _ in 0..count {
                house.manager.connect(id).await.unwrap();
                house.manager.server(id).unwrap().stop().await;
            }
        }))
    };
    cycles(2).await;
    let (descriptors, tasks) = (count(Path::new("/proc/self/fd")), count(Path::new("/proc/self/task")));
    let started = Instant::now();
    cycles(100).await;
    println!("1,000 cycles in {:?}", started.elapsed());
    assert_eq!(count(Path::new("/proc/self/fd")), descriptors);
    assert!(count(Path::new("/proc/self/task")) <= tasks + 1);
    assert_eq!(starts(&house).len(), 1_020);
    assert_eq!(house.survivors(), Vec::<String>::new());
    house.close().await;
}

fn count(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}
