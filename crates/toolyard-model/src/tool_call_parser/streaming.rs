//! Splits text as it arrives into text that can be shown and text that may contain calls.

use std::fmt;

use super::{
    ParsedText,
    markup::{may_become_tag, tag_at},
    parse_tool_calls,
    visible_text::VisibleText,
};

/// Passes on the text before the first tag with a meaning and holds back the rest, as well as a reply that starts like JSON or a
/// code block. In the end it has found what [`parse_tool_calls`](super::parse_tool_calls) finds in the whole text, and the pieces
/// that it returned make up [`ParsedText::text`].
///
/// ```
/// use toolyard_model::tool_call_parser::StreamingParser;
///
/// let mut parser = StreamingParser::new(|name| name == "get_time");
/// assert_eq!(parser.push("One moment.\n<tool"), "One moment.");
/// assert_eq!(parser.push("_call>{\"name\": \"get_time\", \"argu"), "");
/// assert!(parser.is_holding());
/// assert_eq!(parser.push("ments\": {}}</tool_call>"), "");
/// let (text, parsed) = parser.finish();
/// assert_eq!((text.as_str(), parsed.calls.len()), ("", 1));
/// assert_eq!(parsed.text, "One moment.");
/// ```
pub struct StreamingParser {
    is_tool: Box<dyn Fn(&str) -> bool + Send + Sync>,
    text: String,
    /// The bytes of `text` that can be shown.
    passed_bytes: usize,
    visible: VisibleText,
    shown: String,
    has_started: bool,
    is_holding: bool,
}

impl fmt::Debug for StreamingParser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamingParser").field("text", &self.text).finish_non_exhaustive()
    }
}

impl StreamingParser {
    /// A parser at the beginning of a text. `is_tool` tells the names of known tools.
    pub fn new(is_tool: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self {
            is_tool: Box::new(is_tool),
            text: String::new(),
            passed_bytes: 0,
            visible: VisibleText::default(),
            shown: String::new(),
            has_started: false,
            is_holding: false,
        }
    }

    /// Adds text and returns the text that can be shown now.
    pub fn push(&mut self, text: &str) -> String {
        if let Some(first) = text.trim_start().chars().next().filter(|_| !self.has_started) {
            self.has_started = true;
            self.is_holding = matches!(first, '{' | '[' | '`');
        }
        self.text.push_str(text);
        let start = self.passed_bytes;
        while !self.is_holding {
            let rest = self.text.get(self.passed_bytes..).unwrap_or_default();
            let Some(at) = rest.find('<') else {
                self.passed_bytes = self.text.len();
                break;
            };
            self.passed_bytes += at;
            let rest = rest.get(at..).unwrap_or_default();
            if tag_at(rest).is_some() {
                self.is_holding = true;
            } else if may_become_tag(rest) {
                break;
            } else {
                self.passed_bytes += 1;
            }
        }
        self.visible.push(self.text.get(start..self.passed_bytes).unwrap_or_default());
        let visible = self.visible.take();
        self.shown.push_str(&visible);
        visible
    }

    /// Whether the rest of the text is held back, because it may contain calls.
    pub fn is_holding(&self) -> bool {
        self.is_holding
    }

    /// Ends the text. Returns the rest of the visible text, and the whole result.
    pub fn finish(self) -> (String, ParsedText) {
        let parsed = parse_tool_calls(&self.text, &*self.is_tool);
        let rest = parsed.text.strip_prefix(self.shown.as_str()).unwrap_or_default().to_owned();
        (rest, parsed)
    }
}
