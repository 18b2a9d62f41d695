//! Serving whoever started us, over standard input and output.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};

use super::{McpServer, ServeError, duplex::Duplex};
use crate::wire::{Line, LineError, Lines, WireLimits};

/// Messages that may wait to be written.
const WAITING: usize = 256;

/// How long requests may still take when the client has said all it will say.
const FAREWELL: Duration = Duration::from_secs(5);

/// Serves the main door to one client until its input or `stop` ends. Nothing but messages is written to `writer`.
pub async fn serve_stdio(
    server: Arc<McpServer>,
    reader: impl AsyncRead + Send + Unpin,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let Some(room) = server.room("").cloned() else { return Ok(()) };
    let limits = WireLimits { message_bytes: server.config.limits.message_bytes, ..WireLimits::default() };
    let (out, messages) = mpsc::channel(WAITING);
    let mut writing = tokio::spawn(write_all(writer, messages));
    let duplex = Duplex::new(server, room, [0; 32], out);
    let mut lines = Lines::new(reader, &limits);
    let mut stop = pin!(stop);
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = &mut stop => break,
            written = &mut writing => return written.unwrap_or(Ok(())).map_err(ServeError::Broken),
        };
        match line {
            Ok(Some(Line::Json(text) | Line::Unfinished(text))) => tokio::select! {
                () = duplex.hear(text) => {}
                // A client that does not read must not keep us from stopping.
                () = &mut stop => break,
                written = &mut writing => return written.unwrap_or(Ok(())).map_err(ServeError::Broken),
            },
            Ok(Some(Line::Noise(_))) => {
                duplex.refuse(&crate::wire::WireError::NotJson("a line is no message".to_owned())).await;
            }
            Ok(None) => break,
            Err(LineError::Wire(error)) => duplex.refuse(&error).await,
            Err(LineError::Broken(error)) => return Err(ServeError::Broken(error)),
        }
    }
    // Whoever closed its end may still wait for answers, though not for long.
    let _ = tokio::time::timeout(FAREWELL, duplex.drain()).await;
    drop(duplex);
    writing.await.unwrap_or(Ok(())).map_err(ServeError::Broken)
}

/// Writes messages, a line each, as many at once as there are.
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
    // One write for a whole line where it is short: the client then wakes once.
    if message.len() <= 8 << 10 {
        writer.write_all(&[message, b"\n"].concat()).await
    } else {
        writer.write_all(message).await?;
        writer.write_all(b"\n").await
    }
}
