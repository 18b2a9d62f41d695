//! Other addresses beside the endpoint: who gets there, what they bring, and when their streams end.

use std::{sync::Arc, time::Duration};

use futures_util::stream;
use http::StatusCode;
use toolyard_core::BoxFuture;
use toolyard_mcp::server::{PageAnswer, PageBody, PageRequest, Pages};

use crate::house::{House, Plan};

/// Says what it was asked, and tells of nothing for ever.
#[derive(Debug)]
struct Echo;

impl Pages for Echo {
    fn has(&self, path: &str) -> bool {
        path.starts_with("/echo") || path == "/news"
    }

    fn answer(&self, request: PageRequest) -> BoxFuture<'_, PageAnswer> {
        Box::pin(async move {
            if request.path == "/news" {
                let stream = Box::pin(stream::pending());
                let body = PageBody::Events { stream, only_tells: true };
                return PageAnswer { status: StatusCode::OK, headers: Vec::new(), body };
            }
            let said = format!("{:?}", (request.method.as_str(), request.path, request.query, request.body));
            PageAnswer::json(StatusCode::ACCEPTED, said)
        })
    }
}

async fn house(token: Option<&str>) -> House {
    let mut plan = match token {
        Some(token) => Plan::default().with_token(token),
        None => Plan::default(),
    };
    plan.http.pages = Some(Arc::new(Echo));
    plan.http.stream_beat = Duration::from_millis(50);
    plan.config.limits.message_bytes = 1_000;
    plan.build().await
}

#[tokio::test]
async fn requests_arrive_with_everything_they_say() {
    let house = house(None).await;
    let url = format!("http://{}/echo/a?b=c", house.address);
    let answer = reqwest::Client::new().put(&url).body("hello").send().await.unwrap();
    assert_eq!(answer.status(), 202);
    assert_eq!(answer.text().await.unwrap(), r#"("PUT", "/echo/a", "b=c", "hello")"#);
    let long = reqwest::Client::new().post(&url).body("x".repeat(1_001)).send().await.unwrap();
    assert_eq!(long.status(), 413);
    let elsewhere = reqwest::get(format!("http://{}/elsewhere", house.address)).await.unwrap();
    assert_eq!(elsewhere.status(), 404);
    house.close().await;
}

#[tokio::test]
async fn nobody_gets_there_who_is_not_let_in() {
    let house = house(Some("s3cret")).await;
    let url = format!("http://{}/echo", house.address);
    let request = || reqwest::Client::new().get(&url);
    assert_eq!(request().send().await.unwrap().status(), 401);
    assert_eq!(request().bearer_auth("s3cret").send().await.unwrap().status(), 202);
    let by_another_name = request().bearer_auth("s3cret").header("Host", "evil.example");
    assert_eq!(by_another_name.send().await.unwrap().status(), 403);
    let from_a_page = request().bearer_auth("s3cret").header("Origin", "https://evil.example");
    assert_eq!(from_a_page.send().await.unwrap().status(), 403);
    house.close().await;
}

#[tokio::test]
async fn a_stream_says_that_it_is_there_and_ends_with_the_server() {
    let house = house(None).await;
    let mut news = reqwest::get(format!("http://{}/news", house.address)).await.unwrap();
    assert_eq!(news.headers()["content-type"], "text/event-stream");
    assert_eq!(news.chunk().await.unwrap().unwrap(), ":\n\n");
    let closing = tokio::spawn(house.close());
    while news.chunk().await.unwrap().is_some() {}
    closing.await.unwrap();
}
