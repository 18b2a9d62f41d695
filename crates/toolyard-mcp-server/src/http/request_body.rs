//! Reading the body of a request within a limit of size.

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::timeout;

/// How long the rest of a body that is too long is received and dropped.
///
/// Answering while the client still sends closes the connection with unread data, and the
/// operating system then resets it: the client sees a broken connection instead of status 413.
const MAX_DISCARD_TIME: Duration = Duration::from_secs(10);

/// The largest buffer that is reserved because a header announces a long body.
const MAX_RESERVED_BYTES: usize = 64 << 10;

/// Reads a body; `None` if it is longer than `limit` bytes.
pub(crate) async fn read_body<B>(mut body: B, limit: usize) -> Result<Option<Vec<u8>>, B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(announced.min(MAX_RESERVED_BYTES));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if announced > limit || bytes.len().saturating_add(data.len()) > limit {
            drop(bytes);
            discard(body).await;
            return Ok(None);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Some(bytes))
}

/// Receives the rest of a body, for a while. Whether that succeeds is the client's affair.
async fn discard<B: Body + Unpin>(mut body: B) {
    let discarding = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = timeout(MAX_DISCARD_TIME, discarding).await;
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        pin::Pin,
        task::{Context, Poll},
    };

    use http_body::Frame;

    use super::*;

    /// A body of `remaining` frames of ten bytes each, after which it may hang.
    struct Frames {
        remaining: usize,
        announced: u64,
        hangs: bool,
    }

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.remaining.checked_sub(1) {
                Some(remaining) => self.remaining = remaining,
                None if self.hangs => return Poll::Pending,
                None => return Poll::Ready(None),
            }
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"0123456789")))))
        }

        fn size_hint(&self) -> http_body::SizeHint {
            let mut hint = http_body::SizeHint::new();
            hint.set_lower(self.announced);
            hint
        }
    }

    async fn read(frames: usize, announced: u64) -> (Option<usize>, usize) {
        let mut body = Frames { remaining: frames, announced, hangs: false };
        let bytes = read_body(&mut body, 30).await.unwrap_or_default();
        (bytes.map(|bytes| bytes.len()), body.remaining)
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_is_received_before_it_is_refused() {
        assert_eq!(read(0, 0).await, (Some(0), 0));
        assert_eq!(read(3, 30).await, (Some(30), 0));
        for announced in [0, 40, 10_000] {
            let read = read(1000, announced).await;
            assert_eq!(read, (None, 0), "the client can finish sending and read the response");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_is_not_awaited_for_ever() {
        let started = tokio::time::Instant::now();
        let body = Frames { remaining: 4, announced: 0, hangs: true };
        assert_eq!(read_body(body, 30).await, Ok(None));
        assert_eq!(started.elapsed(), MAX_DISCARD_TIME);
    }
}
