//! Sentences and their segmentation.

use proptest::prelude::*;

use super::super::{
    DictionaryEntry, Lexicon as _, Lexicons, Origin, StoredLexicon, build_lexicon, parse_cedict,
};

/// Ambiguous words: each allows another segmentation.
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
    let built = build_lexicon(parse_cedict(DICTIONARY), &Origin::default()).unwrap();
    Lexicons::with_lexicons(vec![StoredLexicon::from_bytes(built.bytes).unwrap()])
}

fn segments(text: &str) -> Vec<&str> {
    lexicons().translate(text).into_iter().map(|word| text.get(word.range).unwrap()).collect()
}

#[test]
fn the_segmentation_with_the_fewest_words_wins() {
    assert_eq!(segments("研究生命起源"), ["研究", "生命", "起源"]);
    assert_eq!(segments("好吃的"), ["好吃"]);
}

#[test]
fn other_scripts_are_skipped() {
    assert_eq!(segments("用SQL查询MySQL里的订单，谢谢！Order订单3"), ["查询", "订单", "订单"]);
    assert!(lexicons().translate("delete the branch, später, удалить").is_empty());
}

#[test]
fn traditional_spelling_matches_simplified_words() {
    assert_eq!(segments("查詢資料庫中的訂單"), ["查詢", "資料庫", "訂單"]);
    let glosses = |text| lexicons().translate(text).pop().map(|word| word.glosses);
    assert_eq!(glosses("數據庫"), glosses("数据库"));
}

#[test]
fn long_words_without_glosses_are_split_but_names_are_not() {
    assert_eq!(segments("无用词"), ["无用", "词"]);
    assert_eq!(segments("李大"), [""; 0]);
    assert_eq!(segments("李大大"), [""; 0]);
}

proptest! {
    #[test]
    fn segments_of_any_text_are_ordered_and_disjoint(text in "[研究生命起源好吃的订单訂單查询詢a \\u{20000}]{0,40}|\\PC{0,60}") {
        let mut end = 0;
        for word in shared_lexicons().translate(&text) {
            prop_assert!(word.range.start >= end && !word.range.is_empty());
            prop_assert!(text.get(word.range.clone()).is_some(), "not at character boundaries");
            prop_assert!(!word.glosses.is_empty() && word.glosses.iter().all(|gloss| !gloss.is_empty()));
            end = word.range.end;
        }
    }

    #[test]
    fn every_word_of_a_dictionary_is_found(words in proptest::collection::btree_set("[\\u{4e00}-\\u{4e20}]{2,6}", 1..30)) {
        let entry = |(index, word): (usize, &String)| DictionaryEntry {
            traditional: word.clone(),
            simplified: word.clone(),
            pinyin: "x".to_owned(),
            definitions: vec![format!("word{index}")],
        };
        let built = build_lexicon(words.iter().enumerate().map(entry), &Origin::default()).unwrap();
        let stored = StoredLexicon::from_bytes(built.bytes).unwrap();
        for (index, word) in words.iter().enumerate() {
            let translations = stored.translate(word);
            // Two words never cost less than one.
            prop_assert_eq!(translations.len(), 1);
            prop_assert_eq!(&translations[0].glosses, &vec![vec![format!("word{index}")]]);
        }
    }
}

fn shared_lexicons() -> &'static Lexicons {
    static LEXICONS: std::sync::LazyLock<Lexicons> = std::sync::LazyLock::new(lexicons);
    &LEXICONS
}
