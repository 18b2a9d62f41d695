//! Valid and invalid frontmatter, and how far a reader reads.

use std::io;

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Manifest, ManifestError> {
    Manifest::read(text.as_bytes())
}

/// A reader that counts bytes and fails when read beyond `limit`.
struct CountingReader<'a> {
    rest: &'a [u8],
    read: usize,
    limit: usize,
}

impl Read for CountingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read >= self.limit {
            return Err(io::Error::other("read too far"));
        }
        let count = self.rest.read(buffer)?;
        self.read += count;
        Ok(count)
    }
}

#[test]
fn a_full_manifest_is_parsed() {
    let manifest = read(
        "---\nname: pdf-tools\ndescription: Works with PDF files.\nlicense: MIT\ncompatibility: needs git\n\
         metadata:\n  author: ada\n  version: 1.10\nallowed-tools: Read Bash(git:*)\n---\nbody",
    )
    .unwrap();
    assert_eq!(manifest.name.as_deref(), Some("pdf-tools"));
    assert_eq!(manifest.description, "Works with PDF files.");
    assert_eq!(manifest.license.as_deref(), Some("MIT"));
    assert_eq!(manifest.metadata["version"], "1.10", "a version is text, not a number");
    assert_eq!(manifest.allowed_tools.as_deref(), Some("Read Bash(git:*)"));
    assert_eq!(manifest.warnings, Vec::<String>::new());
    assert_eq!(manifest.usable_name("pdf-tools"), (Some("pdf-tools".to_owned()), vec![]));
}

#[test]
fn crlf_and_byte_order_marks_are_accepted() {
    let manifest =
        read("\u{feff}---\r\nname: a\r\ndescription: >-\r\n  two\r\n  lines\r\n---\r\nbody").unwrap();
    assert_eq!(manifest.description, "two lines");
    assert!(read("---\nname: a\ndescription: d\n---").is_ok());
}

#[test]
fn invisible_characters_are_removed() {
    let text = "---\nname: a\u{200b}b\ndescription: Use\u{202e} it\u{e0041}\u{2060} well\n---\n";
    let manifest = read(text).unwrap();
    assert_eq!((manifest.name.as_deref(), manifest.description.as_str()), (Some("ab"), "Use it well"));
}

#[test]
fn a_colon_without_quotes_is_repaired() {
    let manifest = read("---\nname: a\ndescription: Use when: it's needed\n---\n").unwrap();
    assert_eq!(manifest.description, "Use when: it's needed");
    assert_eq!(manifest.warnings.len(), 1);
}

#[test]
fn invalid_manifests_have_a_reason() {
    let frontmatter = |error| Err(ManifestError::Frontmatter(error));
    assert_eq!(read(""), frontmatter(FrontmatterError::Missing));
    assert_eq!(read("# Title"), frontmatter(FrontmatterError::Missing));
    assert_eq!(read("---\nname: a\n"), frontmatter(FrontmatterError::Unclosed));
    assert_eq!(Manifest::read(&b"---\nname: \xff\n---\n"[..]), frontmatter(FrontmatterError::NotUtf8));
    assert_eq!(
        read(&format!("---\n# {}\n---\n", "x".repeat(70_000))),
        frontmatter(FrontmatterError::TooLarge)
    );
    for none in ["---\nname: a\n---\n", "---\nname: a\ndescription: ''\n---\n", "---\ndescription: ~\n---\n"]
    {
        assert_eq!(read(none), Err(ManifestError::NoDescription), "{none}");
    }
    for broken in [
        "---\n- a\n---\n",
        "---\ntext\n---\n",
        "---\ndescription: [a\n---\n",
        "---\ndescription: {a: b}\n---\n",
    ] {
        assert!(matches!(read(broken), Err(ManifestError::InvalidYaml(_))), "{broken}: {:?}", read(broken));
    }
}

