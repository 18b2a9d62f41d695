//! News about a request that is still going on: `notifications/progress`.

use toolyard_core::{JsonCursor, RawJson};

use super::walk::{each_field, short_text};

/// What is said about the progress is kept up to this many bytes.
const MAX_MESSAGE: usize = 4 << 10;

/// How far a request has got.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// The number we gave the request as its token; none if it is nobody's.
    pub token: Option<u64>,
    /// How far it is.
    pub progress: f64,
    /// How far it will go, if that is known.
    pub total: Option<f64>,
    /// What it is doing.
    pub message: Option<String>,
}

impl Progress {
    /// Reads the parameters of the notification; what is wrong in them is left out.
    pub fn read(params: &RawJson) -> Self {
        let mut news = Self::default();
        // What was read before a fault counts; after it there is nothing anyway.
        let _ = each_field(&mut JsonCursor::of(params), |key, cursor| {
            match key {
                "progressToken" => news.token = cursor.skip()?.number(),
                "progress" => news.progress = cursor.skip()?.number().unwrap_or(0.0),
                "total" => news.total = cursor.skip()?.number(),
                "message" => news.message = short_text(cursor, MAX_MESSAGE)?,
                _ => drop(cursor.skip()?),
            }
            Ok(())
        });
        news
    }
}
