//! The end of what a server says on its side channel, kept in a fixed amount of memory and made harmless when read.

use std::{
    collections::VecDeque,
    fmt,
    iter::Peekable,
    str::Chars,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::io::{AsyncRead, AsyncReadExt};
use toolyard_core::redact;

/// How much is remembered if nobody says otherwise.
const BYTES: usize = 16 << 10;
/// How much is read at once.
const CHUNK: usize = 4 << 10;
/// Values shorter than this are too likely to be ordinary words.
const SHORTEST_SECRET: usize = 6;
const SECRET: &str = "[redacted:environment]";

/// The end of a server's stderr, and of what it said on stdout that is no message. May outlive the connection: give the
/// same one to the next connection of a server, and its log goes on.
pub struct LastWords {
    limit: usize,
    secrets: Vec<String>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// Whether something before these bytes is gone.
    cut: bool,
    /// Complete lines ever said.
    lines: u64,
}

impl Default for LastWords {
    fn default() -> Self {
        Self::new(BYTES, Vec::new())
    }
}

impl LastWords {
    /// Keeps this many bytes. Nothing of `secrets` (values handed to the server) is ever shown.
    pub fn new(limit: usize, mut secrets: Vec<String>) -> Self {
        secrets.retain(|secret| secret.len() >= SHORTEST_SECRET);
        // The longest first, in case one is a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { limit, secrets, kept: Mutex::default() }
    }

    /// What was said last, without control characters and secrets.
    pub fn text(&self) -> String {
        let (bytes, _) = self.snapshot();
        self.harmless(&bytes).trim().to_owned()
    }

    /// The complete lines after the first `known` ones, as far as they are still kept, and the number to ask with next.
    pub fn lines_after(&self, known: u64) -> (u64, Vec<String>) {
        let (bytes, total) = self.snapshot();
        let text = self.harmless(&bytes);
        let mut lines: Vec<&str> = text.split('\n').collect();
        // The last one has no end yet.
        lines.pop();
        let new = usize::try_from(total.saturating_sub(known)).unwrap_or(usize::MAX);
        let skipped = lines.len().saturating_sub(new);
        (total, lines.into_iter().skip(skipped).map(|line| line.trim_end().to_owned()).collect())
    }

    /// Takes note of one line.
    pub(super) fn note(&self, line: &str) {
        let mut kept = self.kept();
        kept.push(line.as_bytes(), self.limit);
        kept.push(b"\n", self.limit);
    }

    /// Takes note of everything there is to read, as fast as it comes: a flood costs no memory and holds nobody up.
    pub(super) async fn fill(&self, mut reader: impl AsyncRead + Unpin) {
        let mut chunk = vec![0_u8; CHUNK];
        while let Ok(count @ 1..) = reader.read(&mut chunk).await {
            self.kept().push(chunk.get(..count).unwrap_or_default(), self.limit);
        }
    }

    /// The bytes from the start of a line, and how many lines there ever were.
    fn snapshot(&self) -> (Vec<u8>, u64) {
        let kept = self.kept();
        let mut bytes: Vec<u8> = kept.bytes.iter().copied().collect();
        if kept.cut {
            // Half a line could be the second half of a secret, whose first half would give it away.
            let start = memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |end| end + 1);
            bytes.drain(..start);
        }
        (bytes, kept.lines)
    }

    fn harmless(&self, bytes: &[u8]) -> String {
        // Nearly all servers never said anything; what looks for secrets need not be made for them.
        if bytes.is_empty() {
            return String::new();
        }
        let mut text = without_controls(&String::from_utf8_lossy(bytes));
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), SECRET);
            }
        }
        redact(&text).into_owned()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn push(&mut self, bytes: &[u8], limit: usize) {
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        let excess = (self.bytes.len() + bytes.len()).saturating_sub(limit);
        self.cut |= excess > 0;
        self.bytes.drain(..excess.min(self.bytes.len()));
        let start = bytes.len().saturating_sub(limit);
        self.bytes.extend(bytes.get(start..).unwrap_or_default());
    }
}

impl fmt::Debug for LastWords {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.kept();
        formatter
            .debug_struct("LastWords")
            .field("bytes", &kept.bytes.len())
            .field("lines", &kept.lines)
            .finish()
    }
}

/// The text without terminal sequences, control characters and characters that hide or turn words.
fn without_controls(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' | '\t' => clean.push(letter),
            '\u{1b}' => skip_sequence(&mut letters),
            _ if letter.is_control() || is_invisible(letter) => {}
            _ => clean.push(letter),
        }
    }
    clean
}

/// Skips the rest of a terminal sequence: `ESC [ 31 m`, or `ESC ] … BEL` up to the end of its line.
fn skip_sequence(letters: &mut Peekable<Chars<'_>>) {
    if letters.next_if_eq(&'[').is_some() {
        while letters.next_if(|letter| matches!(letter, ' '..='?')).is_some() {}
        letters.next_if(|letter| matches!(letter, '@'..='~'));
    } else if letters.next_if_eq(&']').is_some() {
        while letters.next_if(|letter| !matches!(letter, '\u{7}' | '\u{1b}' | '\n')).is_some() {}
    }
}

fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
#[path = "last_words_tests.rs"]
mod tests;
