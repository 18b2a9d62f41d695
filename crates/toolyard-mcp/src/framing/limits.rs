//! [`WireLimits`]: how much the other side may send.

/// Hard limits of a connection. Exceeding one is an error at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireLimits {
    /// Bytes of a message: a line, an event or a body.
    pub message_bytes: usize,
    /// Nesting levels of a message.
    pub depth: usize,
    /// Bytes of a line that is not a message, such as a log line on stdout or a header line of an event.
    pub noise_bytes: usize,
    /// Entries of a list, over all pages.
    pub list_entries: usize,
    /// Bytes of a list, over all pages.
    pub list_bytes: usize,
    /// Pages of a list.
    pub pages: usize,
    /// Concurrent requests of a connection.
    pub in_flight: usize,
}

impl Default for WireLimits {
    fn default() -> Self {
        Self {
            message_bytes: 16 << 20,
            depth: 128,
            noise_bytes: 64 << 10,
            list_entries: 5_000,
            list_bytes: 8 << 20,
            pages: 1_000,
            in_flight: 4_096,
        }
    }
}
