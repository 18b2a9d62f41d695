//! Embeddings agree with the reference implementations; damaged files never cause a panic.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::embedding::model_files::ModelFiles;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/embedding/fixtures").join(name)
}

fn assert_starts_with(model: &EmbeddingModel, text: &str, expected: [f32; 5]) {
    let vector = model.embed(text).unwrap();
    for (value, expected) in vector.values().iter().zip(expected) {
        assert!((value - expected).abs() < 1e-5, "{text}: {:?}", vector.values());
    }
}

/// Expected numbers: model2vec 0.10 on the same folder (`scripts/tiny-models`).
#[test]
fn static_models_agree_with_model2vec() {
    let model = EmbeddingModel::open(&fixture("tiny-static")).unwrap();
    assert_eq!(model.dimensions(), 12);
    assert_starts_with(&model, "Send the mails.", [0.193906, 0.076935, -0.507001, 0.323027, -0.295766]);
    let long = "reading a FILE of messages, unzipped 20";
    assert_starts_with(&model, long, [0.711835, 0.286882, -0.374145, 0.206511, -0.032257]);
    assert_starts_with(&model, "文件 café qqq", [-0.223132, 0.368972, -0.417603, 0.15812, -0.117003]);
    assert_starts_with(&model, "list-folders", [0.450858, -0.143379, -0.299044, -0.238864, -0.557047]);
}

/// Expected numbers: transformers 5.22 on the same folder (`scripts/tiny-models`).
#[cfg(feature = "embedding-bert")]
#[test]
fn bert_models_agree_with_transformers() {
    let model = EmbeddingModel::open(&fixture("tiny-bert")).unwrap();
    assert_eq!(model.dimensions(), 16);
    assert_starts_with(&model, "Send the mails.", [0.017837, -0.03159, 0.174139, -0.014229, 0.034918]);
    let long = "reading a FILE of messages, unzipped 20";
    assert_starts_with(&model, long, [0.037041, -0.143135, 0.133398, 0.128559, -0.004406]);
    assert_starts_with(&model, "文件 café qqq", [0.12741, -0.152475, 0.062999, 0.158651, 0.228484]);
    assert_starts_with(&model, "list-folders", [0.165852, -0.047126, -0.001323, 0.01077, 0.103782]);
}

#[cfg(feature = "embedding-bert")]
#[test]
fn compact_weights_give_nearly_the_same_embeddings() {
    let files = ModelFiles::read(&fixture("tiny-bert")).unwrap();
    let compact = crate::embedding::compact_weights(&files.config, files.model.clone()).unwrap();
    assert!(compact.len() < files.model.len(), "the tiny model is mostly header");
    let model = EmbeddingModel::from_files(&files).unwrap();
    let compact = EmbeddingModel::from_files(&ModelFiles { model: compact, ..files }).unwrap();
    assert_ne!(model.hash(), compact.hash());
    for text in ["Send the mails.", "reading a FILE of messages, unzipped 20", "list-folders"] {
        let similarity = model.embed(text).unwrap().dot(&compact.embed(text).unwrap());
        assert!(similarity > 0.999, "{text}: {similarity}");
    }
    let config = ModelFiles::read(&fixture("tiny-static")).unwrap();
    let unchanged = crate::embedding::compact_weights(&config.config, config.model.clone()).unwrap();
    assert_eq!(unchanged, config.model, "static models stay");
}

#[cfg(not(feature = "embedding-bert"))]
#[test]
fn bert_models_are_rejected_without_the_feature() {
    let error = EmbeddingModel::open(&fixture("tiny-bert")).unwrap_err();
    assert!(error.to_string().contains("static models only"), "{error}");
}

#[test]
fn unknown_words_have_no_embedding() {
    let model = EmbeddingModel::open(&fixture("tiny-static")).unwrap();
    assert_eq!(model.embed(""), None);
    assert_eq!(model.embed(" \t\u{200b}\u{feff} "), None);
    assert_eq!(model.embed("qqq xxx"), None);
}

#[test]
fn overlong_texts_are_truncated() {
    for name in model_names() {
        let model = EmbeddingModel::open(&fixture(name)).unwrap();
        assert!(model.embed(&"mail ".repeat(200_000)).is_some());
        assert_eq!(model.embed(&"m".repeat(200_000)).is_some(), *name == "tiny-bert");
    }
}

