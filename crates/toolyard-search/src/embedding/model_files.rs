//! The files of a model folder.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::Deserialize;
use toolyard_core::ContentHash;

use super::error::EmbeddingError;
use super::static_model::StaticModel;
use super::tensors::Tensors;
use super::wordpiece::WordPieceTokenizer;

const MAX_MODEL_BYTES: u64 = 2 << 30;
const MAX_TOKENIZER_BYTES: u64 = 64 << 20;
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The content of the files of a model folder.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelFiles {
    /// `config.json`
    pub(super) config: Vec<u8>,
    /// `model.safetensors`
    pub(super) model: Vec<u8>,
    /// `tokenizer.json`
    pub(super) tokenizer: Option<Vec<u8>>,
    /// `vocab.txt`, read only without a `tokenizer.json`.
    pub(super) vocabulary: Vec<u8>,
    /// `1_Pooling/config.json`
    pub(super) pooling: Option<Vec<u8>>,
}

#[derive(Deserialize)]
struct ModelConfig {
    model_type: Option<String>,
}

impl ModelFiles {
    /// Reads the files, up to a size limit each.
    pub(super) fn read(folder: &Path) -> Result<Self, EmbeddingError> {
        let tokenizer = read_optional(folder, "tokenizer.json", MAX_TOKENIZER_BYTES)?;
        let vocabulary = match tokenizer {
            Some(_) => Vec::new(),
            None => read(folder, "vocab.txt", MAX_TOKENIZER_BYTES)?,
        };
        Ok(Self {
            config: read(folder, "config.json", MAX_CONFIG_BYTES)?,
            model: read(folder, "model.safetensors", MAX_MODEL_BYTES)?,
            tokenizer,
            vocabulary,
            pooling: read_optional(folder, "1_Pooling/config.json", MAX_CONFIG_BYTES)?,
        })
    }

    /// The hash of all files: models with equal hashes give equal embeddings.
    pub(super) fn hash(&self) -> ContentHash {
        let tokenizer = self.tokenizer.as_deref().unwrap_or_default();
        let pooling = self.pooling.as_deref().unwrap_or_default();
        ContentHash::of_parts([&*self.config, &self.model, tokenizer, &self.vocabulary, pooling])
    }

    pub(super) fn is_bert(&self) -> Result<bool, EmbeddingError> {
        is_bert_config(&self.config)
    }

    pub(super) fn static_model(&self) -> Result<StaticModel, EmbeddingError> {
        StaticModel::read(&Tensors::read(&self.model)?, self.wordpiece_tokenizer()?)
    }

    #[cfg(feature = "embedding-bert")]
    pub(super) fn bert(&self) -> Result<super::bert::Bert, EmbeddingError> {
        use super::bert::{Bert, Pooling};

        #[derive(Deserialize)]
        struct PoolingConfig {
            #[serde(default)]
            pooling_mode_cls_token: bool,
        }

        let pooling = match &self.pooling {
            None => Pooling::Mean,
            Some(bytes) => {
                let config: PoolingConfig = parse_json("1_Pooling/config.json", bytes)?;
                if config.pooling_mode_cls_token { Pooling::FirstToken } else { Pooling::Mean }
            }
        };
        Bert::read(&Tensors::read(&self.model)?, &self.config()?, self.wordpiece_tokenizer()?, pooling)
    }

    fn config<'a, T: Deserialize<'a>>(&'a self) -> Result<T, EmbeddingError> {
        parse_json("config.json", &self.config)
    }

    fn wordpiece_tokenizer(&self) -> Result<WordPieceTokenizer, EmbeddingError> {
        match &self.tokenizer {
            Some(bytes) => WordPieceTokenizer::from_json(bytes),
            None => WordPieceTokenizer::from_lines(&self.vocabulary),
        }
    }
}

/// Whether a `config.json` is that of a BERT model; static models have other types or none.
pub(super) fn is_bert_config(config: &[u8]) -> Result<bool, EmbeddingError> {
    let config: ModelConfig = parse_json("config.json", config)?;
    Ok(config.model_type.as_deref() == Some("bert"))
}

fn parse_json<'a, T: Deserialize<'a>>(file: &'static str, bytes: &'a [u8]) -> Result<T, EmbeddingError> {
    serde_json::from_slice(bytes).map_err(|error| EmbeddingError::damaged(file, error))
}

fn read_optional(folder: &Path, file: &'static str, limit: u64) -> Result<Option<Vec<u8>>, EmbeddingError> {
    match read(folder, file, limit) {
        Err(EmbeddingError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

fn read(folder: &Path, file: &'static str, limit: u64) -> Result<Vec<u8>, EmbeddingError> {
    let path = folder.join(file);
    let mut bytes = Vec::new();
    let result = File::open(&path).and_then(|opened| opened.take(limit + 1).read_to_end(&mut bytes));
    match result {
        Err(source) => Err(EmbeddingError::Read { path, source }),
        Ok(length) if length as u64 > limit => Err(EmbeddingError::TooLarge { file, limit }),
        Ok(_) => Ok(bytes),
    }
}
