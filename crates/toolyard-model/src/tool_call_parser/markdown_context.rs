//! The position of the scanner in the Markdown structure of a text, to tell calls from examples and quotations.

use super::example_detection;

/// How much of a line or paragraph is kept; introductions of examples are shorter.
const MAX_CONTEXT_BYTES: usize = 600;

#[derive(Debug)]
pub(super) struct MarkdownContext {
    /// The current line up to here.
    line: String,
    /// The earlier lines of this paragraph.
    paragraph: String,
    /// The previous paragraph, if nothing else stands between.
    previous_paragraph: String,
    /// Whether only whitespace precedes in this line.
    pub at_line_start: bool,
    /// Whether the rest of this line is a quotation or code.
    pub is_line_quoted: bool,
    /// Whether the text is the content of a code block.
    pub is_in_block: bool,
    /// Whether only whitespace precedes.
    pub at_start: bool,
    pub last_char: Option<char>,
    after_blank_line: bool,
    in_list: bool,
    under_example_heading: bool,
    /// Whether only whitespace follows the last example.
    after_example: bool,
}

impl Default for MarkdownContext {
    fn default() -> Self {
        Self {
            line: String::new(),
            paragraph: String::new(),
            previous_paragraph: String::new(),
            at_line_start: true,
            is_line_quoted: false,
            is_in_block: false,
            at_start: true,
            last_char: None,
            after_blank_line: false,
            in_list: false,
            under_example_heading: false,
            after_example: false,
        }
    }
}

impl MarkdownContext {
    pub(super) fn in_block() -> Self {
        Self { is_in_block: true, ..Self::default() }
    }

    pub(super) fn advance(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            self.last_char = line.chars().next_back().or(self.last_char);
            if !line.trim().is_empty() {
                self.at_start = false;
                self.at_line_start = false;
                self.after_example = false;
            }
            push_bounded(&mut self.line, line.trim_end_matches('\n'));
            if line.ends_with('\n') {
                self.end_line();
            }
        }
    }

    /// Advances over an example; a call right after it is an example as well.
    pub(super) fn advance_example(&mut self, text: &str) {
        self.advance(text);
        self.after_example = true;
    }

    /// Advances over a code block, which is not part of a paragraph.
    pub(super) fn advance_block(&mut self, text: &str) {
        self.advance(text);
        self.clear_text();
    }

    /// Advances over a call; nothing before it introduces what follows.
    pub(super) fn advance_call(&mut self, text: &str) {
        self.clear_text();
        self.at_start = false;
        self.at_line_start = true;
        self.after_example = false;
        self.under_example_heading = false;
        self.last_char = text.chars().next_back().filter(|c| c.is_whitespace()).or(Some('\n'));
    }

    fn clear_text(&mut self) {
        self.line.clear();
        self.paragraph.clear();
        self.previous_paragraph.clear();
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let trimmed = line.trim();
        self.at_line_start = true;
        self.is_line_quoted = false;
        self.after_blank_line = trimmed.is_empty();
        if trimmed.is_empty() {
            if !self.paragraph.is_empty() {
                self.previous_paragraph = std::mem::take(&mut self.paragraph);
            }
            return;
        }
        let is_indented = line.starts_with([' ', '\t']);
        let is_item = trimmed.starts_with(['-', '*', '+'])
            || trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(['.', ')']);
        self.in_list = is_item || (self.in_list && is_indented);
        if trimmed.starts_with('#') {
            self.under_example_heading = example_detection::is_example_heading(trimmed);
        }
        push_bounded(&mut self.paragraph, &line);
        self.paragraph.push('\n');
    }

    /// The text that introduces what comes next.
    fn introduction(&self) -> String {
        let paragraph = format!("{}{}", self.paragraph, self.line);
        if paragraph.trim().is_empty() { self.previous_paragraph.clone() } else { paragraph }
    }

    /// Whether a tagged call here is an example.
    pub(super) fn is_tagged_example(&self) -> bool {
        let is_quoted =
            matches!(self.last_char, Some('"' | '\'' | '“' | '‘' | '«' | '「' | '『' | '《' | '`'));
        is_quoted
            || self.under_example_heading
            || self.after_example
            || example_detection::introduces_tagged_example(&self.introduction())
    }

    /// Whether a code block or an untagged call here is an example.
    pub(super) fn is_block_example(&self) -> bool {
        self.under_example_heading
            || self.after_example
            || example_detection::introduces_block_example(&self.introduction())
    }

    /// Whether the line that starts with `text` is indented code.
    pub(super) fn is_indented_code(&self, text: &str) -> bool {
        if !self.after_blank_line || self.in_list || self.at_start {
            return false;
        }
        let indentation = self.line.chars().chain(text.chars()).take_while(|c| matches!(c, ' ' | '\t'));
        indentation.map(|c| if c == '\t' { 4 } else { 1 }).sum::<usize>() >= 4
    }
}

/// Appends to a text of which only the end is kept.
fn push_bounded(text: &mut String, more: &str) {
    text.push_str(more);
    if text.len() > 2 * MAX_CONTEXT_BYTES {
        let mut start = text.len() - MAX_CONTEXT_BYTES;
        while !text.is_char_boundary(start) {
            start += 1;
        }
        text.drain(..start);
    }
}
