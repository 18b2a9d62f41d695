//! Pages of long lists: `limit`, and the cursor of the previous page as `after`.

use crate::agents::ApiError;

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 500;

/// The number of entries of a page.
pub(crate) fn page_limit(limit: Option<usize>) -> Result<usize, ApiError> {
    limit_or(limit, DEFAULT_LIMIT)
}

/// The number of entries of a page of a list that is usually read whole.
pub(crate) fn long_page_limit(limit: Option<usize>) -> Result<usize, ApiError> {
    limit_or(limit, MAX_LIMIT)
}

fn limit_or(limit: Option<usize>, default: usize) -> Result<usize, ApiError> {
    match limit.unwrap_or(default) {
        limit @ 1..=MAX_LIMIT => Ok(limit),
        _ => Err(ApiError::invalid_param("limit", format!("`limit` must be between 1 and {MAX_LIMIT}"))),
    }
}

/// Keeps the first entries of a list that was read with one entry more than the page has. Returns the cursor of the last one
/// that is kept, if others follow.
pub(crate) fn cut_page<T>(
    entries: &mut Vec<T>,
    limit: usize,
    cursor: impl Fn(&T) -> String,
) -> Option<String> {
    if entries.len() <= limit {
        return None;
    }
    entries.truncate(limit);
    entries.last().map(cursor)
}
