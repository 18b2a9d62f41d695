//! [`ListPage`]: a page of a list. Entries stay raw, so an invalid one does not affect the others.

use std::borrow::Cow;

use toolyard_core::{JsonCursor, JsonError, JsonKind, RawJson};

use crate::{
    WireError, WireLimits,
    json::{each_field, unsigned_number},
};

/// Longer cursors are rejected.
const MAX_CURSOR_BYTES: usize = 64 << 10;

/// How a result may be cached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheHints {
    /// How many milliseconds it stays fresh.
    pub ttl_ms: Option<u64>,
    /// Who may share it; none if undeclared.
    pub scope: Option<CacheScope>,
}

/// Who may share a cached result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheScope {
    /// All clients.
    Public,
    /// Clients with the same authorization.
    Private,
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListPage {
    /// The raw entries.
    pub entries: Vec<RawJson>,
    /// The cursor of the next page.
    pub next_cursor: Option<String>,
    /// How the page may be cached.
    pub caching: CacheHints,
}

impl ListPage {
    /// Decodes the result of a list method; `list` is the field with the entries.
    pub fn read(
        result: &RawJson,
        method: &'static str,
        list: &str,
        limits: &WireLimits,
    ) -> Result<Self, WireError> {
        let problem = |problem: &str| WireError::InvalidResult { method, problem: problem.to_owned() };
        let mut page = Self::default();
        let (mut has_list, mut too_many) = (false, false);
        let mut cursor = JsonCursor::of(result);
        let is_object = each_field(&mut cursor, |key, cursor| {
            match key {
                key if key == list && cursor.enter_array()? => {
                    has_list = true;
                    // The last of two lists counts, as in other JSON parsers.
                    page.entries.clear();
                    while cursor.next_item()? {
                        let entry = cursor.skip()?;
                        too_many |= page.entries.len() == limits.tools;
                        if !too_many {
                            page.entries.push(result.part(entry));
                        }
                    }
                }
                key if key == list => has_list = cursor.skip()?.kind() == JsonKind::Null,
                // An empty cursor would restart the list.
                "nextCursor" => {
                    let next = cursor.skip()?.string().filter(|next| !next.is_empty());
                    page.next_cursor = next.map(Cow::into_owned);
                }
                _ => page.caching.field(key, cursor)?,
            }
            Ok(())
        })?;
        if !is_object {
            return Err(problem("not an object"));
        }
        if too_many {
            return Err(problem(&format!("more than {} {list}", limits.tools)));
        }
        if page.next_cursor.as_ref().is_some_and(|next| next.len() > MAX_CURSOR_BYTES) {
            return Err(problem("cursor is too long"));
        }
        if has_list { Ok(page) } else { Err(problem(&format!("list `{list}` is missing"))) }
    }
}

impl CacheHints {
    /// Consumes the value of a field and stores it if it is about caching.
    pub(super) fn field(&mut self, key: &str, cursor: &mut JsonCursor<'_>) -> Result<(), JsonError> {
        let value = cursor.skip()?;
        match key {
            "ttlMs" => self.ttl_ms = unsigned_number(value),
            "cacheScope" => {
                self.scope = value.string().filter(|scope| !scope.is_empty()).map(|scope| {
                    // Unknown scopes are private.
                    if scope == "public" { CacheScope::Public } else { CacheScope::Private }
                });
            }
            _ => {}
        }
        Ok(())
    }
}
