//! Dictionaries in archives, and files that are no dictionaries.

use std::io::Write as _;

use super::*;

const TEXT: &str = "# CC-CEDICT\n#! date=2023-11-07T06:42:16Z\n刪除 删除 [shan1 chu2] /to delete/\n";
const JSON: &str =
    r#"[{"traditional":"刪除","simplified":"删除","pinyin":"shan1 chu2","english":["to delete"]}]"#;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn tgz(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, name, *content).unwrap();
    }
    gzip(&archive.into_inner().unwrap())
}

fn wheel(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn every_kind_of_archive_yields_the_same_dictionary() {
    let plain = read_dictionary(TEXT.into()).unwrap();
    assert_eq!(plain.edition.as_deref(), Some("2023-11-07"));
    let packed = gzip(TEXT.as_bytes());
    let wheel = wheel(&[("licence.txt", b"x"), ("data/cedict.txt.gz", &packed), ("code.py", b"pass")]);
    let tgz = tgz(&[("package/index.js", b"x"), ("package/cedict.json", JSON.as_bytes())]);
    for bytes in [packed, wheel] {
        let found = read_dictionary(bytes).unwrap();
        assert_eq!((found.hash, &found.entries), (plain.hash, &plain.entries));
    }
    assert_eq!(read_dictionary(tgz).unwrap().entries, plain.entries);
}

#[test]
fn other_files_and_archive_bombs_are_rejected() {
    let mut nested = TEXT.as_bytes().to_vec();
    for _ in 0..6 {
        nested = gzip(&nested);
    }
    let bomb = gzip(&[b'x'; 10_001]);
    let whole = wheel(&[("cedict.txt", TEXT.as_bytes())]);
    let truncated = whole.get(..whole.len() / 2).unwrap().to_vec();
    assert!(matches!(read_dictionary(nested), Err(DictionaryError::TooDeep)));
    assert!(matches!(unpack(bomb, 10_000), Err(DictionaryError::TooLarge)));
    assert!(matches!(read_dictionary(truncated), Err(DictionaryError::Archive(_))));
    assert!(matches!(read_dictionary(vec![0xff, 0xfe, 0x00]), Err(DictionaryError::NotText)));
    assert!(matches!(read_dictionary(b"[1, 2]".to_vec()), Err(DictionaryError::Json(_))));
}
