//! Lets the text of a model through as it comes and holds back only what may be the beginning of a call.

use std::cell::Cell;

use super::{
    TextCalls,
    scanner::{Knowledge, Scanner},
};

/// So much is looked at again with every piece.
const SMALL: usize = 4 << 10;

/// Splits what a model says into what can be shown at once and calls. At the end it has found exactly what
/// [`read_calls`](super::read_calls) finds in the whole text, and has let through exactly its `rest`.
///
/// ```
/// use toolyard_model::tool_call_tag::CallSplitter;
///
/// let mut splitter = CallSplitter::new(|name| name == "get_time");
/// assert_eq!(splitter.push("One moment. <tool"), "One moment.");
/// assert_eq!(splitter.push("_call>{\"name\": \"get_time\", \"argu"), "");
/// assert_eq!(splitter.push("ments\": {}}</tool_call>"), "");
/// let (shown, found) = splitter.finish();
/// assert_eq!((shown.as_str(), found.calls.len()), ("", 1));
/// assert_eq!(found.rest, "One moment.");
/// ```
pub struct CallSplitter {
    is_tool: Box<dyn Fn(&str) -> bool + Send + Sync>,
    scanner: Scanner,
    held: String,
    shown: String,
    /// How much was held when it was last looked at.
    looked_at: usize,
}

impl std::fmt::Debug for CallSplitter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallSplitter").field("held", &self.held).finish_non_exhaustive()
    }
}

impl CallSplitter {
    /// A splitter at the beginning of a text. `is_tool` knows the names of tools.
    pub fn new(is_tool: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self {
            is_tool: Box::new(is_tool),
            scanner: Scanner::default(),
            held: String::new(),
            shown: String::new(),
            looked_at: 0,
        }
    }

    /// Takes more text and gives what can be shown now.
    pub fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        // What is held is read from its beginning, so that a long call is not looked at with every piece of it.
        let grown = self.held.len().saturating_sub(self.looked_at);
        if self.held.len() > SMALL && grown < self.looked_at / 32 {
            return String::new();
        }
        self.advance(false)
    }

    /// Whether something was found by now that is no text.
    pub fn has_found(&self) -> bool {
        self.scanner.has_found()
    }

    /// The text is over: what is left to be shown, and all that was found.
    pub fn finish(mut self) -> (String, TextCalls) {
        let shown = self.advance(true);
        let mut found = self.scanner.into_found();
        found.rest = self.shown;
        (shown, found)
    }

    fn advance(&mut self, is_final: bool) -> String {
        let endless = Cell::new(0);
        let known = Knowledge { is_tool: self.is_tool.as_ref(), is_final, endless: &endless };
        let used = self.scanner.run(&self.held, known);
        self.held.drain(..used);
        self.looked_at = self.held.len();
        let shown = self.scanner.shown();
        self.shown.push_str(&shown);
        shown
    }
}
