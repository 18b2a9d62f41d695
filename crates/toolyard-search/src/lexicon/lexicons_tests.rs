//! The built-in lexicon combined with files.

use super::super::{Origin, build_lexicon, parse_cedict};
use super::*;

fn lexicon_bytes() -> Vec<u8> {
    let text = "刪除 删除 [shan1 chu2] /to delete/to cancel/\n請 请 [qing3] /to ask/\n髯口 髯口 [ran2 kou3] /artificial beard/\n";
    build_lexicon(parse_cedict(text), &Origin::default()).unwrap().bytes
}

fn glosses(lexicon: &impl Lexicon, text: &str) -> Vec<Vec<String>> {
    lexicon
        .translate(text)
        .into_iter()
        .map(|word| word.glosses.iter().map(|gloss| gloss.join(" ")).collect())
        .collect()
}

#[test]
fn built_in_glosses_come_first_and_files_add_to_them() {
    let lexicons = Lexicons::with_lexicons(vec![StoredLexicon::from_bytes(lexicon_bytes()).unwrap()]);
    let [delete, beard] = glosses(&lexicons, "请删除髯口").try_into().unwrap();
    assert_eq!(delete.first().map(String::as_str), Some("delete"));
    assert_eq!(delete.last().map(String::as_str), Some("cancel"));
    assert_eq!(delete.iter().filter(|gloss| *gloss == "delete").count(), 1);
    assert_eq!(beard, ["artificial beard"]);
}

#[test]
fn files_are_read_on_first_use() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zh.lexicon");
    let lexicons = Lexicons::with_files(vec![file.clone()]);
    assert!(glosses(&lexicons, "artificial beard").is_empty());
    std::fs::write(&file, lexicon_bytes()).unwrap();
    assert_eq!(glosses(&lexicons.clone(), "髯口"), [["artificial beard"]]);
}

#[test]
fn unusable_files_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zh.lexicon");
    std::fs::write(&file, "TOOLYLEX but nothing else").unwrap();
    let lexicons = Lexicons::with_files(vec![file, folder.path().join("absent.lexicon")]);
    assert_eq!(glosses(&lexicons, "删除"), glosses(&Lexicons::built_in(), "删除"));
}

#[test]
fn lexicons_can_be_shared_between_threads() {
    fn assert_shareable<T: Send + Sync + Clone + 'static>(_: &T) {}
    assert_shareable(&Lexicons::built_in());
}

#[test]
fn single_characters_are_translated_by_the_built_in_table_only() {
    let text = "掉 掉 [diao4] /to fall/to drop/\n髯 髯 [ran2] /beard/\n";
    let bytes = build_lexicon(parse_cedict(text), &Origin::default()).unwrap().bytes;
    let lexicons = Lexicons::with_lexicons(vec![StoredLexicon::from_bytes(bytes).unwrap()]);
    for text in ["掉", "髯", "把髯删掉"] {
        assert_eq!(glosses(&lexicons, text), glosses(&Lexicons::built_in(), text), "{text}");
    }
}
