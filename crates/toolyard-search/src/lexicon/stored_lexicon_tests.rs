//! Lexicon files: round trips, damaged and malicious files.

use proptest::prelude::*;

use super::super::{Lexicon as _, build_lexicon, parse_cedict};
use super::*;

const DICTIONARY: &str = "\
刪除 删除 [shan1 chu2] /to delete/to cancel/
容器 容器 [rong2 qi4] /receptacle/vessel/(computing) container/
帳號 帐号 [zhang4 hao4] /account/
賬號 账号 [zhang4 hao4] /variant of 帳號|帐号[zhang4 hao4]/
";

fn lexicon_bytes() -> Vec<u8> {
    let origin =
        Origin { language: "zh".to_owned(), licence: "CC BY-SA 4.0".to_owned(), ..Origin::default() };
    build_lexicon(parse_cedict(DICTIONARY), &origin).unwrap().bytes
}

/// Recomputes the checksum, as an attacker would.
fn with_valid_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() > HEADER_BYTES {
        let checksum = *ContentHash::of(&bytes[HEADER_BYTES..]).as_bytes();
        bytes[HEADER_BYTES - 32..HEADER_BYTES].copy_from_slice(&checksum);
    }
    bytes
}

fn glosses(lexicon: &StoredLexicon, text: &str) -> Vec<String> {
    lexicon.translate(text).iter().flat_map(|word| &word.glosses).map(|gloss| gloss.join(" ")).collect()
}

#[test]
fn a_lexicon_is_written_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zh.lexicon");
    std::fs::write(&file, lexicon_bytes()).unwrap();
    let lexicon = StoredLexicon::open(&file).unwrap();
    assert_eq!((lexicon.len(), lexicon.origin().licence.as_str()), (4, "CC BY-SA 4.0"));
    assert_eq!(glosses(&lexicon, "刪除容器"), ["delete", "cancel", "container", "receptacle", "vessel"]);
    assert_eq!(glosses(&lexicon, "账号"), ["account"], "a variant has the glosses of its word");
}

#[test]
fn building_is_deterministic() {
    assert_eq!(lexicon_bytes(), lexicon_bytes());
}

#[test]
fn unusable_files_are_rejected() {
    let read = |bytes: &[u8]| StoredLexicon::from_bytes(bytes.to_vec()).map(|lexicon| lexicon.len());
    assert!(matches!(read(b""), Err(LexiconError::NotALexicon)));
    assert!(matches!(read(b"TOOLYLEX"), Err(LexiconError::Damaged(_))));
    let mut later = lexicon_bytes();
    later[8] = 9;
    assert!(matches!(read(&later), Err(LexiconError::UnsupportedVersion { found: 9, supported: VERSION })));
    assert!(matches!(StoredLexicon::open(Path::new("/nowhere")), Err(LexiconError::Unreadable { .. })));
    assert!(matches!(
        build_lexicon(parse_cedict("no dictionary"), &Origin::default()),
        Err(LexiconError::NoEntries)
    ));
}

proptest! {
    #[test]
    fn any_changed_byte_is_detected(at in 0..lexicon_bytes().len(), value in 1_u8..) {
        let mut changed = lexicon_bytes();
        changed[at] ^= value;
        prop_assert!(StoredLexicon::from_bytes(changed).is_err());
    }

    #[test]
    fn a_malicious_file_with_a_valid_checksum_is_safe(
        changes in proptest::collection::vec((HEADER_BYTES..lexicon_bytes().len(), any::<u8>()), 1..12),
        kept in 0..=lexicon_bytes().len(),
        text in "[删除容器帐号刪账a]{0,12}",
    ) {
        let mut changed = lexicon_bytes();
        for (at, value) in changes {
            changed[at] = value;
        }
        changed.truncate(kept.max(lexicon_bytes().len() / 2));
        if let Ok(lexicon) = StoredLexicon::from_bytes(with_valid_checksum(changed)) {
            for word in lexicon.translate(&text) {
                prop_assert!(text.get(word.range).is_some());
            }
        }
    }

    #[test]
    fn any_bytes_are_rejected_or_read(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bytes = [MAGIC, VERSION.to_le_bytes().as_slice(), &[0; 32], &body].concat();
        let _ = StoredLexicon::from_bytes(with_valid_checksum(bytes)).map(|lexicon| lexicon.translate("删除"));
        let _ = StoredLexicon::from_bytes(body);
    }
}
