//! Whether a connection still lives: told from what happened on it, so that no request has to set a clock.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// What happened on a connection since somebody looked.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Requests that are being answered.
    under_way: AtomicUsize,
    happened: AtomicBool,
    leaving: AtomicBool,
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct UnderWay<'a>(&'a Pulse);

impl Pulse {
    /// A request has come in.
    pub(super) fn request(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Relaxed);
        UnderWay(self)
    }

    /// Its next answer is to be its last.
    pub(super) fn leave(&self) {
        self.leaving.store(true, Relaxed);
    }

    /// Whether the client must be told to come back on another connection.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving.load(Relaxed)
    }

    /// Whether nothing was asked, worked on or written since the last look. Bytes that do not add up to a request are
    /// nothing.
    pub(super) fn is_silent(&self) -> bool {
        !self.happened.swap(false, Relaxed) && self.under_way.load(Relaxed) == 0
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Relaxed);
        self.0.happened.store(true, Relaxed);
    }
}

/// A stream that notes when something is written to it.
#[derive(Debug)]
pub(super) struct Felt {
    stream: TokioIo<TcpStream>,
    pulse: Arc<Pulse>,
}

impl Felt {
    pub(super) fn new(stream: TcpStream, pulse: Arc<Pulse>) -> Self {
        Self { stream: TokioIo::new(stream), pulse }
    }

    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.pulse.happened.store(true, Relaxed);
        }
    }
}

impl Read for Felt {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Felt {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.wrote(&written);
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_under_way_is_not_silence() {
        let pulse = Pulse::default();
        assert!(pulse.is_silent());
        let request = pulse.request();
        assert!(!pulse.is_silent() && !pulse.is_silent());
        drop(request);
        assert!(!pulse.is_silent());
        assert!(pulse.is_silent());
    }
}
