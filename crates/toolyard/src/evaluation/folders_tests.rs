use super::*;

const TOOL: &str = r#"{"id":"a","name":"read"}"#;

fn write(root: &Path, file: &str, text: &str) {
    let file = root.join(file);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn world() -> tempfile::TempDir {
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

fn names(root: &Path, folders: &[&str], as_one: bool) -> Vec<String> {
    let folders: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    let suites = Found::read(&folders).and_then(|found| found.suites(Split::Test, as_one)).unwrap();
    suites.into_iter().map(|suite| suite.name).collect()
}

#[test]
fn a_folder_is_a_set_or_holds_sets() {
    let world = world();
    let root = world.path();
    assert_eq!(names(root, &["retrieval/one"], false), ["one"]);
    assert_eq!(names(root, &["retrieval/one", "retrieval/two"], false), ["one", "two"]);
    assert_eq!(names(root, &["retrieval/one", "retrieval/two"], true), ["one", "two", "mixed"]);
    assert_eq!(names(root, &["retrieval"], false), ["one", "two", "mixed", "bilingual"]);
    assert_eq!(names(root, &["."], false), ["one", "two", "mixed", "bilingual"]);
    assert_eq!(names(root, &["bilingual"], false), ["bilingual"]);
    assert_eq!(names(root, &["retrieval", "bilingual", "retrieval/one"], false).len(), 4);
}

#[test]
fn a_folder_without_sets_is_said_so() {
    let world = world();
    let root = world.path();
    std::fs::create_dir_all(root.join("empty/inner")).unwrap();
    let problem = |folder: &str| Found::read(&[root.join(folder)]).unwrap_err();
    assert!(matches!(problem("empty"), DataError::NoSet { .. }));
    assert!(matches!(problem("absent"), DataError::Read { .. }));
    assert!(problem("absent").hint().contains("queries.jsonl"));
    write(root, "again/one/tools.jsonl", TOOL);
    write(root, "again/one/queries.jsonl", "");
    let found = Found::read(&[root.join("again/one")]).unwrap();
    assert!(matches!(found.suites(Split::Test, false), Err(DataError::NoQueries)));
    let both = [root.join("retrieval"), root.join("again/one")];
    assert!(matches!(Found::read(&both), Err(DataError::SameName { .. })));
    write(root, "again/one/queries.jsonl", "\u{fffd}");
    std::fs::write(root.join("again/one/tools.jsonl"), [0xff, 0xfe]).unwrap();
    assert!(matches!(problem("again"), DataError::Line { .. } | DataError::Read { .. }));
}
