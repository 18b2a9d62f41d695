//! Stores whole results, so that a truncated output can refer to the rest.

use serde::Serialize;

use crate::{BoxFuture, DataOwner, ResultRef};

/// A page of a stored result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResultPage {
    /// The text of this page.
    pub text: String,
    /// The byte at which the page starts: 0 or the `next` of an earlier page.
    pub offset: usize,
    /// The byte at which the next page starts; none on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
    /// Size of the whole result in bytes.
    pub total: usize,
}

impl ResultPage {
    /// The page of `whole` that starts at byte `offset`, of at most `limit` bytes but at least one character.
    pub fn of(whole: &str, offset: usize, limit: usize) -> Self {
        let start = whole.floor_char_boundary(offset);
        let rest = whole.get(start..).unwrap_or_default();
        let mut length = rest.floor_char_boundary(limit);
        if length == 0 {
            length = rest.chars().next().map_or(0, char::len_utf8);
        }
        let text = rest.get(..length).unwrap_or_default().to_owned();
        let end = start + text.len();
        Self { text, offset: start, next: (end < whole.len()).then_some(end), total: whole.len() }
    }
}

/// Why a result could not be stored or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// The reference is wrong, the result belongs to another caller, or it was removed (after 7 days, see `[retention]
    /// results`).
    ///
    /// Remedy: copy the reference from the line of the truncated output, or call the tool again.
    #[error("result `{0}` does not exist (it may have been evicted)")]
    NotFound(ResultRef),
    /// The store failed while a result was stored or read.
    ///
    /// Remedy: check the store with `toolyard store check`.
    #[error("failed to store or read a result: {0}")]
    Storage(String),
}

/// Stores whole results and reads them page by page. A reference is no secret: what it refers to is read by its owner and by the
/// operator only.
pub trait Results: Send + Sync {
    /// Stores a text of this owner and returns its reference. Owners never share a reference.
    fn store<'a>(
        &'a self,
        whole: &'a str,
        owner: DataOwner,
    ) -> BoxFuture<'a, Result<ResultRef, ResultsError>>;

    /// Reads a page of at most `limit` bytes from byte `offset`. A result that the reader may not read does not exist for it.
    fn read<'a>(
        &'a self,
        reference: &'a ResultRef,
        reader: DataOwner,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<ResultPage, ResultsError>>;

    /// What is stored, perhaps a minute ago; `None` if it is not counted.
    fn usage(&self) -> BoxFuture<'_, Option<ResultsUsage>> {
        Box::pin(async { None })
    }
}

/// How much is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResultsUsage {
    /// The number of results.
    pub stored: u64,
    /// Their size before compression.
    pub stored_bytes: u64,
    /// How many this process dropped to make room; `None` if that is not counted.
    pub evicted: Option<u64>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn pages_put_together_are_the_whole(whole in "\\PC{0,200}", limit in 0_usize..40) {
            let (mut read, mut offset) = (String::new(), Some(0));
            while let Some(at) = offset {
                let page = ResultPage::of(&whole, at, limit);
                read.push_str(&page.text);
                offset = page.next;
            }
            prop_assert_eq!(read, whole);
        }

        #[test]
        fn any_offset_has_a_page(whole in "\\PC{0,50}", offset: usize, limit: usize) {
            let page = ResultPage::of(&whole, offset, limit);
            prop_assert_eq!(page.total, whole.len());
        }
    }
}
