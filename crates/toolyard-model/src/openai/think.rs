//! Takes the thoughts that a model writes into its answer (`<think>…</think>`) out of it, as they come.

use crate::ModelEvent;

const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// Splits text into thoughts and answer. Thoughts begin at the very start of an answer or of a line, nowhere else: a tag
/// within a sentence is spoken about. Blanks before the answer are left out.
#[derive(Debug)]
pub(super) struct ThinkSplitter {
    held: String,
    /// The tag that ends the thought we are in.
    until: Option<&'static str>,
    at_line_start: bool,
    has_answered: bool,
}

impl Default for ThinkSplitter {
    fn default() -> Self {
        Self { held: String::new(), until: None, at_line_start: true, has_answered: false }
    }
}

impl ThinkSplitter {
    /// Takes more text; what may be the beginning of a tag is held back.
    pub(super) fn push(&mut self, text: &str, events: &mut Vec<ModelEvent>) {
        let text = std::mem::take(&mut self.held) + text;
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let used = match self.until {
                Some(close) => self.thought(rest, close, events),
                None => self.answer(rest, events),
            };
            rest = rest.get(used..).unwrap_or_default();
            if used == 0 {
                break;
            }
        }
        rest.clone_into(&mut self.held);
    }

    /// Gives out what was held back.
    pub(super) fn finish(&mut self, events: &mut Vec<ModelEvent>) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            let is_thought = self.until.is_some();
            events.push(if is_thought { ModelEvent::Reasoning(held) } else { ModelEvent::Text(held) });
        }
    }

    /// How much of the text was used within a thought; nothing if more must come first.
    fn thought(&mut self, text: &str, close: &'static str, events: &mut Vec<ModelEvent>) -> usize {
        let end = text.find(close);
        let until = end.unwrap_or_else(|| text.len() - overlap(text, close));
        if let Some(thought) = text.get(..until).filter(|thought| !thought.is_empty()) {
            events.push(ModelEvent::Reasoning(thought.to_owned()));
        }
        if end.is_none() {
            return until;
        }
        self.until = None;
        self.at_line_start = true;
        until + close.len()
    }

    /// The same outside of thoughts.
    fn answer(&mut self, text: &str, events: &mut Vec<ModelEvent>) -> usize {
        let mut until = text.find('\n').map_or(text.len(), |end| end + 1);
        if self.at_line_start {
            let blanks = text.len() - text.trim_start().len();
            if blanks == 0 {
                if let Some((open, close)) = TAGS.iter().find(|(open, _)| text.starts_with(open)) {
                    self.until = Some(close);
                    return open.len();
                }
                if TAGS.iter().any(|(open, _)| open.starts_with(text)) {
                    return 0;
                }
            } else if self.has_answered {
                until = blanks;
            } else {
                return blanks;
            }
        }
        let said = text.get(..until).unwrap_or_default();
        self.at_line_start = said.ends_with('\n') || (self.at_line_start && said.trim().is_empty());
        self.has_answered = true;
        events.push(ModelEvent::Text(said.to_owned()));
        until
    }
}

/// How many bytes at the end of `text` may be the beginning of `tag`.
fn overlap(text: &str, tag: &str) -> usize {
    (1..tag.len())
        .rev()
        .find(|&length| tag.get(..length).is_some_and(|start| text.ends_with(start)))
        .unwrap_or(0)
}

#[cfg(test)]
#[path = "think_tests.rs"]
mod tests;
