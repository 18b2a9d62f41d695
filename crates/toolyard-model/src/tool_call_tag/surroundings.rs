//! Where in a text a scanner stands: in which line and paragraph, and after what.

use super::example;

/// How much of a paragraph is remembered; introductions are shorter.
const REMEMBERED: usize = 600;

/// Where in a text a scanner stands.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// The line so far.
    line: String,
    /// The lines before it in this paragraph.
    paragraph: String,
    /// The paragraph before this one, if nothing else stands between.
    previous: String,
    /// Only blanks so far in this line.
    pub at_line_start: bool,
    /// The rest of this line is quoted.
    pub is_line_quoted: bool,
    /// This is the inside of a block of code.
    pub is_in_block: bool,
    /// Nothing but blanks so far.
    pub at_start: bool,
    pub last: Option<char>,
    /// A line without anything stands before this one.
    after_blank_line: bool,
    in_list: bool,
    under_example_heading: bool,
    /// The last thing was an example, and nothing came since.
    after_example: bool,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self {
            line: String::new(),
            paragraph: String::new(),
            previous: String::new(),
            at_line_start: true,
            is_line_quoted: false,
            is_in_block: false,
            at_start: true,
            last: None,
            after_blank_line: false,
            in_list: false,
            under_example_heading: false,
            after_example: false,
        }
    }
}

impl Surroundings {
    /// At the beginning of a block's content.
    pub(super) fn in_block() -> Self {
        Self { is_in_block: true, ..Self::default() }
    }

    /// Goes on over text.
    pub(super) fn pass(&mut self, text: &str) {
        for part in text.split_inclusive('\n') {
            self.last = part.chars().next_back().or(self.last);
            let is_blank = part.trim().is_empty();
            if !is_blank {
                self.at_start = false;
                self.at_line_start = false;
                self.after_example = false;
            }
            remember(&mut self.line, part.trim_end_matches('\n'));
            if part.ends_with('\n') {
                self.end_line();
            }
        }
    }

    /// Goes on over an example: what follows directly is one as well.
    pub(super) fn pass_example(&mut self, text: &str) {
        self.pass(text);
        self.after_example = true;
    }

    /// Goes on over a block that is not part of any paragraph.
    pub(super) fn pass_block(&mut self, text: &str) {
        self.pass(text);
        self.forget();
    }

    /// Goes on over a call: nothing before it introduces what follows.
    pub(super) fn pass_call(&mut self, text: &str) {
        self.forget();
        self.at_start = false;
        self.at_line_start = true;
        self.after_example = false;
        self.under_example_heading = false;
        self.last = text.chars().next_back().filter(|c| c.is_whitespace()).or(Some('\n'));
    }

    fn forget(&mut self) {
        self.line.clear();
        self.paragraph.clear();
        self.previous.clear();
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let trimmed = line.trim();
        self.at_line_start = true;
        self.is_line_quoted = false;
        self.after_blank_line = trimmed.is_empty();
        if trimmed.is_empty() {
            if !self.paragraph.is_empty() {
                self.previous = std::mem::take(&mut self.paragraph);
            }
            return;
        }
        let is_indented = line.starts_with([' ', '\t']);
        let is_item = trimmed.starts_with(['-', '*', '+'])
            || trimmed.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(['.', ')']);
        self.in_list = is_item || (self.in_list && is_indented);
        if trimmed.starts_with('#') {
            self.under_example_heading = example::is_heading(trimmed);
        }
        remember(&mut self.paragraph, &line);
        self.paragraph.push('\n');
    }

    /// The words that introduce what comes next.
    fn introduction(&self) -> String {
        let here = format!("{}{}", self.paragraph, self.line);
        if here.trim().is_empty() { self.previous.clone() } else { here }
    }

    /// Whether a tagged call here is an example.
    pub(super) fn is_tagged_example(&self) -> bool {
        let is_quoted = matches!(self.last, Some('"' | '\'' | '“' | '‘' | '«' | '「' | '『' | '《' | '`'));
        is_quoted
            || self.under_example_heading
            || self.after_example
            || example::introduces_tagged(&self.introduction())
    }

    /// Whether a block or an untagged call here is an example.
    pub(super) fn is_block_example(&self) -> bool {
        self.under_example_heading || self.after_example || example::introduces_block(&self.introduction())
    }

    /// Whether a line that begins like this is code, by its indentation.
    pub(super) fn is_indented_code(&self, text: &str) -> bool {
        if !self.after_blank_line || self.in_list || self.at_start {
            return false;
        }
        let blanks = self.line.chars().chain(text.chars()).take_while(|c| matches!(c, ' ' | '\t'));
        blanks.map(|c| if c == '\t' { 4 } else { 1 }).sum::<usize>() >= 4
    }
}

/// Adds to a text of which only the end is kept.
fn remember(text: &mut String, more: &str) {
    text.push_str(more);
    if text.len() > 2 * REMEMBERED {
        let mut from = text.len() - REMEMBERED;
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text.drain(..from);
    }
}

/// The text that is left when calls are taken out.
#[derive(Debug, Default)]
pub(super) struct Rest {
    shown: String,
    /// Blanks that only count when something follows.
    blanks: String,
    /// Something was taken out since.
    has_gap: bool,
    /// Whether anything was shown at all, also what was taken away since.
    has_begun: bool,
}

impl Rest {
    pub(super) fn push(&mut self, text: &str) {
        let trimmed = text.trim_start();
        let blanks = text.get(..text.len() - trimmed.len()).unwrap_or_default();
        self.blanks.push_str(blanks);
        if trimmed.is_empty() {
            return;
        }
        let between = std::mem::take(&mut self.blanks);
        if self.has_begun {
            // Where a call stood, one blank of the strongest kind is enough.
            let between = match (self.has_gap, between.contains('\n')) {
                (false, _) => between.as_str(),
                (true, true) => "\n\n",
                (true, false) if between.is_empty() => "",
                (true, false) => " ",
            };
            self.shown.push_str(between);
        }
        let body = trimmed.trim_end();
        self.shown.push_str(body);
        self.blanks.push_str(trimmed.get(body.len()..).unwrap_or_default());
        self.has_begun = true;
        self.has_gap = false;
    }

    pub(super) fn gap(&mut self) {
        self.has_gap = true;
    }

    /// What can be shown since the last time; blanks at the end only once something follows.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.shown)
    }
}
