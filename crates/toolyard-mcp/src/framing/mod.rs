//! Splits byte streams into messages, within limits.

mod limits;
mod lines;

pub use limits::WireLimits;
pub use lines::{Line, LineError, LineReader};
