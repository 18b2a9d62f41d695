//! Runs work on large values on a blocking thread, so that it does not delay other tasks.

/// Work on values up to this size (bytes or characters) runs on the calling thread, which polls async tasks.
pub(crate) const MAX_SIZE_ON_ASYNC_THREAD: usize = 1 << 20;

/// Runs `work`, on a blocking thread if the value of this size (bytes or characters) is large. `None` if that thread
/// panicked or was shut down.
pub(crate) async fn run_blocking_if_large<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if size <= MAX_SIZE_ON_ASYNC_THREAD {
        return Some(work());
    }
    tokio::task::spawn_blocking(work).await.ok()
}
