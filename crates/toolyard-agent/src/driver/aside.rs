//! Work on large values, done where nobody else has to wait for it.

/// What is larger, in bytes or characters, is worked on by a thread of its own.
pub(crate) const LARGE: usize = 1 << 20;

/// Does something with so much data; none if that did not come to an end.
pub(crate) async fn aside<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if size <= LARGE {
        return Some(work());
    }
    tokio::task::spawn_blocking(work).await.ok()
}
