//! The HTTP/1.1 client of `toolyard-mcp-client`, compiled from its sources because its types are private.

#[expect(dead_code, reason = "the client needs two of the names")]
#[path = "../../../../../crates/toolyard-mcp-client/src/transport/http/headers.rs"]
mod headers;
#[path = "../../../../../crates/toolyard-mcp-client/src/transport/http/http1.rs"]
mod http1;
#[expect(dead_code, reason = "some constants are for the reqwest client beside it")]
#[path = "../../../../../crates/toolyard-mcp-client/src/transport/http/pool.rs"]
mod pool;

use std::sync::Arc;

use ::http::{HeaderMap, Method, StatusCode};
use url::Url;

use crate::Outcome;

/// The connection pool, behind a method that the benchmark can call.
#[derive(Default)]
pub(crate) struct PoolClient(Arc<pool::ConnectionPool>);

impl PoolClient {
    /// Sends a POST and reads the whole body.
    pub(crate) async fn post(&self, url: &Url, headers: &HeaderMap, body: &[u8]) -> Outcome<Vec<u8>> {
        let mut response = self.0.send(&Method::POST, url, headers, Some(body)).await?;
        if response.status != StatusCode::OK {
            return Err(format!("status {}", response.status).into());
        }
        let announced = usize::try_from(response.content_length().unwrap_or_default())?;
        let mut whole = Vec::with_capacity(announced);
        while let Some(chunk) = response.chunk().await? {
            whole.extend_from_slice(chunk);
        }
        Ok(whole)
    }
}