#[test]
fn quantized_embeddings_have_nearly_the_same_similarity() {
    let model = EmbeddingModel::open(&fixture("tiny-static")).unwrap();
    let request = model.embed("read the mails").unwrap();
    let tool = model.embed("reader of mail").unwrap();
    assert!((tool.quantize().dot(&request) - request.dot(&tool)).abs() < 0.01);
}

#[test]
fn vocab_txt_replaces_tokenizer_json() {
    let files = ModelFiles::read(&fixture("tiny-static")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(files.tokenizer.as_ref().unwrap()).unwrap();
    let mut pieces: Vec<(String, u64)> = json["model"]["vocab"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(piece, id)| (piece.clone(), id.as_u64().unwrap()))
        .collect();
    pieces.sort_by_key(|(_, id)| *id);
    let vocabulary = pieces.into_iter().map(|(piece, _)| piece + "\n").collect::<String>().into_bytes();
    let listed = ModelFiles { tokenizer: None, vocabulary, ..files.clone() };
    let text = "Reading the café's mails";
    let by_list = EmbeddingModel::from_files(&listed).unwrap().embed(text);
    assert_eq!(by_list, EmbeddingModel::from_files(&files).unwrap().embed(text));
    assert!(by_list.is_some());
}

#[test]
fn an_empty_folder_is_rejected_with_the_expected_files() {
    let folder = tempfile::tempdir().unwrap();
    let error = EmbeddingModel::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("vocab.txt") && error.contains("a model folder holds config.json"), "{error}");
}

#[test]
fn other_tokenizers_are_rejected_by_name() {
    let mut files = ModelFiles::read(&fixture("tiny-static")).unwrap();
    files.tokenizer = Some(br#"{"model":{"type":"Unigram","vocab":[["a",-1.5]]}}"#.to_vec());
    let error = EmbeddingModel::from_files(&files).unwrap_err().to_string();
    assert!(error.starts_with("a tokenizer of type `Unigram` is not supported"), "{error}");
}

#[test]
fn tokens_without_a_vector_are_rejected() {
    let mut files = ModelFiles::read(&fixture("tiny-static")).unwrap();
    files.tokenizer = Some(br#"{"model":{"type":"WordPiece","vocab":{"a":18446744073709551615}}}"#.to_vec());
    let error = EmbeddingModel::from_files(&files).unwrap_err().to_string();
    assert!(error.contains("tokens without a vector"), "{error}");
}

static OPEN_MODELS: LazyLock<Vec<EmbeddingModel>> = LazyLock::new(|| {
    model_names().iter().map(|name| EmbeddingModel::open(&fixture(name)).unwrap()).collect()
});

fn model_names() -> &'static [&'static str] {
    if cfg!(feature = "embedding-bert") { &["tiny-static", "tiny-bert"] } else { &["tiny-static"] }
}

/// Changes one byte of a file or truncates it: the result is an error or a model, never a panic.
fn assert_survives_damage(name: &str, file: usize, at: usize, byte: Option<u8>, text: &str) {
    let mut files = ModelFiles::read(&fixture(name)).unwrap();
    let bytes = match file {
        0 => &mut files.config,
        1 => &mut files.model,
        _ => files.tokenizer.as_mut().unwrap(),
    };
    let at = at % bytes.len();
    match byte {
        Some(byte) => bytes[at] = byte,
        None => bytes.truncate(at),
    }
    if let Ok(model) = EmbeddingModel::from_files(&files) {
        let vector = model.embed(text);
        assert!(vector.is_none_or(|vector| vector.values().iter().all(|value| value.is_finite())));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_do_not_panic(
        model in 0..model_names().len(), file in 0usize..3, at in any::<usize>(), byte in any::<Option<u8>>(),
        text in "\\PC{0,40}|[a-z ]{0,40}",
    ) {
        assert_survives_damage(model_names()[model], file, at, byte, &text);
    }

    /// Random positions rarely hit the header of a tensor file.
    #[test]
    fn damaged_headers_do_not_panic(
        model in 0..model_names().len(), at in 0usize..1500, byte in any::<u8>(),
    ) {
        assert_survives_damage(model_names()[model], 1, at, Some(byte), "reading the mails");
    }

}

proptest! {
    #[test]
    fn embeddings_of_any_text_are_normalized(text in "\\PC{0,60}") {
        for model in OPEN_MODELS.iter() {
            if let Some(vector) = model.embed(&text) {
                let length = vector.dot(&vector);
                prop_assert!((length - 1.0).abs() < 1e-3);
            }
        }
    }
}
