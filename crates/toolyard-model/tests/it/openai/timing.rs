//! Slow servers, with Tokio's paused clock.

use std::time::Duration;

use tokio::time::Instant;
use toolyard_model::{ModelErrorKind, ModelServerConfig};

use super::{
    config, send_with,
    server::{DONE, Server, Step, head, text_event, write},
};

fn config_with_timeouts(server: &Server) -> ModelServerConfig {
    let mut config = config(server);
    config.first_token_timeout = Duration::from_secs(20);
    config.idle_timeout = Duration::from_secs(5);
    config
}

fn stream_head() -> Step {
    head("200 OK", "text/event-stream", "")
}

async fn timeout_of(steps: Vec<Step>) -> (String, Duration) {
    let server = Server::start([steps]).await;
    let started = Instant::now();
    let error = send_with(config_with_timeouts(&server)).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Timeout, "{error}");
    assert_eq!(server.requests().len(), 1, "timeouts are not retried");
    (error.to_string(), started.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_does_not_start_times_out() {
    let comment = Step::Repeat(b": processing\n\n".to_vec(), Duration::from_secs(1));
    let role = Step::Repeat(
        b"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n".to_vec(),
        Duration::from_secs(1),
    );
    for steps in [
        vec![Step::Hang],
        vec![stream_head(), Step::Hang],
        vec![stream_head(), comment],
        vec![stream_head(), role],
    ] {
        let (error, elapsed) = timeout_of(steps).await;
        assert_eq!(error, "model `local` did not start to reply within 20 s");
        assert!(elapsed >= Duration::from_secs(20) && elapsed < Duration::from_secs(22), "{elapsed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_stalls_times_out() {
    let comment = Step::Repeat(b": still here\n\n".to_vec(), Duration::from_secs(1));
    for last in [Step::Hang, comment] {
        let steps = vec![stream_head(), Step::Wait(Duration::from_secs(15)), write(text_event("Hel")), last];
        let (error, elapsed) = timeout_of(steps).await;
        assert_eq!(error, "model `local` sent nothing for 5 s during its reply");
        assert!(elapsed >= Duration::from_secs(20) && elapsed < Duration::from_secs(22), "{elapsed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_reply_does_not_time_out() {
    let mut steps = vec![stream_head()];
    for _ in 0..50 {
        steps.extend([Step::Wait(Duration::from_secs(4)), write(text_event("a"))]);
    }
    steps.push(write(DONE));
    let server = Server::start([steps]).await;
    let started = Instant::now();
    assert_eq!(send_with(config_with_timeouts(&server)).await.unwrap().text.len(), 50);
    assert!(started.elapsed() >= Duration::from_secs(200));
}

#[tokio::test(start_paused = true)]
async fn a_complete_reply_waits_briefly_for_usage() {
    let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let server = Server::start([vec![stream_head(), write(text_event("Hello.") + finish), Step::Hang]]).await;
    let started = Instant::now();
    let reply = send_with(config_with_timeouts(&server)).await.unwrap();
    assert_eq!(reply.text, "Hello.");
    assert!(started.elapsed() <= Duration::from_secs(4), "{:?}", started.elapsed());
    assert!(reply.usage.output > 0, "estimated");
}
