//! Definitions as they stand in CC-CEDICT's form, and the words that are searched for.

use proptest::prelude::*;

use super::*;

fn said(definition: &str) -> Vec<String> {
    glosses(definition).into_iter().map(|gloss| gloss.words.join(" ")).collect()
}

#[test]
fn definitions_become_words_that_tools_are_described_with() {
    let cases: [(&str, &[&str]); 12] = [
        ("to delete", &["delete"]),
        ("to submit (a report etc)", &["submit"]),
        ("to refer (a problem) to sb", &["refer"]),
        ("congenital; intrinsic; innate", &["congenital", "intrinsic", "innate"]),
        ("king or monarch", &["king", "monarch"]),
        ("abbr. for 人工智能[ren2 gong1 zhi4 neng2], artificial intelligence", &["artificial intelligence"]),
        ("e-mail", &["email"]),
        ("user-friendly", &["user friendly"]),
        ("one's life", &["life"]),
        ("China", &["china"]),
        ("to look up (in a book (or list))", &["look up"]),
        ("50-50", &[]),
    ];
    for (definition, glosses) in cases {
        assert_eq!(said(definition), glosses, "{definition}");
    }
}

#[test]
fn what_only_a_reader_needs_is_left_out() {
    let talk = [
        "CL:份[fen4]",
        "surname Li",
        "variant of 個|个[ge4]",
        "also pr. [xia4 zai4]",
        "(classifier for long things)",
        "(archaic) to tell",
        "(idiom) it's a deal",
        "Li Bai (701-762), poet",
        "Yibin county in Sichuan",
        "hand radical in Chinese characters",
        "a tool that is used by those who want to do everything at once",
        "to",
    ];
    for definition in talk {
        assert_eq!(said(definition), [""; 0], "{definition}");
    }
}

#[test]
fn words_of_a_trade_go_first_and_explanations_last() {
    let rank = |definition: &str| glosses(definition).first().map(|gloss| gloss.rank);
    assert_eq!(rank("(computing) container"), Some(Rank::Trade));
    assert_eq!(rank("log (computing)"), Some(Rank::Trade));
    assert_eq!(rank("receptacle"), Some(Rank::Usual));
    assert_eq!(rank("(coll.) modem"), Some(Rank::Rare));
    assert_eq!(rank("the time it takes light to travel"), Some(Rank::Explanation));
}

#[test]
fn a_reference_names_another_word() {
    assert_eq!(referred("variant of 個|个[ge4]"), Some("个"));
    assert_eq!(referred("see 文件[wen2 jian4]"), Some("文件"));
    assert_eq!(referred("to see a file"), None);
    assert_eq!(referred("see above"), None);
}

proptest! {
    #[test]
    fn glosses_are_few_lowercase_words_whatever_is_defined(definition in "[a-zA-Z 的()\\[\\];,/'é-]{0,60}|\\PC{0,40}") {
        for gloss in glosses(&definition) {
            prop_assert!((1..=EXPLANATION).contains(&gloss.words.len()));
            for word in gloss.words {
                prop_assert_eq!(&word.to_lowercase(), &word);
                prop_assert!(!word.is_empty() && !word.chars().any(char::is_whitespace));
            }
        }
    }
}
