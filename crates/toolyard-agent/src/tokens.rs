//! How much a text costs a model.

use tiktoken_rs::o200k_base_singleton;

/// Longer texts are counted in parts. A vocabulary splits a text into words by a backtracking pattern, which has a limit
/// and gives up beyond it; a part is far from that, whatever it holds. A seam costs one token too many at most.
const PART: usize = 8 << 10;

/// Counts tokens as some model does. What a budget is measured in.
pub trait TokenCount: Send + Sync {
    /// How many tokens the text is.
    fn count(&self, text: &str) -> usize;
}

/// The vocabulary `o200k_base`: exact for OpenAI's models since 2024, close for others. It is made ready when something
/// is counted for the first time.
#[derive(Debug, Clone, Copy, Default)]
pub struct O200k;

impl TokenCount for O200k {
    fn count(&self, text: &str) -> usize {
        let mut count = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(seam(rest));
            count += o200k_base_singleton().count_ordinary(part);
            rest = after;
        }
        count
    }
}

/// Where a part ends: with the text, else after its last line, else after its last whole character.
fn seam(text: &str) -> usize {
    if text.len() <= PART {
        return text.len();
    }
    let end = text.floor_char_boundary(PART);
    let line = text.get(..end).and_then(|part| part.rfind('\n'));
    line.map_or(end, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts_cost_what_is_known() {
        assert_eq!(O200k.count(""), 0);
        assert_eq!(O200k.count("hello world"), 2);
        assert_eq!(O200k.count("<|im_end|>"), O200k.count("<|im") + O200k.count("_end|>"));
    }

    #[test]
    fn a_long_text_costs_what_its_lines_cost() {
        let line = "    - filepath (string): Path to the file [required]\n";
        assert_eq!(O200k.count(&line.repeat(1_000)), 1_000 * O200k.count(line));
    }

    #[test]
    fn what_would_make_a_pattern_give_up_is_counted() {
        assert!(O200k.count(&" ".repeat(2_000_000)) > 10_000);
        assert!(O200k.count(&"é".repeat(50_000)) > 10_000);
    }
}
