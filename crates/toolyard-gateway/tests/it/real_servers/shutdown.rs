//! A real server stops when it is removed, stopped or idle, and starts again when it is needed.

use std::time::{Duration, Instant};

use tokio::{join, time::sleep};
use toolyard_mcp_client::{ConnectError, ServerState};

use crate::{
    support::case::{ServerKind, Transport, case},
    support::test_manager::{SERVER_ID, TestManager},
    support::test_server::TestServer,
};

/// Longer than the tests wait before they stop the server.
const SLOW_START_SECONDS: u64 = 3;

#[tokio::test]
async fn a_server_that_is_removed_while_it_starts_is_stopped() {
    let test_server = TestServer::open(case(ServerKind::Time, Transport::Stdio)).await;
    let manager = TestManager::new(test_server.slow_config(SLOW_START_SECONDS), test_server.path()).await;
    let removing = async {
        wait_for_processes(&test_server, |processes| processes > 0).await;
        manager.manager.apply(Vec::new()).await.unwrap();
    };
    let (started, ()) = join!(manager.manager.connect(SERVER_ID), removing);
    assert!(matches!(started, Err(ConnectError::Cancelled)), "{started:?}");
    wait_for_processes(&test_server, |processes| processes == 0).await;
    sleep(Duration::from_secs(SLOW_START_SECONDS)).await;
    assert_eq!((test_server.processes().len(), manager.names().len()), (0, 0));
}

#[tokio::test]
async fn a_server_that_is_stopped_while_it_starts_can_be_started_again() {
    let test_server = TestServer::open(case(ServerKind::Time, Transport::Stdio)).await;
    let manager = TestManager::new(test_server.slow_config(SLOW_START_SECONDS), test_server.path()).await;
    let server = manager.server();
    let stopping = async {
        wait_for_processes(&test_server, |processes| processes > 0).await;
        server.stop().await;
    };
    let (started, ()) = join!(manager.manager.connect(SERVER_ID), stopping);
    assert!(matches!(started, Err(ConnectError::Cancelled)), "{started:?}");
    assert_eq!(server.state(), ServerState::Configured);
    wait_for_processes(&test_server, |processes| processes == 0).await;
    manager.session().await;
    assert_eq!(server.state().label(), "ready");
    manager.manager.close().await;
    assert_eq!(test_server.processes().len(), 0);
}

#[tokio::test]
async fn an_idle_server_is_stopped_and_started_by_the_next_call() {
    let case = case(ServerKind::Everything, Transport::Stdio);
    let test_server = TestServer::open(case).await;
    let mut config = test_server.config();
    config.idle_stop = Some(Duration::from_millis(1_500));
    let manager = TestManager::new(config, test_server.path()).await;
    manager.session().await;
    manager.wait_for_tools(case.tool_count()).await;
    // A call that takes longer than the limit keeps it alive.
    let long = serde_json::json!({"duration": 3, "steps": 2});
    manager.call("trigger-long-running-operation", long).await.unwrap();
    wait_for_processes(&test_server, |processes| processes == 0).await;
    // The state changes shortly after the last process ends.
    wait_for_processes(&test_server, |_| manager.server().state() == ServerState::Stopped).await;
    let (tool, arguments) = case.read_only_call(test_server.path());
    manager.call(tool, arguments).await.unwrap();
    assert_eq!(test_server.processes().len(), 1);
    manager.manager.close().await;
}

async fn wait_for_processes(test_server: &TestServer, condition: impl Fn(usize) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition(test_server.processes().len()) {
        assert!(Instant::now() < deadline, "{:?}", test_server.processes());
        sleep(Duration::from_millis(10)).await;
    }
}
