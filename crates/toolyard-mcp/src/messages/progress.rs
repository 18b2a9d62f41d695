//! [`Progress`]: the parameters of `notifications/progress`.

use toolyard_core::{JsonCursor, RawJson};

use crate::json::{each_field, truncated_text};

/// Longer messages are truncated.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// The progress of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// The progress token, which is a request id; none if it is not a number.
    pub token: Option<u64>,
    /// The progress so far.
    pub progress: f64,
    /// The final value, if known.
    pub total: Option<f64>,
    /// What the request is doing.
    pub message: Option<String>,
}

impl Progress {
    /// Decodes the parameters; invalid fields are omitted.
    pub fn read(params: &RawJson) -> Self {
        let mut progress = Self::default();
        // Fields before a syntax error count.
        let _ = each_field(&mut JsonCursor::of(params), |key, cursor| {
            match key {
                "progressToken" => progress.token = cursor.next_value()?.number(),
                "progress" => progress.progress = cursor.next_value()?.number().unwrap_or(0.0),
                "total" => progress.total = cursor.next_value()?.number(),
                "message" => progress.message = truncated_text(cursor, MAX_MESSAGE_BYTES)?,
                _ => drop(cursor.next_value()?),
            }
            Ok(())
        });
        progress
    }
}
