//! Embeddings are computed once, kept between processes, and searched by meaning once they are there.

use crate::{SearchIndex, SourceText, ToolText};

use super::*;

fn tiny_model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/embedding/fixtures/tiny-static")
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn index_of(embedder: &Arc<Embedder>, tools: &[(&str, &str)]) -> SearchIndex {
    let mut index = SearchIndex::default().with_embedder(Arc::clone(embedder));
    let tools: Vec<ToolText> = tools
        .iter()
        .map(|(name, description)| ToolText {
            key: (*name).into(),
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            ..ToolText::default()
        })
        .collect();
    index.put(&SourceText { id: "s".into(), description: String::new() }, &tools);
    index
}

#[test]
fn nothing_is_opened_before_it_is_needed() {
    let embedder = Embedder::in_folder(Path::new("/nowhere"), PathBuf::from("/nowhere/cache"));
    assert!(embedder.opened_model().is_none());
    assert!(embedder.embed_request("mail").is_none());
    assert!(!embedder.open());
    embedder.embed(&texts(&["mail"]));
    embedder.save();
}

#[test]
fn embeddings_survive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("below/vectors");
    let texts = texts(&["send the mail", "qqq xxx"]);
    let first = Embedder::in_folder(&tiny_model(), file.clone());
    first.embed(&texts);
    first.save();
    let second = Embedder::in_folder(&tiny_model(), file.clone());
    assert!(second.open());
    let known = second.known(&texts).unwrap();
    assert_eq!(known, first.known(&texts).unwrap());
    assert_eq!(known.len(), 1, "a text of unknown words has no embedding, and is not embedded again");
    // Another process added a text meanwhile.
    let other_text = vec!["read a file".to_owned()];
    second.embed(&other_text);
    second.save();
    first.embed(&["list folders".to_owned()]);
    first.save();
    let third = Embedder::in_folder(&tiny_model(), file.clone());
    assert!(third.open() && third.known(&other_text).is_some() && third.known(&texts).is_some());
    let entries = std::fs::read_dir(file.parent().unwrap()).unwrap().count();
    assert_eq!(entries, 1, "no temporary file stays");
}

#[test]
fn damaged_and_foreign_files_are_ignored_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vectors");
    let texts = texts(&["send the mail"]);
    let first = Embedder::in_folder(&tiny_model(), file.clone());
    first.embed(&texts);
    first.save();
    let whole = std::fs::read(&file).unwrap();
    let reads = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        let embedder = Embedder::in_folder(&tiny_model(), file.clone());
        assert!(embedder.open());
        embedder.known(&texts).is_some()
    };
    assert!(reads(&whole));
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        assert!(!reads(&damaged), "byte {at}");
        assert!(!reads(&whole[..at]), "first {at} bytes");
    }
    assert!(!reads(b""));
    let embedder = Embedder::in_folder(&tiny_model(), file.clone());
    embedder.embed(&texts);
    embedder.save();
    assert_eq!(std::fs::read(&file).unwrap(), whole);
}

#[test]
fn a_folder_in_place_of_the_file_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let embedder = Embedder::in_folder(&tiny_model(), folder.path().to_owned());
    embedder.embed(&texts(&["send the mail"]));
    embedder.save();
    assert!(folder.path().is_dir());
}

#[test]
fn tools_are_found_by_words_until_their_embeddings_are_there() {
    let embedder = Arc::new(Embedder::in_folder(&tiny_model(), PathBuf::new()));
    let tools = [("reader", "reading a file"), ("sender", "send the mails")];
    let mut index = index_of(&embedder, &tools);
    assert_eq!(index.tools_to_embed(), 2);
    assert_eq!(&*index.search("sender", 1)[0].key, "sender");
    assert!(index.nearest_by_embedding("mails").is_empty());
    index.embed_pending();
    assert_eq!(index.tools_to_embed(), 0);
    assert!(!index.nearest_by_embedding("mails").is_empty());
    // Tools that are indexed again need no computing.
    assert_eq!(index_of(&embedder, &tools).tools_to_embed(), 0);
}

#[test]
fn chinese_requests_are_embedded_by_the_built_in_glosses() {
    let embedder = Arc::new(Embedder::in_folder(&tiny_model(), PathBuf::new()));
    let mut index = index_of(&embedder, &[("reader", "reading a file"), ("sender", "send the mails")]);
    index.embed_pending();
    let nearest = index.nearest_by_embedding("发送");
    assert!(!nearest.is_empty());
    assert_eq!(nearest, index.nearest_by_embedding("send"));
}
