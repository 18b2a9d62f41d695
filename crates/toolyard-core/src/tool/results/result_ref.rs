//! References to stored results.

use std::sync::Arc;

use crate::text_id::text_id;

const URI_PREFIX: &str = "toolyard://results/";

text_id! {
    /// The short name of a stored result, such as `r_7f3k2m`.
    ResultRef
}

impl ResultRef {
    /// The reference with this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The URI at which MCP clients can read the result: `toolyard://results/r_7f3k2m`.
    pub fn uri(&self) -> String {
        format!("{URI_PREFIX}{self}")
    }

    /// Splits a URI into the reference and what follows it (such as `?offset=9`); none if it is the URI of something else.
    pub fn from_uri(uri: &str) -> Option<(Self, &str)> {
        let rest = uri.strip_prefix(URI_PREFIX)?;
        let end = rest.find(['?', '#', '/']).unwrap_or(rest.len());
        let (name, suffix) = rest.split_at_checked(end)?;
        (!name.is_empty()).then(|| (Self::new(name), suffix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_identifies_its_result() {
        let reference = ResultRef::new("r_7f3k");
        assert_eq!(reference.uri(), "toolyard://results/r_7f3k");
        assert_eq!(ResultRef::from_uri(&reference.uri()), Some((reference.clone(), "")));
        let second = ResultRef::from_uri("toolyard://results/r_7f3k?offset=9");
        assert_eq!(second, Some((reference, "?offset=9")));
        assert_eq!(ResultRef::from_uri("toolyard://results/"), None);
        assert_eq!(ResultRef::from_uri("file:///etc/passwd"), None);
    }
}
