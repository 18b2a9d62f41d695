//! CC-CEDICT definitions and their glosses.

use proptest::prelude::*;

use super::*;

fn gloss_texts(definition: &str) -> Vec<String> {
    parse_glosses(definition).into_iter().map(|gloss| gloss.words.join(" ")).collect()
}

#[test]
fn definitions_become_short_glosses() {
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
    for (definition, expected) in cases {
        assert_eq!(gloss_texts(definition), expected, "{definition}");
    }
}

#[test]
fn notes_for_human_readers_give_no_gloss() {
    let definitions = [
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
    for definition in definitions {
        assert_eq!(gloss_texts(definition), [""; 0], "{definition}");
    }
}

#[test]
fn technical_glosses_rank_first_and_explanations_last() {
    let rank = |definition: &str| parse_glosses(definition).first().map(|gloss| gloss.rank);
    assert_eq!(rank("(computing) container"), Some(GlossRank::Technical));
    assert_eq!(rank("log (computing)"), Some(GlossRank::Technical));
    assert_eq!(rank("receptacle"), Some(GlossRank::Common));
    assert_eq!(rank("(coll.) modem"), Some(GlossRank::Rare));
    assert_eq!(rank("the time it takes light to travel"), Some(GlossRank::Explanation));
}

#[test]
fn cross_references_name_another_word() {
    assert_eq!(cross_reference("variant of 個|个[ge4]"), Some("个"));
    assert_eq!(cross_reference("see 文件[wen2 jian4]"), Some("文件"));
    assert_eq!(cross_reference("to see a file"), None);
    assert_eq!(cross_reference("see above"), None);
}

proptest! {
    #[test]
    fn any_definition_gives_short_lowercase_glosses(definition in "[a-zA-Z 的()\\[\\];,/'é-]{0,60}|\\PC{0,40}") {
        for gloss in parse_glosses(&definition) {
            prop_assert!((1..=MAX_EXPLANATION_WORDS).contains(&gloss.words.len()));
            for word in gloss.words {
                prop_assert_eq!(&word.to_lowercase(), &word);
                prop_assert!(!word.is_empty() && !word.chars().any(char::is_whitespace));
            }
        }
    }
}
