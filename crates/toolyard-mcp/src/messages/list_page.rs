//! [`ListPage`]: a page of a list. Entries stay raw, so an invalid one does not affect the others.

use std::borrow::Cow;

use toolyard_core::{JsonCursor, JsonKind, RawJson};

use crate::{WireError, WireLimits, json::each_field};

/// Longer cursors are rejected.
const MAX_CURSOR_BYTES: usize = 64 << 10;

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListPage {
    /// The raw entries.
    pub entries: Vec<RawJson>,
    /// The cursor of the next page.
    pub next_cursor: Option<String>,
}

impl ListPage {
    /// Decodes the result of a list method; `list` is the field with the entries.
    pub fn read(
        result: &RawJson,
        method: &'static str,
        list: &str,
        limits: &WireLimits,
    ) -> Result<Self, WireError> {
        let invalid_result = |problem: &str| WireError::InvalidResult { method, problem: problem.to_owned() };
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
                        let entry = cursor.next_value()?;
                        too_many |= page.entries.len() == limits.list_entries;
                        if !too_many {
                            page.entries.push(result.part(entry));
                        }
                    }
                }
                key if key == list => has_list = cursor.next_value()?.kind() == JsonKind::Null,
                // An empty cursor would restart the list.
                "nextCursor" => {
                    let next = cursor.next_value()?.string().filter(|next| !next.is_empty());
                    page.next_cursor = next.map(Cow::into_owned);
                }
                _ => drop(cursor.next_value()?),
            }
            Ok(())
        })?;
        if !is_object {
            return Err(invalid_result("not an object"));
        }
        if too_many {
            return Err(invalid_result(&format!("more than {} {list}", limits.list_entries)));
        }
        if page.next_cursor.as_ref().is_some_and(|next| next.len() > MAX_CURSOR_BYTES) {
            return Err(invalid_result("cursor is too long"));
        }
        if has_list { Ok(page) } else { Err(invalid_result(&format!("`{list}` is missing or not a list"))) }
    }
}
