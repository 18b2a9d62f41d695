//! The longest message, however it is sent.

/// The longest message in bytes. It is put together in memory.
pub(crate) const MAX_MESSAGE_LENGTH: usize = 64 << 20;
