//! One page of a list: every entry raw, so that one bad tool or prompt does not spoil the others.

use std::borrow::Cow;

use toolyard_core::{JsonCursor, JsonFault, JsonKind, RawJson};

use super::{
    WireError, WireLimits,
    walk::{count, each_field},
};

/// A cursor longer than this is not sent back.
const MAX_CURSOR: usize = 64 << 10;

/// One page of a list of tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolsPage {
    /// The definitions as they came, whatever they are; each is judged on its own later.
    pub tools: Vec<RawJson>,
    /// Where the next page begins, if there is one.
    pub next_cursor: Option<String>,
    /// How long the page may be taken for fresh, and by whom.
    pub caching: Caching,
}

/// What an answer says about keeping it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caching {
    /// For how many milliseconds it may be taken for fresh.
    pub ttl_ms: Option<u64>,
    /// Who may see it; none where nothing is said.
    pub scope: Option<CacheScope>,
}

/// Who may see a kept answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheScope {
    /// Everyone.
    Public,
    /// Whoever has the same authorization.
    Private,
}

/// One page of any list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListPage {
    /// The entries as they came, whatever they are.
    pub entries: Vec<RawJson>,
    /// Where the next page begins, if there is one.
    pub next_cursor: Option<String>,
    /// How long the page may be taken for fresh, and by whom.
    pub caching: Caching,
}

impl ToolsPage {
    /// Reads the result of `tools/list`.
    pub fn read(result: &RawJson, limits: &WireLimits) -> Result<Self, WireError> {
        let ListPage { entries: tools, next_cursor, caching } =
            ListPage::read(result, "tools/list", "tools", limits)?;
        Ok(Self { tools, next_cursor, caching })
    }
}

impl ListPage {
    /// Reads the result of a method that lists something under this key.
    pub fn read(
        result: &RawJson,
        method: &'static str,
        list: &str,
        limits: &WireLimits,
    ) -> Result<Self, WireError> {
        let problem = |problem: &str| WireError::NotAnAnswer { method, problem: problem.to_owned() };
        let mut page = Self::default();
        let (mut has_list, mut too_many) = (false, false);
        let mut cursor = JsonCursor::of(result);
        let is_object = each_field(&mut cursor, |key, cursor| {
            match key {
                key if key == list && cursor.enter_array()? => {
                    has_list = true;
                    // The last of two lists counts, as for every other reader of JSON.
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
                // An empty cursor leads to the first page again.
                "nextCursor" => {
                    let next = cursor.skip()?.string().filter(|next| !next.is_empty());
                    page.next_cursor = next.map(Cow::into_owned);
                }
                _ => page.caching.field(key, cursor)?,
            }
            Ok(())
        })?;
        if !is_object {
            return Err(problem("it is not an object"));
        }
        if too_many {
            return Err(problem(&format!("it has more than {} {list}", limits.tools)));
        }
        if page.next_cursor.as_ref().is_some_and(|next| next.len() > MAX_CURSOR) {
            return Err(problem("its cursor is too long"));
        }
        if has_list { Ok(page) } else { Err(problem(&format!("it has no list `{list}`"))) }
    }
}

impl Caching {
    /// Takes the value of one field, and what it says if it is one of caching.
    pub(super) fn field(&mut self, key: &str, cursor: &mut JsonCursor<'_>) -> Result<(), JsonFault> {
        let value = cursor.skip()?;
        match key {
            "ttlMs" => self.ttl_ms = count(value),
            "cacheScope" => {
                self.scope = value.string().filter(|scope| !scope.is_empty()).map(|scope| {
                    // What nobody knows is shown to nobody else.
                    if scope == "public" { CacheScope::Public } else { CacheScope::Private }
                });
            }
            _ => {}
        }
        Ok(())
    }
}
