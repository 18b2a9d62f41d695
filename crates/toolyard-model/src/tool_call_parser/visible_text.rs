//! The text that remains without calls and markup.

/// Collects visible text and normalizes the whitespace around removed elements.
#[derive(Debug, Default)]
pub(super) struct VisibleText {
    /// Text since the last [`VisibleText::take`].
    text: String,
    /// Whitespace that counts only if text follows.
    whitespace: String,
    /// Whether an element was removed since the last text.
    has_gap: bool,
    /// Whether there was any text, taken or not.
    has_text: bool,
}

impl VisibleText {
    pub(super) fn push(&mut self, text: &str) {
        let trimmed = text.trim_start();
        self.whitespace.push_str(text.get(..text.len() - trimmed.len()).unwrap_or_default());
        if trimmed.is_empty() {
            return;
        }
        let whitespace = std::mem::take(&mut self.whitespace);
        if self.has_text {
            // In place of a removed element, one paragraph break or one space is enough.
            self.text.push_str(match (self.has_gap, whitespace.contains('\n')) {
                (false, _) => whitespace.as_str(),
                (true, true) => "\n\n",
                (true, false) if whitespace.is_empty() => "",
                (true, false) => " ",
            });
        }
        let body = trimmed.trim_end();
        self.text.push_str(body);
        self.whitespace.push_str(trimmed.get(body.len()..).unwrap_or_default());
        self.has_text = true;
        self.has_gap = false;
    }

    pub(super) fn push_gap(&mut self) {
        self.has_gap = true;
    }

    /// The text since the last time, without trailing whitespace.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}
