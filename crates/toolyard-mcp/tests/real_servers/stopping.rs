//! A real server that is not wanted any more is gone, whatever it was doing, and comes back when it is wanted.

use std::time::{Duration, Instant};

use tokio::{join, time::sleep};
use toolyard_mcp::client::{ConnectError, ServerState};

use crate::{
    house::{House, NAME},
    place::Place,
    row::{Kind, Wire, row},
};

/// Longer than anyone waits before it is stopped again.
const SLOW: u64 = 3;

#[tokio::test]
async fn a_server_that_is_removed_while_it_starts_is_gone() {
    let place = Place::open(row(Kind::Time, Wire::Stdio)).await;
    let house = House::new(place.late(SLOW), place.path()).await;
    let removed = async {
        until(&place, |processes| processes > 0).await;
        house.manager.apply(Vec::new()).await.unwrap();
    };
    let (started, ()) = join!(house.manager.connect(NAME), removed);
    assert!(matches!(started, Err(ConnectError::Resting { .. })), "{started:?}");
    until(&place, |processes| processes == 0).await;
    sleep(Duration::from_secs(SLOW)).await;
    assert_eq!((place.processes().len(), house.names().len()), (0, 0));
}

#[tokio::test]
async fn a_server_that_is_stopped_while_it_starts_can_be_started_again() {
    let place = Place::open(row(Kind::Time, Wire::Stdio)).await;
    let house = House::new(place.late(SLOW), place.path()).await;
    let server = house.server();
    let stopped = async {
        until(&place, |processes| processes > 0).await;
        server.stop().await;
    };
    let (started, ()) = join!(house.manager.connect(NAME), stopped);
    assert!(matches!(started, Err(ConnectError::Resting { .. })), "{started:?}");
    assert_eq!(server.state(), ServerState::Configured);
    until(&place, |processes| processes == 0).await;
    house.session().await;
    assert_eq!(server.state().word(), "ready");
    house.manager.close().await;
    assert_eq!(place.processes().len(), 0);
}

#[tokio::test]
async fn an_idle_server_is_stopped_and_started_by_the_next_call() {
    let row = row(Kind::Everything, Wire::Stdio);
    let place = Place::open(row).await;
    let mut config = place.config();
    config.idle_stop = Some(Duration::from_millis(1_500));
    let house = House::new(config, place.path()).await;
    house.session().await;
    house.until_tools(row.tools()).await;
    // A call that takes longer than the limit keeps it alive.
    let long = serde_json::json!({"duration": 3, "steps": 2});
    house.call("trigger-long-running-operation", long).await.unwrap();
    until(&place, |processes| processes == 0).await;
    // It is at rest a moment after its last process is gone.
    until(&place, |_| house.server().state() == ServerState::Known).await;
    let (tool, arguments) = row.harmless(place.path());
    house.call(tool, arguments).await.unwrap();
    assert_eq!(place.processes().len(), 1);
    house.manager.close().await;
}

async fn until(place: &Place, reached: impl Fn(usize) -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !reached(place.processes().len()) {
        assert!(Instant::now() < limit, "{:?}", place.processes());
        sleep(Duration::from_millis(10)).await;
    }
}
