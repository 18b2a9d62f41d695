//! A lexicon survives its file; a file that was tampered with survives nothing but harms nobody.

use proptest::prelude::*;

use super::super::{Origin, build, entries};
use super::*;

const DICTIONARY: &str = "\
刪除 删除 [shan1 chu2] /to delete/to cancel/
容器 容器 [rong2 qi4] /receptacle/vessel/(computing) container/
帳號 帐号 [zhang4 hao4] /account/
賬號 账号 [zhang4 hao4] /variant of 帳號|帐号[zhang4 hao4]/
";

fn bytes() -> Vec<u8> {
    let origin =
        Origin { language: "zh".to_owned(), licence: "CC BY-SA 4.0".to_owned(), ..Origin::default() };
    build(entries(DICTIONARY), &origin).unwrap().bytes
}

/// Bytes with a checksum that fits: what somebody would write who means harm.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() > HEADER {
        let checksum = *ContentHash::of(&bytes[HEADER..]).as_bytes();
        bytes[HEADER - 32..HEADER].copy_from_slice(&checksum);
    }
    bytes
}

fn glosses(lexicon: &StoredLexicon, text: &str) -> Vec<String> {
    lexicon.meanings(text).iter().flat_map(|meaning| &meaning.glosses).map(|gloss| gloss.join(" ")).collect()
}

#[test]
fn a_lexicon_is_written_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zh.lexicon");
    std::fs::write(&file, bytes()).unwrap();
    let lexicon = StoredLexicon::open(&file).unwrap();
    assert_eq!((lexicon.len(), lexicon.origin().licence.as_str()), (4, "CC BY-SA 4.0"));
    assert_eq!(glosses(&lexicon, "刪除容器"), ["delete", "cancel", "container", "receptacle", "vessel"]);
    assert_eq!(glosses(&lexicon, "账号"), ["account"], "a variant means what the word means");
}

#[test]
fn building_twice_gives_the_same_bytes() {
    assert_eq!(bytes(), bytes());
}

#[test]
fn what_is_no_lexicon_is_told_apart() {
    let read = |bytes: &[u8]| StoredLexicon::from_bytes(bytes.to_vec()).map(|lexicon| lexicon.len());
    assert!(matches!(read(b""), Err(LexiconError::NotALexicon)));
    assert!(matches!(read(b"TOOLYLEX"), Err(LexiconError::Damaged(_))));
    let mut later = bytes();
    later[8] = 9;
    assert!(matches!(read(&later), Err(LexiconError::OtherForm { found: 9, known: FORM })));
    assert!(matches!(StoredLexicon::open(Path::new("/nowhere")), Err(LexiconError::Unreadable { .. })));
    assert!(matches!(build(entries("no dictionary"), &Origin::default()), Err(LexiconError::NoEntries)));
}

proptest! {
    #[test]
    fn any_changed_byte_is_noticed(at in 0..bytes().len(), value in 1_u8..) {
        let mut changed = bytes();
        changed[at] ^= value;
        prop_assert!(StoredLexicon::from_bytes(changed).is_err());
    }

    #[test]
    fn a_file_with_a_checksum_that_fits_harms_nobody(
        changes in proptest::collection::vec((HEADER..bytes().len(), any::<u8>()), 1..12),
        kept in 0..=bytes().len(),
        text in "[删除容器帐号刪账a]{0,12}",
    ) {
        let mut changed = bytes();
        for (at, value) in changes {
            changed[at] = value;
        }
        changed.truncate(kept.max(bytes().len() / 2));
        if let Ok(lexicon) = StoredLexicon::from_bytes(resealed(changed)) {
            for meaning in lexicon.meanings(&text) {
                prop_assert!(text.get(meaning.word).is_some());
            }
        }
    }

    #[test]
    fn bytes_of_any_kind_are_refused_or_read(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = [MAGIC, FORM.to_le_bytes().as_slice(), &[0; 32], &body].concat();
        let _ = StoredLexicon::from_bytes(resealed(bytes)).map(|lexicon| lexicon.meanings("删除"));
        let _ = StoredLexicon::from_bytes(body);
    }
}
