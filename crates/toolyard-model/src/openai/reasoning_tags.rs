//! Separates reasoning that a model writes into its text (`<think>…</think>`) from the text.

use crate::ModelEvent;

const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// Splits streamed text into reasoning and text. An opening tag counts only at the start of a line; a tag within a
/// sentence is text. Whitespace before the text is dropped.
#[derive(Debug)]
pub(super) struct ReasoningTagFilter {
    /// Text that may be the beginning of a tag.
    pending: String,
    /// The tag that ends the current reasoning.
    end_tag: Option<&'static str>,
    at_line_start: bool,
    has_text: bool,
}

impl Default for ReasoningTagFilter {
    fn default() -> Self {
        Self { pending: String::new(), end_tag: None, at_line_start: true, has_text: false }
    }
}

impl ReasoningTagFilter {
    /// Adds text; a possible beginning of a tag is held back.
    pub(super) fn push(&mut self, text: &str, events: &mut Vec<ModelEvent>) {
        let text = std::mem::take(&mut self.pending) + text;
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let used = match self.end_tag {
                Some(end_tag) => self.push_reasoning(rest, end_tag, events),
                None => self.push_text(rest, events),
            };
            rest = rest.get(used..).unwrap_or_default();
            if used == 0 {
                break;
            }
        }
        rest.clone_into(&mut self.pending);
    }

    /// Releases what was held back.
    pub(super) fn finish(&mut self, events: &mut Vec<ModelEvent>) {
        let pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() {
            let is_reasoning = self.end_tag.is_some();
            events.push(if is_reasoning {
                ModelEvent::Reasoning(pending)
            } else {
                ModelEvent::Text(pending)
            });
        }
    }

    /// Returns the number of bytes used; 0 if more text is needed.
    fn push_reasoning(&mut self, text: &str, end_tag: &'static str, events: &mut Vec<ModelEvent>) -> usize {
        let end = text.find(end_tag);
        let length = end.unwrap_or_else(|| text.len() - overlap(text, end_tag));
        if let Some(reasoning) = text.get(..length).filter(|reasoning| !reasoning.is_empty()) {
            events.push(ModelEvent::Reasoning(reasoning.to_owned()));
        }
        if end.is_none() {
            return length;
        }
        self.end_tag = None;
        self.at_line_start = true;
        length + end_tag.len()
    }

    /// Returns the number of bytes used; 0 if more text is needed.
    fn push_text(&mut self, text: &str, events: &mut Vec<ModelEvent>) -> usize {
        let mut length = text.find('\n').map_or(text.len(), |end| end + 1);
        if self.at_line_start {
            let whitespace = text.len() - text.trim_start().len();
            if whitespace == 0 {
                if let Some((tag, end_tag)) = TAGS.iter().find(|(tag, _)| text.starts_with(tag)) {
                    self.end_tag = Some(end_tag);
                    return tag.len();
                }
                if TAGS.iter().any(|(tag, _)| tag.starts_with(text)) {
                    return 0;
                }
            } else if self.has_text {
                length = whitespace;
            } else {
                return whitespace;
            }
        }
        let text = text.get(..length).unwrap_or_default();
        self.at_line_start = text.ends_with('\n') || (self.at_line_start && text.trim().is_empty());
        self.has_text = true;
        events.push(ModelEvent::Text(text.to_owned()));
        length
    }
}

/// The number of bytes at the end of `text` that may be the beginning of `tag`.
fn overlap(text: &str, tag: &str) -> usize {
    (1..tag.len())
        .rev()
        .find(|&length| tag.get(..length).is_some_and(|start| text.ends_with(start)))
        .unwrap_or(0)
}

#[cfg(test)]
#[path = "reasoning_tags_tests.rs"]
mod tests;
