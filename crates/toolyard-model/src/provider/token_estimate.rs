//! Estimates token counts for servers that do not report them.

use crate::ModelEvent;

/// A rough token count: four ASCII characters are one token, and so is every other character.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TokenEstimate {
    ascii_chars: u64,
    other_chars: u64,
}

impl TokenEstimate {
    pub(crate) fn of(text: &str) -> Self {
        let ascii_chars = text.bytes().filter(u8::is_ascii).count() as u64;
        Self { ascii_chars, other_chars: (text.chars().count() as u64).saturating_sub(ascii_chars) }
    }

    pub(crate) fn add(&mut self, event: &ModelEvent) {
        let text = match event {
            ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.as_str(),
            ModelEvent::ToolCall(delta) => delta.arguments.as_str(),
            ModelEvent::Usage(_) | ModelEvent::Finished(_) => "",
        };
        let more = Self::of(text);
        self.ascii_chars += more.ascii_chars;
        self.other_chars += more.other_chars;
    }

    pub(crate) fn tokens(self) -> u64 {
        self.ascii_chars.div_ceil(4) + self.other_chars
    }
}
