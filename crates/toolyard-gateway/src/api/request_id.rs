//! Numbers requests, so that a log line and a client's report can be matched.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use http::{HeaderValue, Request};
use toolyard_core::process_tag;
use tower_http::request_id::{MakeRequestId, RequestId};

/// Ids such as `PROCESS-17`, unless the client sends one.
#[derive(Debug, Clone)]
pub(super) struct RequestNumbers {
    process: Arc<str>,
    next: Arc<AtomicU64>,
}

impl Default for RequestNumbers {
    fn default() -> Self {
        Self { process: process_tag().into(), next: Arc::default() }
    }
}

impl MakeRequestId for RequestNumbers {
    fn make_request_id<B>(&mut self, _: &Request<B>) -> Option<RequestId> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        HeaderValue::from_str(&format!("{}-{number}", self.process)).ok().map(RequestId::new)
    }
}
