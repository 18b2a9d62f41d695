//! The way of a second look: what was done on it, in words, and how much more may be looked at.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use crate::prompt::fence;

/// More values than this are not looked at, all ways together.
pub(super) const MAX_LOOKS: usize = 50_000;
/// More bytes of texts than this are not read as JSON.
const MAX_READ: usize = 32 << 20;
/// Longer names are cut where they are told.
const LONGEST_NAME: usize = 40;
/// Longer notes are cut.
const LONGEST_NOTE: usize = 200;

/// The way so far, and how much may still be looked at.
pub(super) struct Trail {
    /// In words, what was done.
    pub(super) how: Vec<String>,
    looks: usize,
    bytes: usize,
    pub(super) is_exhausted: bool,
    /// Texts that were read as JSON, by where they lie: several ways lead to the same one.
    read: HashMap<(usize, usize), Option<Arc<Value>>>,
}

impl Default for Trail {
    fn default() -> Self {
        let (how, read) = (Vec::new(), HashMap::new());
        Self { how, looks: MAX_LOOKS, bytes: MAX_READ, is_exhausted: false, read }
    }
}

impl Trail {
    /// Names in it come from servers: whoever decides by it must not take them for our words.
    pub(super) fn say(&mut self, what: impl Into<String>) {
        self.how.push(fence::escaped(&fence::one_line(&what.into())).chars().take(LONGEST_NOTE).collect());
    }

    /// Whether so much more may be looked at.
    pub(super) fn may_look(&mut self, looks: usize) -> bool {
        match self.looks.checked_sub(looks) {
            Some(left) => self.looks = left,
            None => self.is_exhausted = true,
        }
        !self.is_exhausted
    }

    /// A text read as JSON, once however many ways lead to it.
    pub(super) fn json(&mut self, text: &str) -> Option<Arc<Value>> {
        let place = (text.as_ptr().addr(), text.len());
        if let Some(known) = self.read.get(&place) {
            return known.clone();
        }
        let Some(left) = self.bytes.checked_sub(text.len()) else {
            self.is_exhausted = true;
            return None;
        };
        self.bytes = left;
        let read = serde_json::from_str(text).ok().map(Arc::new);
        // What was read is kept until the search is over, so that its texts stay where they are.
        self.read.insert(place, read.clone());
        read
    }
}

/// A name that a server gave, as it is told to people.
pub(crate) fn short(name: &str) -> String {
    let plain =
        |letter: char| if letter.is_alphanumeric() || "_-.:/".contains(letter) { letter } else { '_' };
    let mut shown: String = name.chars().take(LONGEST_NAME).map(plain).collect();
    if shown.len() < name.len() && name.chars().nth(LONGEST_NAME).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_once_however_many_ways_lead_to_it() {
        let text = format!("[{}1]", "1,".repeat(1_000));
        let mut trail = Trail::default();
        let (once, again) = (trail.json(&text).unwrap(), trail.json(&text).unwrap());
        assert!(Arc::ptr_eq(&once, &again));
        assert_eq!(trail.bytes, MAX_READ - text.len());
        let mut trail = Trail { bytes: 10, ..Trail::default() };
        assert!(trail.json(&text).is_none() && trail.is_exhausted);
    }
}