#[test]
fn unknown_keys_and_invalid_optional_fields_are_warnings() {
    let manifest = read(
        "---\nname: a\ndescription: d\ndisable-model-invocation: true\nlicense: [x]\nmetadata: 7\n\
         allowed-tools: [Read, Write]\n---\n",
    )
    .unwrap();
    assert_eq!(manifest.allowed_tools.as_deref(), Some("Read Write"));
    assert_eq!(manifest.warnings.len(), 4, "{:?}", manifest.warnings);
    let long = read(&format!("---\ndescription: {}\n---\n", "中".repeat(2_000))).unwrap();
    assert_eq!(long.description.chars().count(), 1_025);
}

#[test]
fn invalid_names_are_replaced() {
    let name = |written: &str, folder: &str| {
        Manifest { name: Some(written.to_owned()), ..Manifest::default() }.usable_name(folder).0
    };
    assert_eq!(name("PDF Tools", "x").as_deref(), Some("pdf-tools"));
    assert_eq!(name("-a--b-", "x").as_deref(), Some("a-b"));
    assert_eq!(name("../../etc", "x").as_deref(), Some("etc"));
    assert_eq!(name("周报", "x").as_deref(), Some("周报"));
    assert_eq!(name("***", "My Folder").as_deref(), Some("my-folder"));
    assert_eq!(name("***", "..."), None);
    assert_eq!(name(&"a".repeat(80), "x"), Some("a".repeat(64)));
    let (_, warnings) = Manifest { name: Some("a".to_owned()), ..Manifest::default() }.usable_name("b");
    assert_eq!(warnings, ["the name `a` is not the folder's name"]);
}

#[test]
fn instructions_are_not_read_with_the_manifest() {
    let head = "---\nname: a\ndescription: d\n---\n";
    let text = format!("{head}{}", "secret instructions\n".repeat(10_000));
    let mut reader = CountingReader { rest: text.as_bytes(), read: 0, limit: head.len() };
    Manifest::read(&mut reader).unwrap();
    assert!(reader.read <= head.len() + 512, "read {} bytes", reader.read);

    let mut endless = CountingReader { rest: &[b'-'; 1 << 20], read: 0, limit: 4_096 };
    assert_eq!(Manifest::read(&mut endless), Err(ManifestError::Frontmatter(FrontmatterError::Missing)));
}

#[test]
fn yaml_bombs_are_rejected_quickly() {
    let lines = ('b'..='k')
        .zip('a'..)
        .map(|(this, before)| format!("{this}: &{this} [{}]\n", vec![format!("*{before}"); 8].join(",")));
    let bomb = "---\na: &a [x, x, x, x, x, x, x, x]\n".to_owned() + &lines.collect::<String>();
    let _ = read(&(bomb + "description: d\n---\n"));
    let _ = read(&format!("---\ndescription: {}\n---\n", "[".repeat(60_000)));
    let _ = read(&format!("---\n{}\n---\n", "? ".repeat(30_000)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = read(&text);
        let _ = read(&format!("---\n{text}\n---\n"));
        let _ = read(&format!("---\nname: {text}\ndescription: {text}\n---\n"));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Manifest::read(bytes.as_slice());
        let _ = Manifest::read([b"---\n".as_slice(), &bytes, b"\n---\n"].concat().as_slice());
    }

    #[test]
    fn yaml_like_text_never_causes_a_panic(text in "[-a-c:#'\"|>&*!{}\\[\\], \n]{0,80}") {
        let _ = read(&format!("---\n{text}\n---\n"));
    }

    #[test]
    fn a_usable_name_is_always_valid(written in "\\PC{0,90}", folder in "\\PC{0,20}") {
        let manifest = Manifest { name: Some(written), ..Manifest::default() };
        if let (Some(name), _) = manifest.usable_name(&folder) {
            prop_assert!(is_valid_name(&name));
        }
    }

    #[test]
    fn read_boundaries_do_not_matter(text in "[-a:\r\n ]{0,60}", cut in 0_usize..60) {
        use super::frontmatter::{FrontmatterSpan, find_frontmatter};
        let bytes = text.as_bytes();
        let (at_end, more_follows) = (true, false);
        let early = find_frontmatter(&bytes[..cut.min(bytes.len())], more_follows);
        if early != FrontmatterSpan::Incomplete {
            prop_assert_eq!(early, find_frontmatter(bytes, at_end));
        }
    }
}
