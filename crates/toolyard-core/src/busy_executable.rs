//! Retrying to start an executable that is still open for writing.

use std::{io, time::Duration};

const MAX_ATTEMPTS: u32 = 10;
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// How long to wait before starting a program again after attempt number `attempt` (from 1) failed; `None` to give up.
///
/// `ETXTBSY` is transient: an executable cannot start while a file descriptor for writing it is open, and a concurrent
/// fork of this process may hold such a descriptor until it execs.
pub fn busy_executable_delay(error: &io::Error, attempt: u32) -> Option<Duration> {
    (error.kind() == io::ErrorKind::ExecutableFileBusy && attempt < MAX_ATTEMPTS).then_some(RETRY_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_busy_executable_is_retried_and_not_forever() {
        let busy = io::Error::from(io::ErrorKind::ExecutableFileBusy);
        assert_eq!(busy_executable_delay(&busy, 1), Some(RETRY_DELAY));
        assert_eq!(busy_executable_delay(&busy, MAX_ATTEMPTS), None);
        assert_eq!(busy_executable_delay(&io::ErrorKind::NotFound.into(), 1), None);
    }
}
