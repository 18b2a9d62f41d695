//! Serves one client over standard input and output.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};
use toolyard_core::telemetry::Transport;
use toolyard_mcp::{Line, LineError, LineReader, WireLimits};

use crate::{
    http::anonymous,
    server::{McpServer, ServeError},
    stdio::duplex_session::DuplexSession,
};

/// Messages that may wait to be written.
const OUTPUT_QUEUE_MESSAGES: usize = 256;

/// Longer messages are written without copying them into a line.
const MAX_COPIED_MESSAGE_BYTES: usize = 8 << 10;

/// How long requests may take after the client closed its stream.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves the main endpoint to one client until its input or `stop` ends. Only messages are written to `writer`.
pub async fn serve_stdio(
    server: Arc<McpServer>,
    reader: impl AsyncRead + Send + Unpin,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let Some(endpoint) = server.endpoint("") else { return Ok(()) };
    let limits = WireLimits { message_bytes: server.config.limits.message_bytes, ..WireLimits::default() };
    let (out, messages) = mpsc::channel(OUTPUT_QUEUE_MESSAGES);
    let mut writer_task = tokio::spawn(write_all(writer, messages));
    let identity = anonymous();
    let session = DuplexSession::new(server, endpoint, Arc::clone(&identity), Transport::Stdio, out);
    let mut lines = LineReader::new(reader, &limits);
    let mut stop = pin!(stop);
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = &mut stop => break,
            written = &mut writer_task => return written.unwrap_or(Ok(())).map_err(ServeError::Io),
        };
        match line {
            Ok(Some(Line::Json(text) | Line::Unterminated(text))) => tokio::select! {
                () = session.receive(text, &identity) => {}
                // A client that does not read must not block the shutdown.
                () = &mut stop => break,
                written = &mut writer_task => return written.unwrap_or(Ok(())).map_err(ServeError::Io),
            },
            Ok(Some(Line::Noise(_))) => {
                session
                    .send_error(&toolyard_mcp::WireError::NotJson("a line is not a message".to_owned()))
                    .await;
            }
            Ok(None) => break,
            Err(LineError::Wire(error)) => session.send_error(&error).await,
            Err(LineError::Io(error)) => return Err(ServeError::Io(error)),
        }
    }
    // A client that closed its stream may still wait for responses.
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, session.drain()).await;
    drop(session);
    writer_task.await.unwrap_or(Ok(())).map_err(ServeError::Io)
}

/// Writes each message on a line, and flushes when the queue is empty.
async fn write_all(
    mut writer: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<Bytes>,
) -> std::io::Result<()> {
    while let Some(message) = messages.recv().await {
        write_line(&mut writer, &message).await?;
        while let Ok(message) = messages.try_recv() {
            write_line(&mut writer, &message).await?;
        }
        writer.flush().await?;
    }
    Ok(())
}

async fn write_line(writer: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> std::io::Result<()> {
    // One write for a short line: the client wakes once.
    if message.len() <= MAX_COPIED_MESSAGE_BYTES {
        writer.write_all(&[message, b"\n"].concat()).await
    } else {
        writer.write_all(message).await?;
        writer.write_all(b"\n").await
    }
}
