//! Reading the body of a request within a limit of size.

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;

/// How much of a body that is too long is read and dropped, as a multiple of the limit.
///
/// Answering while the client still sends closes the connection with unread data, and the
/// operating system then resets it: the client sees a broken connection instead of status 413.
const DISCARDED_LIMITS: usize = 4;

/// The largest buffer that is reserved because a header announces a long body.
const MAX_RESERVED_BYTES: usize = 64 << 10;

/// Reads a body; `None` if it is longer than `limit` bytes.
pub(crate) async fn read_body<B>(mut body: B, limit: usize) -> Result<Option<Vec<u8>>, B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    let discarded_up_to = limit.saturating_mul(DISCARDED_LIMITS);
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > discarded_up_to {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(announced.min(MAX_RESERVED_BYTES));
    let mut received = 0_usize;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        received = received.saturating_add(data.len());
        if received > discarded_up_to {
            break;
        }
        if received <= limit {
            bytes.extend_from_slice(&data);
        } else {
            bytes = Vec::new();
        }
    }
    Ok((received <= limit).then_some(bytes))
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

    /// A body of `remaining` frames of ten bytes each.
    struct Frames {
        remaining: usize,
        announced: u64,
    }

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let Some(remaining) = self.remaining.checked_sub(1) else { return Poll::Ready(None) };
            self.remaining = remaining;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"0123456789")))))
        }

        fn size_hint(&self) -> http_body::SizeHint {
            let mut hint = http_body::SizeHint::new();
            hint.set_lower(self.announced);
            hint
        }
    }

    async fn read(frames: usize, announced: u64) -> (Option<usize>, usize) {
        let mut body = Frames { remaining: frames, announced };
        let bytes = read_body(&mut body, 30).await.unwrap_or_default();
        (bytes.map(|bytes| bytes.len()), body.remaining)
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_is_received_before_it_is_refused() {
        assert_eq!(read(0, 0).await, (Some(0), 0));
        assert_eq!(read(3, 30).await, (Some(30), 0));
        assert_eq!(read(4, 40).await, (None, 0), "the client can finish sending and read the response");
        assert_eq!(read(12, 0).await, (None, 0));
    }

    #[tokio::test]
    async fn an_endless_body_is_not_received_to_its_end() {
        assert_eq!(read(1000, 0).await, (None, 1000 - 13));
        assert_eq!(read(1000, 10_000).await, (None, 1000), "announced: nothing is received");
    }
}
