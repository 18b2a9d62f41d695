//! Whole results kept under a short name, so that a cut answer can say where the rest is.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::BoxFuture;

const ADDRESS: &str = "toolyard://results/";

/// The short name of a kept result, such as `r_7f3k2m`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResultRef(Arc<str>);

impl ResultRef {
    /// A reference with this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where clients of a door can read it: `toolyard://results/r_7f3k2m`.
    pub fn address(&self) -> String {
        format!("{ADDRESS}{self}")
    }

    /// The result at an address, and what stands behind its name there; none for another address.
    pub fn of_address(address: &str) -> Option<(Self, &str)> {
        let rest = address.strip_prefix(ADDRESS)?;
        let end = rest.find(['?', '#', '/']).unwrap_or(rest.len());
        let (name, more) = rest.split_at_checked(end)?;
        (!name.is_empty()).then(|| (Self::new(name), more))
    }
}

impl fmt::Display for ResultRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A part of a kept result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResultPage {
    /// The text of this page.
    pub text: String,
    /// Where the page begins, in bytes; a number given by an earlier page's `next`.
    pub offset: usize,
    /// Where the next page begins; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
    /// Size of the whole in bytes.
    pub total: usize,
}

impl ResultPage {
    /// The page of `whole` that begins at byte `offset` and holds at most `limit` bytes (at least one character).
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

/// Why a kept result could not be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// No such result, or no longer.
    #[error("there is no result `{0}` (it may have been dropped to make room)")]
    Unknown(ResultRef),
    /// The place where results are kept failed.
    #[error("failed to keep or read a result: {0}")]
    Failed(String),
}

/// Keeps whole results and pages through them.
pub trait Results: Send + Sync {
    /// Keeps a text and names it.
    fn keep<'a>(&'a self, whole: &'a str) -> BoxFuture<'a, Result<ResultRef, ResultsError>>;

    /// Reads a page of at most `limit` bytes from byte `offset` on.
    fn read<'a>(
        &'a self,
        reference: &'a ResultRef,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<ResultPage, ResultsError>>;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_leads_to_its_result() {
        let reference = ResultRef::new("r_7f3k");
        assert_eq!(reference.address(), "toolyard://results/r_7f3k");
        assert_eq!(ResultRef::of_address(&reference.address()), Some((reference.clone(), "")));
        let second = ResultRef::of_address("toolyard://results/r_7f3k?offset=9");
        assert_eq!(second, Some((reference, "?offset=9")));
        assert_eq!(ResultRef::of_address("toolyard://results/"), None);
        assert_eq!(ResultRef::of_address("file:///etc/passwd"), None);
    }

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
        fn any_offset_is_answered(whole in "\\PC{0,50}", offset: usize, limit: usize) {
            let page = ResultPage::of(&whole, offset, limit);
            prop_assert_eq!(page.total, whole.len());
        }
    }
}
