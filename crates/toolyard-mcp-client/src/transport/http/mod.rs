//! Streamable HTTP, and the HTTP client below it.
//!
//! - [`streamable`]: the transport; [`resumption`]: its streams that outlive one POST.
//! - [`target`]: URL, headers and authorizer of a server. [`headers`]: names and values of MCP headers.
//! - [`client`]: one request with redirects, challenges and error statuses.
//! - [`response`] and [`event_stream`]: reading bodies.
//! - [`http1`] and [`pool`]: HTTP/1.1 without TLS, see `docs/design/0014-http1-client.md`.

pub(crate) mod client;
pub(crate) mod event_stream;
pub(crate) mod headers;
mod http1;
mod pool;
mod response;
mod resumption;
pub(crate) mod streamable;
pub(crate) mod target;
#[cfg(test)]
pub(crate) mod test_server;
