//! Notes and work budget of a fuzzy lookup.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use crate::escape;

/// Values that one lookup may visit over all its attempts.
pub(super) const MAX_VISITS: usize = 50_000;
/// Bytes of strings that one lookup may parse as JSON.
const MAX_PARSED_BYTES: usize = 32 << 20;
/// Characters of a name shown in a note.
const MAX_NAME_CHARS: usize = 40;
const MAX_NOTE_CHARS: usize = 200;

/// What a fuzzy lookup did so far, and its remaining work budget.
pub(super) struct LookupTrace {
    /// One note per deviation from the written path.
    pub(super) notes: Vec<String>,
    visits_left: usize,
    bytes_left: usize,
    pub(super) is_exhausted: bool,
    /// Parsed strings by address and length, because several attempts reach the same string.
    parsed: HashMap<(usize, usize), Option<Arc<Value>>>,
}

impl Default for LookupTrace {
    fn default() -> Self {
        Self {
            notes: Vec::new(),
            visits_left: MAX_VISITS,
            bytes_left: MAX_PARSED_BYTES,
            is_exhausted: false,
            parsed: HashMap::new(),
        }
    }
}

impl LookupTrace {
    /// Adds a note. It is escaped because the names in it come from servers and an approver reads it.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(
            escape::markup(&escape::sanitized_line(&note.into())).chars().take(MAX_NOTE_CHARS).collect(),
        );
    }

    /// Spends visits; false once the budget is exhausted.
    pub(super) fn spend_visits(&mut self, visits: usize) -> bool {
        match self.visits_left.checked_sub(visits) {
            Some(left) => self.visits_left = left,
            None => self.is_exhausted = true,
        }
        !self.is_exhausted
    }

    /// Parses a string as JSON, at most once per string.
    pub(super) fn parse_json(&mut self, text: &str) -> Option<Arc<Value>> {
        let address = (text.as_ptr().addr(), text.len());
        if let Some(known) = self.parsed.get(&address) {
            return known.clone();
        }
        let Some(left) = self.bytes_left.checked_sub(text.len()) else {
            self.is_exhausted = true;
            return None;
        };
        self.bytes_left = left;
        let parsed = serde_json::from_str(text).ok().map(Arc::new);
        // Keeping the parsed value alive keeps the addresses of its strings valid.
        self.parsed.insert(address, parsed.clone());
        parsed
    }
}

/// A server-defined name as shown to users: bounded, unusual characters replaced.
pub(crate) fn display_name(name: &str) -> String {
    let replace_unusual =
        |letter: char| if letter.is_alphanumeric() || "_-.:/".contains(letter) { letter } else { '_' };
    let mut shown: String = name.chars().take(MAX_NAME_CHARS).map(replace_unusual).collect();
    if shown.len() < name.len() && name.chars().nth(MAX_NAME_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_parsed_once() {
        let text = format!("[{}1]", "1,".repeat(1_000));
        let mut trace = LookupTrace::default();
        let (once, again) = (trace.parse_json(&text).unwrap(), trace.parse_json(&text).unwrap());
        assert!(Arc::ptr_eq(&once, &again));
        assert_eq!(trace.bytes_left, MAX_PARSED_BYTES - text.len());
        let mut trace = LookupTrace { bytes_left: 10, ..LookupTrace::default() };
        assert!(trace.parse_json(&text).is_none() && trace.is_exhausted);
    }
}
