//! An HTTP answer, whoever carried the request: our own connections for plain HTTP, reqwest for everything else.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderMap, StatusCode};
use url::Url;

use super::{TransportError, http_caller::broken, http_plain::PlainAnswer};

/// How long after its answer a stream may take to end, and what it may still say: a connection whose stream has ended can be
/// used again, one that is cut off cannot.
const LAST_MOMENT: Duration = Duration::from_millis(200);
const MOST_AFTERWARDS: usize = 64 << 10;

/// After so many bytes whoever reads takes a breath: limits on time are looked at by the same task.
const BREATH: usize = 128 << 10;

/// An answer whose body can be read.
#[derive(Debug)]
pub(super) struct HttpAnswer {
    /// Where it came from in the end.
    pub(super) url: Url,
    way: Way,
    /// Bytes since the last breath.
    read: usize,
}

#[derive(Debug)]
enum Way {
    Plain(PlainAnswer),
    /// With the piece of the body that was lent out.
    Reqwest(reqwest::Response, Bytes),
}

impl HttpAnswer {
    pub(super) fn plain(url: Url, answer: PlainAnswer) -> Self {
        Self { url, way: Way::Plain(answer), read: 0 }
    }

    pub(super) fn reqwest(answer: reqwest::Response) -> Self {
        Self { url: answer.url().clone(), way: Way::Reqwest(answer, Bytes::new()), read: 0 }
    }

    pub(super) fn status(&self) -> StatusCode {
        match &self.way {
            Way::Plain(answer) => answer.status,
            Way::Reqwest(answer, _) => answer.status(),
        }
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        match &self.way {
            Way::Plain(answer) => &answer.headers,
            Way::Reqwest(answer, _) => answer.headers(),
        }
    }

    /// How long the body will be, if that was said.
    pub(super) fn announced(&self) -> Option<u64> {
        match &self.way {
            Way::Plain(answer) => answer.announced(),
            Way::Reqwest(answer, _) => answer.content_length(),
        }
    }

    /// The next piece of the body; none at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<&[u8]>, TransportError> {
        if self.read > BREATH {
            self.read = 0;
            tokio::task::yield_now().await;
        }
        let chunk = match &mut self.way {
            Way::Plain(answer) => answer.chunk().await?,
            Way::Reqwest(answer, lent) => match answer.chunk().await.map_err(broken)? {
                Some(chunk) => {
                    *lent = chunk;
                    Some(&**lent)
                }
                None => None,
            },
        };
        self.read += chunk.map_or(0, <[u8]>::len);
        Ok(chunk)
    }

    /// Gives up the rest of a body that has given what it was read for, without waiting for its end.
    pub(super) fn leave(self) {
        match self.way {
            Way::Plain(answer) => answer.leave(),
            Way::Reqwest(answer, _) => leave(answer),
        }
    }
}

fn leave(mut answer: reqwest::Response) {
    let rest = async move {
        let mut bytes = 0_usize;
        while let Ok(Some(chunk)) = answer.chunk().await {
            bytes = bytes.saturating_add(chunk.len());
            if bytes > MOST_AFTERWARDS {
                break;
            }
        }
    };
    let mut rest = Box::pin(tokio::time::timeout(LAST_MOMENT, rest));
    // Most often the end has come together with the answer.
    if rest.as_mut().now_or_never().is_none() {
        tokio::spawn(rest);
    }
}
