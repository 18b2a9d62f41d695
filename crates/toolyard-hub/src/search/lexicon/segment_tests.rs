//! Sentences and the words they are cut into.

use proptest::prelude::*;

use super::super::{Entry, Lexicon as _, Lexicons, Origin, StoredLexicon, build, entries};

/// Words that make it hard: each could be cut otherwise.
const DICTIONARY: &str = "\
研究 研究 [yan2 jiu1] /to research/
研究生 研究生 [yan2 jiu1 sheng1] /graduate student/
生命 生命 [sheng1 ming4] /life/
命 命 [ming4] /fate/
起源 起源 [qi3 yuan2] /origin/
好吃 好吃 [hao3 chi1] /tasty/
吃的 吃的 [chi1 de5] /(coll.) food/
好 好 [hao3] /good/
的 的 [de5] /of/
訂單 订单 [ding4 dan1] /order/
資料庫 资料库 [zi1 liao4 ku4] /database/
數據庫 数据库 [shu4 ju4 ku4] /database/
無用詞 无用词 [wu2 yong4 ci2] /surname X/
無用 无用 [wu2 yong4] /useless/
詞 词 [ci2] /word/
李 李 [li3] /plum/
大 大 [da4] /big/
李大 李大 [Li3 Da4] /Li Da (701-762), poet/
李大大 李大大 [Li3 Da4 Da4] /Li Dada (701-762), poet/
";

fn lexicons() -> Lexicons {
    let built = build(entries(DICTIONARY), &Origin::default()).unwrap();
    Lexicons::with_lexicons(vec![StoredLexicon::from_bytes(built.bytes).unwrap()])
}

fn cut(text: &str) -> Vec<&str> {
    lexicons().meanings(text).into_iter().map(|meaning| text.get(meaning.word).unwrap()).collect()
}

#[test]
fn as_few_words_as_possible_and_no_letters_left_over() {
    assert_eq!(cut("研究生命起源"), ["研究", "生命", "起源"]);
    assert_eq!(cut("好吃的"), ["好吃"]);
}

#[test]
fn latin_words_and_other_signs_are_left_alone() {
    assert_eq!(cut("用SQL查询MySQL里的订单，谢谢！Order订单3"), ["查询", "订单", "订单"]);
    assert!(lexicons().meanings("delete the branch, später, удалить").is_empty());
}

#[test]
fn traditional_letters_are_the_same_words() {
    assert_eq!(cut("查詢資料庫中的訂單"), ["查詢", "資料庫", "訂單"]);
    let glosses = |text| lexicons().meanings(text).pop().map(|meaning| meaning.glosses);
    assert_eq!(glosses("數據庫"), glosses("数据库"));
}

#[test]
fn a_long_word_that_says_nothing_gives_its_parts_but_a_name_does_not() {
    assert_eq!(cut("无用词"), ["无用", "词"]);
    assert_eq!(cut("李大"), [""; 0]);
    assert_eq!(cut("李大大"), [""; 0]);
}

proptest! {
    #[test]
    fn words_stand_in_order_and_apart_whatever_the_text(text in "[研究生命起源好吃的订单訂單查询詢a \\u{20000}]{0,40}|\\PC{0,60}") {
        let mut end = 0;
        for meaning in lexicons_once().meanings(&text) {
            prop_assert!(meaning.word.start >= end && !meaning.word.is_empty());
            prop_assert!(text.get(meaning.word.clone()).is_some(), "not at letters");
            prop_assert!(!meaning.glosses.is_empty() && meaning.glosses.iter().all(|gloss| !gloss.is_empty()));
            end = meaning.word.end;
        }
    }

    #[test]
    fn every_word_of_a_dictionary_is_found(words in proptest::collection::btree_set("[\\u{4e00}-\\u{4e20}]{2,6}", 1..30)) {
        let entry = |(at, word): (usize, &String)| Entry {
            traditional: word.clone(),
            simplified: word.clone(),
            pinyin: "x".to_owned(),
            definitions: vec![format!("meaning{at}")],
        };
        let built = build(words.iter().enumerate().map(entry), &Origin::default()).unwrap();
        let stored = StoredLexicon::from_bytes(built.bytes).unwrap();
        for (at, word) in words.iter().enumerate() {
            let meanings = stored.meanings(word);
            // A word may also be cut in two that are both there only if that took fewer pieces, which it never does.
            prop_assert_eq!(meanings.len(), 1);
            prop_assert_eq!(&meanings[0].glosses, &vec![vec![format!("meaning{at}")]]);
        }
    }
}

fn lexicons_once() -> &'static Lexicons {
    static ONCE: std::sync::LazyLock<Lexicons> = std::sync::LazyLock::new(lexicons);
    &ONCE
}
