//! Counts the tokens of a text.

use tiktoken_rs::o200k_base_singleton;

/// Longer texts are counted in chunks, because the tokenizer's backtracking pattern gives up on very long input. Every
/// chunk boundary adds one token at most.
const MAX_CHUNK_BYTES: usize = 8 << 10;

/// Counts tokens for prompt budgets.
pub trait TokenCounter: Send + Sync {
    /// Number of tokens in the text.
    fn count(&self, text: &str) -> usize;
}

/// The `o200k_base` encoding: exact for OpenAI's models since 2024, close for others. Loaded on first use.
#[derive(Debug, Clone, Copy, Default)]
pub struct O200k;

impl TokenCounter for O200k {
    fn count(&self, text: &str) -> usize {
        let mut count = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(chunk_end(rest));
            count += o200k_base_singleton().count_ordinary(chunk);
            rest = after;
        }
        count
    }
}

/// End of the first chunk: the end of a short text, else of the last line, else of the last character within the limit.
fn chunk_end(text: &str) -> usize {
    if text.len() <= MAX_CHUNK_BYTES {
        return text.len();
    }
    let end = text.floor_char_boundary(MAX_CHUNK_BYTES);
    let line = text.get(..end).and_then(|chunk| chunk.rfind('\n'));
    line.map_or(end, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts_have_known_counts() {
        assert_eq!(O200k.count(""), 0);
        assert_eq!(O200k.count("hello world"), 2);
        assert_eq!(O200k.count("<|im_end|>"), O200k.count("<|im") + O200k.count("_end|>"));
    }

    #[test]
    fn a_long_text_counts_like_its_lines() {
        let line = "    - filepath (string): Path to the file [required]\n";
        assert_eq!(O200k.count(&line.repeat(1_000)), 1_000 * O200k.count(line));
    }

    #[test]
    fn input_that_defeats_the_tokenizer_is_counted() {
        assert!(O200k.count(&" ".repeat(2_000_000)) > 10_000);
        assert!(O200k.count(&"é".repeat(50_000)) > 10_000);
    }
}
