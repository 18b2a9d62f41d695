//! Our own table and files, together.

use super::super::{Origin, build, entries};
use super::*;

fn stored() -> Vec<u8> {
    let text = "刪除 删除 [shan1 chu2] /to delete/to cancel/\n請 请 [qing3] /to ask/\n髯口 髯口 [ran2 kou3] /artificial beard/\n";
    build(entries(text), &Origin::default()).unwrap().bytes
}

fn glosses(lexicon: &impl Lexicon, text: &str) -> Vec<Vec<String>> {
    lexicon
        .meanings(text)
        .into_iter()
        .map(|meaning| meaning.glosses.iter().map(|gloss| gloss.join(" ")).collect())
        .collect()
}

#[test]
fn our_own_table_speaks_first_and_a_file_adds_to_it() {
    let lexicons = Lexicons::with_lexicons(vec![StoredLexicon::from_bytes(stored()).unwrap()]);
    let [delete, beard] = glosses(&lexicons, "请删除髯口").try_into().unwrap();
    assert_eq!(delete.first().map(String::as_str), Some("delete"));
    assert_eq!(delete.last().map(String::as_str), Some("cancel"));
    assert_eq!(delete.iter().filter(|gloss| *gloss == "delete").count(), 1);
    assert_eq!(beard, ["artificial beard"]);
}

#[test]
fn a_file_is_read_when_it_is_first_needed_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zh.lexicon");
    let lexicons = Lexicons::with_files(vec![file.clone()]);
    assert!(glosses(&lexicons, "artificial beard").is_empty());
    std::fs::write(&file, stored()).unwrap();
    assert_eq!(glosses(&lexicons.clone(), "髯口"), [["artificial beard"]]);
}

#[test]
fn a_file_that_cannot_be_used_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zh.lexicon");
    std::fs::write(&file, "TOOLYLEX but nothing else").unwrap();
    let lexicons = Lexicons::with_files(vec![file, folder.path().join("absent.lexicon")]);
    assert_eq!(glosses(&lexicons, "删除"), glosses(&BuiltInLexicon, "删除"));
}

#[test]
fn lexicons_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    shared(&Lexicons::built_in());
    shared(&BuiltInLexicon);
}
