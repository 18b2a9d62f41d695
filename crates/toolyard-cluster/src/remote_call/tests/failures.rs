//! Calls that end early: killed processes, cancelled calls, panics.

use tokio::sync::oneshot;
use toolyard_core::SourceSignal;

use super::*;

/// Says when it is dropped.
struct DropSignal(Option<oneshot::Sender<Instant>>);

impl Drop for DropSignal {
    fn drop(&mut self) {
        let _ = self.0.take().unwrap().send(Instant::now());
    }
}

/// A cluster whose tool never ends, what says that it was called, and what says that its future was dropped.
fn endless() -> (TestCluster, oneshot::Receiver<()>, oneshot::Receiver<Instant>) {
    let (called_sender, called) = oneshot::channel();
    let (dropped_sender, dropped) = oneshot::channel();
    let senders = Mutex::new(Some((called_sender, DropSignal(Some(dropped_sender)))));
    let cluster = TestCluster::new(move |_, _| {
        let (called, signal) = senders.lock().take().unwrap();
        async move {
            let _signal = signal;
            called.send(()).unwrap();
            std::future::pending().await
        }
    });
    (cluster, called, dropped)
}

#[tokio::test(start_paused = true)]
async fn dropping_the_call_cancels_the_tool() {
    let (cluster, called, dropped) = endless();
    let context = within(seconds(60));
    let start = Instant::now();
    tokio::select! {
        biased;
        outcome = cluster.call(&context) => panic!("{outcome:?}"),
        called = called => called.unwrap(),
    }
    assert_eq!(dropped.await.unwrap() - start, Duration::ZERO, "at once");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_drops_the_tool() {
    let (cluster, _called, mut dropped) = endless();
    let error = cluster.call(&within(seconds(1))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    dropped.try_recv().unwrap();
}

#[tokio::test]
async fn a_process_that_dies_during_the_call_loses_the_response() {
    let (cluster, called, dropped) = endless();
    let context = within(seconds(60));
    let kill = async {
        called.await.unwrap();
        cluster.cluster.kill(EXECUTOR);
    };
    let (outcome, ()) = tokio::join!(cluster.call(&context), kill);
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.source_signal()), (ErrorKind::ResponseLost, SourceSignal::Unknown));
    assert!(!error.had_no_effect());
    assert_eq!((error.tool(), error.source_id().unwrap().as_str()), (Some("read"), "files"));
    dropped.await.unwrap();
}

#[tokio::test]
async fn a_process_that_is_dead_before_the_call_received_nothing() {
    let cluster = TestCluster::new(|_, _| async { Ok(ToolOutput::text("called")) });
    cluster.cluster.kill(EXECUTOR);
    let error = cluster.call(&within(seconds(60))).await.unwrap_err();
    assert_eq!((error.kind(), error.source_signal()), (ErrorKind::Unavailable, SourceSignal::Unknown));
    assert!(error.had_no_effect() && error.retryable());
}

#[tokio::test]
async fn a_tool_is_cancelled_when_the_process_of_its_caller_dies() {
    let (cluster, called, dropped) = endless();
    let context = within(seconds(60));
    let kill = async {
        called.await.unwrap();
        cluster.cluster.kill(CALLER);
        dropped.await.unwrap();
    };
    let (outcome, ()) = tokio::join!(cluster.call(&context), kill);
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ResponseLost);
}

#[tokio::test]
async fn a_panic_of_a_tool_is_its_outcome() {
    let cluster = TestCluster::new(|request, _| {
        assert_ne!(request.id, "call_7", "panics before it returns a future");
        std::future::pending()
    });
    let error = cluster.call(&within(seconds(60))).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Internal, "the tool panicked"));

    let cluster = TestCluster::new(|_, _| async {
        tokio::task::yield_now().await;
        panic!("in its future")
    });
    let error = cluster.call(&within(seconds(60))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
}

#[tokio::test]
async fn a_tool_that_needs_a_conversation_is_not_executed() {
    let function = Arc::new(|_, _| -> BoxFuture<'static, Outcome> { panic!("called") });
    let spec = ToolSpec::new("read", "");
    let cluster = TestCluster::with_tool(TestTool { spec, needs_conversation: true, function });
    let error = cluster.call(&within(seconds(60))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.had_no_effect() && !error.retryable() && !error.is_source_fault());
}
