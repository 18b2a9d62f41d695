//! Parses text as it arrives and holds back only what may be the beginning of a call.

use std::{cell::Cell, fmt};

use super::{ParsedText, element::ParseContext, scanner::Scanner};

/// Up to this length, pending text is scanned again with every piece.
const MAX_EAGER_BYTES: usize = 4 << 10;

/// Longer pending text is scanned again when it has grown by this part of its length.
const RESCAN_DIVISOR: usize = 32;

/// Splits streamed text into visible text and calls. In the end it has found what
/// [`parse_tool_calls`](super::parse_tool_calls) finds in the whole text, and the pieces that it returned make up
/// [`ParsedText::text`].
///
/// ```
/// use toolyard_model::tool_call_parser::StreamingParser;
///
/// let mut parser = StreamingParser::new(|name| name == "get_time");
/// assert_eq!(parser.push("One moment. <tool"), "One moment.");
/// assert_eq!(parser.push("_call>{\"name\": \"get_time\", \"argu"), "");
/// assert_eq!(parser.push("ments\": {}}</tool_call>"), "");
/// let (text, parsed) = parser.finish();
/// assert_eq!((text.as_str(), parsed.calls.len()), ("", 1));
/// assert_eq!(parsed.text, "One moment.");
/// ```
pub struct StreamingParser {
    is_tool: Box<dyn Fn(&str) -> bool + Send + Sync>,
    scanner: Scanner,
    /// Text that may be the beginning of a call.
    pending: String,
    /// The length of `pending` when it was last scanned.
    scanned_bytes: usize,
    /// All visible text so far.
    text: String,
}

impl fmt::Debug for StreamingParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamingParser").field("pending", &self.pending).finish_non_exhaustive()
    }
}

impl StreamingParser {
    /// A parser at the beginning of a text. `is_tool` tells the names of known tools.
    pub fn new(is_tool: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self {
            is_tool: Box::new(is_tool),
            scanner: Scanner::default(),
            pending: String::new(),
            scanned_bytes: 0,
            text: String::new(),
        }
    }

    /// Adds text and returns the text that can be shown now.
    pub fn push(&mut self, text: &str) -> String {
        self.pending.push_str(text);
        // Scanning starts at the beginning of the pending text, so a long call is not scanned with every piece of it.
        let growth = self.pending.len().saturating_sub(self.scanned_bytes);
        if self.pending.len() > MAX_EAGER_BYTES && growth < self.scanned_bytes / RESCAN_DIVISOR {
            return String::new();
        }
        let is_final = false;
        self.scan(is_final)
    }

    /// Whether a call was found so far, complete or not.
    pub fn has_calls(&self) -> bool {
        self.scanner.has_calls()
    }

    /// Ends the text. Returns the rest of the visible text, and the whole result.
    pub fn finish(mut self) -> (String, ParsedText) {
        let is_final = true;
        let rest = self.scan(is_final);
        let parsed = ParsedText { text: self.text, ..self.scanner.into_parsed() };
        (rest, parsed)
    }

    fn scan(&mut self, is_final: bool) -> String {
        let unterminated_calls = Cell::new(0);
        let context = ParseContext {
            is_tool: self.is_tool.as_ref(),
            is_final,
            unterminated_calls: &unterminated_calls,
        };
        let used = self.scanner.scan(&self.pending, context);
        self.pending.drain(..used);
        self.scanned_bytes = self.pending.len();
        let text = self.scanner.take_text();
        self.text.push_str(&text);
        text
    }
}
