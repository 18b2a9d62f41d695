//! Output limits by tool kind, and truncation at a natural boundary.

use toolyard_core::ToolKind;
use unicode_segmentation::UnicodeSegmentation;

/// Maximum characters of an output by tool kind (the limits of the specification).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// Calculations.
    pub calculate: usize,
    /// Times.
    pub time: usize,
    /// Search results.
    pub search: usize,
    /// Past messages.
    pub history: usize,
    /// Everything else.
    pub other: usize,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self { calculate: 100, time: 200, search: 500, history: 1_000, other: 500 }
    }
}

impl OutputLimits {
    /// The limit for one kind.
    pub fn for_kind(&self, kind: ToolKind) -> usize {
        match kind {
            ToolKind::Calculate => self.calculate,
            ToolKind::Time => self.time,
            ToolKind::Search => self.search,
            ToolKind::History => self.history,
            ToolKind::Extract | ToolKind::Other => self.other,
        }
    }
}

/// How much of an output the caller receives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Budget {
    /// All of it.
    Unlimited,
    /// The limit of its tool kind.
    #[default]
    ByKind,
    /// This many characters.
    Characters(usize),
}

/// The beginning of `text`, at most `limit` characters, ending at a sentence, item or word boundary and never inside a
/// grapheme cluster. `None` if the text fits.
pub(crate) fn truncated_prefix(text: &str, limit: usize) -> Option<&str> {
    // A text never has more characters than bytes.
    if text.len() <= limit {
        return None;
    }
    let end_of_limit = text.char_indices().nth(limit).map(|(position, _)| position)?;
    let window = text.get(..end_of_limit).unwrap_or_default();
    let end = best_end(text, window);
    Some(text.get(..end).unwrap_or_default().trim_end())
}

/// The best end in `window`, the beginning of `text`: the strongest boundary in its second half, else the last grapheme
/// boundary.
fn best_end(text: &str, window: &str) -> usize {
    let middle = window.len() / 2;
    let last_after_middle =
        |positions: &mut dyn Iterator<Item = usize>| positions.filter(|position| *position > middle).last();
    let sentence =
        last_after_middle(&mut window.split_sentence_bound_indices().map(|(position, _)| position));
    let item = || {
        last_after_middle(
            &mut window
                .char_indices()
                .filter(|(_, c)| ends_item(*c))
                .map(|(position, c)| position + c.len_utf8()),
        )
    };
    let word = || {
        last_after_middle(
            &mut window.char_indices().filter(|(_, c)| c.is_whitespace()).map(|(position, _)| position),
        )
    };
    // A combining mark may belong to the preceding comma or space, so move back to a grapheme boundary.
    last_grapheme_boundary(text, sentence.or_else(item).or_else(word).unwrap_or(window.len()))
}

/// A character that ends a list item.
fn ends_item(character: char) -> bool {
    matches!(character, '\n' | ',' | ';' | '，' | '；' | '、' | '،' | '}' | ']')
}

fn last_grapheme_boundary(text: &str, limit: usize) -> usize {
    let mut boundaries =
        text.grapheme_indices(true).map(|(position, _)| position).take_while(|position| *position <= limit);
    boundaries.by_ref().last().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn truncated(text: &str, limit: usize) -> &str {
        truncated_prefix(text, limit).unwrap_or(text)
    }

    #[test]
    fn the_default_limits_are_those_of_the_specification() {
        let limits = OutputLimits::default();
        let kinds =
            [ToolKind::Calculate, ToolKind::Time, ToolKind::Search, ToolKind::History, ToolKind::Other];
        assert_eq!(kinds.map(|kind| limits.for_kind(kind)), [100, 200, 500, 1_000, 500]);
    }

    #[test]
    fn a_text_that_fits_is_unchanged() {
        assert_eq!(truncated_prefix("twelve chars", 12), None);
        assert_eq!(truncated_prefix("十二个字十二个字十二个字", 12), None);
    }

    #[test]
    fn sentences_end_in_any_script() {
        assert_eq!(truncated("One sentence. Another sentence.", 20), "One sentence.");
        assert_eq!(truncated("今天天气很好。我们去公园散步吧。", 10), "今天天气很好。");
        assert_eq!(truncated("यह एक वाक्य है। यह दूसरा है।", 20), "यह एक वाक्य है।");
        assert_eq!(truncated("هل هذا سؤال؟ نعم هو سؤال.", 18), "هل هذا سؤال؟");
    }

    #[test]
    fn lists_end_after_an_item_and_prose_after_a_word() {
        assert_eq!(
            truncated(r#"[{"name":"a"},{"name":"b"},{"name":"c"}]"#, 30),
            r#"[{"name":"a"},{"name":"b"},"#
        );
        assert_eq!(truncated("one long sentence without any end", 12), "one long");
    }

    #[test]
    fn a_grapheme_is_never_split() {
        assert_eq!(truncated("👨‍👩‍👧‍👦👨‍👩‍👧‍👦", 9), "👨‍👩‍👧‍👦");
        assert_eq!(truncated(&"é".repeat(10).replace('é', "e\u{301}"), 5), "e\u{301}e\u{301}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn any_text_keeps_its_beginning_within_the_limit(text in "\\PC{0,300}", limit in 0_usize..200) {
            match truncated_prefix(&text, limit) {
                None => prop_assert!(text.chars().count() <= limit),
                Some(truncated) => {
                    prop_assert!(text.starts_with(truncated));
                    prop_assert!(truncated.chars().count() <= limit);
                    let end = truncated.len();
                    let whole_graphemes = text.grapheme_indices(true).any(|(position, _)| position == end) || end == text.len();
                    prop_assert!(whole_graphemes, "cut inside a character at {}", end);
                }
            }
        }
    }
}
