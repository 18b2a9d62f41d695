//! The built-in Chinese glossary: frequent Chinese words of requests, and the English words that tools are described with.
//!
//! A Chinese request finds English tools because its words are translated. A Chinese description is found by English requests
//! because its translation is indexed with it.

mod segmenter;
mod table;

use std::ops::Range;

use self::segmenter::add_words;

/// A word of a text and its translations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WordTranslation {
    /// Byte range of the word in the text.
    pub(crate) range: Range<usize>,
    /// Glosses (short translations), the likeliest first; each is one or more lowercase words.
    pub(crate) glosses: &'static [Vec<String>],
}

/// The known words of a text, in order and without overlaps. Words that say nothing about a tool and other scripts are skipped.
pub(crate) fn translate(text: &str) -> Vec<WordTranslation> {
    let mut words = Vec::new();
    let mut run: Vec<(usize, char)> = Vec::new();
    for (at, letter) in text.char_indices() {
        if is_han(letter) {
            run.push((at, letter));
        } else if !run.is_empty() {
            add_words(&run, &mut words);
            run.clear();
        }
    }
    add_words(&run, &mut words);
    words
}

fn is_han(letter: char) -> bool {
    matches!(letter, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}' | '〇')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segments(text: &str) -> Vec<&str> {
        translate(text).into_iter().map(|word| text.get(word.range).unwrap()).collect()
    }

    #[test]
    fn other_scripts_and_words_that_say_nothing_are_skipped() {
        assert_eq!(segments("用SQL查询MySQL里的订单，谢谢！Order订单3"), ["查询", "订单", "订单"]);
        assert!(translate("delete the branch, später, удалить").is_empty());
    }

    #[test]
    fn traditional_spelling_is_translated_like_simplified() {
        let glosses = |text| translate(text).pop().map(|word| word.glosses);
        assert_eq!(segments("查詢數據庫中的訂單"), ["查詢", "數據庫", "訂單"]);
        assert!(glosses("數據庫").is_some());
        assert_eq!(glosses("數據庫"), glosses("数据库"));
    }

    proptest! {
        #[test]
        fn words_of_any_text_are_ordered_and_disjoint(text in "[研究生命起源好吃的订单訂單查询詢a \\u{20000}]{0,40}|\\PC{0,60}") {
            let mut end = 0;
            for word in translate(&text) {
                prop_assert!(word.range.start >= end && !word.range.is_empty());
                prop_assert!(text.get(word.range.clone()).is_some(), "not at character boundaries");
                prop_assert!(!word.glosses.is_empty() && word.glosses.iter().all(|gloss| !gloss.is_empty()));
                end = word.range.end;
            }
        }
    }
}
