//! A door with servers that are not there: it opens with the others, says who is missing and why, and gets them back.

use std::time::{Duration, Instant};

use toolyard_mcp::{
    cache::ServerCache,
    server::{ContentKind, ContentService as _, Readiness as _},
};

use crate::{
    content::Door,
    place::Place,
    row::{Kind, Wire, row},
};

#[tokio::test]
async fn a_dead_server_is_named_and_comes_back_without_anyone_asking() {
    let healthy = Place::open(row(Kind::Time, Wire::Stdio)).await;
    let mut dead = Place::open(row(Kind::BothEras, Wire::Http)).await;
    let (mut one, mut other) = (healthy.config(), dead.config());
    (one.id, other.id) = ("clock".into(), "dead".into());
    dead.kill();
    let door = Door::open(vec![one, other], healthy.path(), ServerCache::in_memory()).await;
    assert_eq!(door.upstreams.notes().len(), 2, "nobody was looked at yet");
    let started = Instant::now();
    door.upstreams.settled().await;
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(door.house.names().len(), 2);
    let notes = door.upstreams.notes();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("dead is down (it could not be reached"), "{notes:?}");
    dead.start().await;
    door.house.until_tools(2 + row(Kind::BothEras, Wire::Http).tools()).await;
    door.house.until(|| door.upstreams.notes().is_empty() && door.upstreams.kinds().completions).await;
    assert_eq!(door.list(ContentKind::Prompts, "name").await, ["hello"]);
    door.house.manager.close().await;
}

#[tokio::test]
async fn a_program_that_dies_while_nobody_calls_is_started_again() {
    let place = Place::open(row(Kind::Time, Wire::Stdio)).await;
    let door = Door::open(vec![place.config()], place.path(), ServerCache::in_memory()).await;
    door.upstreams.settled().await;
    let before = place.processes();
    tokio::time::sleep(Duration::from_secs(6)).await;
    for process in &before {
        let process = rustix::process::Pid::from_raw((*process).try_into().unwrap()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    }
    door.house.until(|| place.processes().iter().any(|process| !before.contains(process))).await;
    door.house.until_ready().await;
    assert_eq!(door.house.names().len(), 2);
    door.house.manager.close().await;
}
