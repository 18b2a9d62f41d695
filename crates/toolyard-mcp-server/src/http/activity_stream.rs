//! Detects idle connections without a timer per request.

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

/// The activity of a connection since the last check.
#[derive(Debug, Default)]
pub(crate) struct ConnectionActivity {
    /// Requests without a complete response.
    in_flight: AtomicUsize,
    is_active: AtomicBool,
    closing: AtomicBool,
}

#[derive(Debug)]
pub(crate) struct RequestGuard<'a>(&'a ConnectionActivity);

impl ConnectionActivity {
    /// Counts a request until the guard is dropped.
    pub(crate) fn begin_request(&self) -> RequestGuard<'_> {
        self.in_flight.fetch_add(1, Relaxed);
        RequestGuard(self)
    }

    pub(crate) fn close_after_response(&self) {
        self.closing.store(true, Relaxed);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Whether there was no request and no write since the last check. Bytes that do not complete a request do not count.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_active.swap(false, Relaxed) && self.in_flight.load(Relaxed) == 0
    }
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
        self.0.is_active.store(true, Relaxed);
    }
}

/// A stream that records writes.
#[derive(Debug)]
pub(crate) struct ActivityStream {
    stream: TokioIo<TcpStream>,
    activity: Arc<ConnectionActivity>,
}

impl ActivityStream {
    pub(crate) fn new(stream: TcpStream, activity: Arc<ConnectionActivity>) -> Self {
        Self { stream: TokioIo::new(stream), activity }
    }

    fn record_write(&self, written: &Poll<io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.activity.is_active.store(true, Relaxed);
        }
    }
}

impl Read for ActivityStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for ActivityStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.record_write(&written);
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
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.record_write(&written);
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_with_a_request_is_not_idle() {
        let activity = ConnectionActivity::default();
        assert!(activity.is_idle());
        let request = activity.begin_request();
        assert!(!activity.is_idle() && !activity.is_idle());
        drop(request);
        // Active since the last check, and idle since this one.
        assert!(!activity.is_idle());
        assert!(activity.is_idle());
    }
}
