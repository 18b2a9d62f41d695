//! Servers that take their time, under a clock that stands still while nobody waits.

use std::time::Duration;

use tokio::time::Instant;
use toolyard_model::{ModelErrorKind, OpenAiConfig};

use crate::{
    ask_with, config,
    server::{DONE, Server, Step, head, said, write},
};

fn patient(server: &Server) -> OpenAiConfig {
    let mut config = config(server);
    config.first_token_timeout = Duration::from_secs(20);
    config.between_tokens_timeout = Duration::from_secs(5);
    config
}

fn begun() -> Step {
    head("200 OK", "text/event-stream", "")
}

async fn slow(steps: Vec<Step>) -> (String, Duration) {
    let server = Server::start([steps]).await;
    let began = Instant::now();
    let error = ask_with(patient(&server)).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Timeout, "{error}");
    assert_eq!(server.requests().len(), 1, "whoever is slow is not asked twice");
    (error.to_string(), began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_begin_is_given_up() {
    let comment = Step::Drip(b": processing\n\n".to_vec(), Duration::from_secs(1));
    let role = Step::Drip(
        b"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n".to_vec(),
        Duration::from_secs(1),
    );
    for steps in [vec![Step::Hang], vec![begun(), Step::Hang], vec![begun(), comment], vec![begun(), role]] {
        let (error, took) = slow(steps).await;
        assert_eq!(error, "model local did not begin to answer within 20 s");
        assert!(took >= Duration::from_secs(20) && took < Duration::from_secs(22), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_falls_silent_is_given_up() {
    let comment = Step::Drip(b": still here\n\n".to_vec(), Duration::from_secs(1));
    for last in [Step::Hang, comment] {
        let steps = vec![begun(), Step::Wait(Duration::from_secs(15)), write(said("Hel")), last];
        let (error, took) = slow(steps).await;
        assert_eq!(error, "model local fell silent in the middle of its answer for 5 s");
        assert!(took >= Duration::from_secs(20) && took < Duration::from_secs(22), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_that_goes_on_is_waited_for() {
    let mut steps = vec![begun()];
    for _ in 0..50 {
        steps.extend([Step::Wait(Duration::from_secs(4)), write(said("a"))]);
    }
    steps.push(write(DONE));
    let server = Server::start([steps]).await;
    let began = Instant::now();
    assert_eq!(ask_with(patient(&server)).await.unwrap().text.len(), 50);
    assert!(began.elapsed() >= Duration::from_secs(200));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_complete_does_not_wait_for_its_figures_for_long() {
    let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let server = Server::start([vec![begun(), write(said("Hello.") + finish), Step::Hang]]).await;
    let began = Instant::now();
    let reply = ask_with(patient(&server)).await.unwrap();
    assert_eq!(reply.text, "Hello.");
    assert!(began.elapsed() <= Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(reply.usage.output > 0, "estimated");
}
