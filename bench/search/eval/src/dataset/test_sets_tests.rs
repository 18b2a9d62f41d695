use super::*;

const TOOL: &str = r#"{"id":"a","name":"read"}"#;

fn write(root: &Path, file: &str, text: &str) {
    let file = root.join(file);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn folder_with_sets() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let query = r#"{"id":"q","text":"read","relevant":["a"],"split":"test"}"#;
    for set in ["one", "two"] {
        write(root.path(), &format!("retrieval/{set}/tools.jsonl"), TOOL);
        write(root.path(), &format!("retrieval/{set}/queries.jsonl"), query);
    }
    write(root.path(), "retrieval/README.md", "words");
    write(root.path(), "bilingual/queries.jsonl", query);
    root
}

fn suite_names(root: &Path, folders: &[&str], as_mixed: bool) -> Vec<String> {
    let folders: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    let suites =
        TestSets::read(&folders).and_then(|test_sets| test_sets.suites(Split::Test, as_mixed)).unwrap();
    suites.into_iter().map(|suite| suite.name).collect()
}

#[test]
fn a_folder_is_a_set_or_holds_sets() {
    let folder = folder_with_sets();
    let root = folder.path();
    assert_eq!(suite_names(root, &["retrieval/one"], false), ["one"]);
    assert_eq!(suite_names(root, &["retrieval/one", "retrieval/two"], false), ["one", "two"]);
    assert_eq!(suite_names(root, &["retrieval/one", "retrieval/two"], true), ["one", "two", "mixed"]);
    assert_eq!(suite_names(root, &["retrieval"], false), ["one", "two", "mixed", "bilingual"]);
    assert_eq!(suite_names(root, &["."], false), ["one", "two", "mixed", "bilingual"]);
    assert_eq!(suite_names(root, &["bilingual"], false), ["bilingual"]);
    assert_eq!(suite_names(root, &["retrieval", "bilingual", "retrieval/one"], false).len(), 4);
}

#[test]
fn unusable_folders_are_rejected() {
    let folder = folder_with_sets();
    let root = folder.path();
    std::fs::create_dir_all(root.join("empty/inner")).unwrap();
    let error_of = |folder: &str| TestSets::read(&[root.join(folder)]).unwrap_err();
    assert!(matches!(error_of("empty"), DatasetError::NoSet { .. }));
    assert!(matches!(error_of("absent"), DatasetError::Read { .. }));
    assert!(error_of("absent").hint().contains("queries.jsonl"));
    write(root, "again/one/tools.jsonl", TOOL);
    write(root, "again/one/queries.jsonl", "");
    let test_sets = TestSets::read(&[root.join("again/one")]).unwrap();
    assert!(matches!(test_sets.suites(Split::Test, false), Err(DatasetError::NoQueries)));
    let both = [root.join("retrieval"), root.join("again/one")];
    assert!(matches!(TestSets::read(&both), Err(DatasetError::SameName { .. })));
    write(root, "again/one/queries.jsonl", "\u{fffd}");
    std::fs::write(root.join("again/one/tools.jsonl"), [0xff, 0xfe]).unwrap();
    assert!(matches!(error_of("again"), DatasetError::Line { .. } | DatasetError::Read { .. }));
}
