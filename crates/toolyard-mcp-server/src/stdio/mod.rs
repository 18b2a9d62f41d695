//! Serves one client over two streams, one for each direction.

pub(crate) mod duplex_session;
mod serve;

pub use serve::serve_stdio;
