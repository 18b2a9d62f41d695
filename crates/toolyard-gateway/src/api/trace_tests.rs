//! What requests of the HTTP API report to telemetry.

use axum::{Router, body::Body, routing::get};
use http::StatusCode;
use toolyard_core::telemetry::{Operation, RecordingTelemetry};
use tower::ServiceExt as _;

use super::{super::router::observe, *};

async fn record(request: Request) -> Operation {
    let recorder = Arc::new(RecordingTelemetry::default());
    let fail = async || -> StatusCode { panic!("a bug") };
    let routes: Router = Router::new()
        .route("/runs/{id}", get(async || "a run"))
        .route("/hang", get(async || std::future::pending::<StatusCode>().await))
        .route("/fail", get(fail))
        .route(METRICS_PATH, get(async || "metrics"));
    let response = observe(routes, Some(Arc::clone(&recorder) as _)).oneshot(request);
    let _: Result<_, tokio::time::error::Elapsed> =
        tokio::time::timeout(std::time::Duration::from_millis(50), response).await;
    recorder.take().remove(0)
}

fn request(path: &str) -> Request {
    http::Request::get(path).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn panics_and_disconnects_have_the_outcome_that_clients_see() {
    let expected = [
        ("/runs/7", Some("/runs/{id}"), Some(200), None),
        ("/nothing", None, Some(404), None),
        ("/fail", Some("/fail"), Some(500), Some("500")),
        ("/hang", Some("/hang"), None, Some("cancelled")),
    ];
    for (path, expected_route, expected_status, expected_error) in expected {
        let operation = record(request(path)).await;
        let OperationKind::HttpRequest { route, status, path: recorded_path, .. } = &operation.kind else {
            panic!("{operation:?}")
        };
        let outcome = (route.as_deref(), *status, operation.error_type.as_deref());
        assert_eq!(outcome, (expected_route, expected_status, expected_error), "{path}");
        assert_eq!(**recorded_path, *path);
        assert!(operation.span.is_some(), "{path}");
    }
}

#[tokio::test]
async fn queries_are_not_recorded() {
    let operation = record(request("/runs/7?ticket=s3cret")).await;
    assert!(!format!("{operation:?}").contains("s3cret"), "{operation:?}");
}

#[tokio::test]
async fn scrapes_and_requests_of_the_console_are_counted_without_a_trace() {
    let mut of_console = request("/runs/7");
    of_console.extensions_mut().insert(StartsNoTrace);
    for request in [request(METRICS_PATH), of_console] {
        let operation = record(request).await;
        assert!(operation.span.is_none(), "{operation:?}");
    }
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let mut traced = request(METRICS_PATH);
    traced.headers_mut().insert(TRACEPARENT, HeaderValue::from_static(parent));
    let span = record(traced).await.span.unwrap();
    assert_eq!(span.parent.unwrap().to_string(), parent);
}
