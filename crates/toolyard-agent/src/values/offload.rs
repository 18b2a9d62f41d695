//! Runs work on large values on a blocking thread, so that it does not delay other tasks.

/// Work on values up to this size, in bytes or characters, runs inline.
pub(crate) const MAX_INLINE_VALUE_BYTES: usize = 1 << 20;

/// Runs `work`, on a blocking thread if `size` is large. `None` if that thread panicked or was shut down.
pub(crate) async fn offload<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if size <= MAX_INLINE_VALUE_BYTES {
        return Some(work());
    }
    tokio::task::spawn_blocking(work).await.ok()
}
