//! How much of anything the other side may send.

/// Hard limits for one connection. Crossing one is an error at once, never a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireLimits {
    /// Bytes of one message: a line, an event, a body.
    pub message_bytes: usize,
    /// Levels of nesting in one message.
    pub depth: usize,
    /// Bytes of one line that is no message (a log line on stdout, a header line of an event).
    pub noise_bytes: usize,
    /// Tools in one list, over all its pages.
    pub tools: usize,
    /// Bytes of all pages of one list.
    pub list_bytes: usize,
    /// Pages of one list.
    pub pages: usize,
    /// Messages that are waited for at once on one connection.
    pub in_flight: usize,
}

impl Default for WireLimits {
    fn default() -> Self {
        Self {
            message_bytes: 16 << 20,
            depth: 128,
            noise_bytes: 64 << 10,
            tools: 5_000,
            list_bytes: 8 << 20,
            pages: 1_000,
            in_flight: 4_096,
        }
    }
}
