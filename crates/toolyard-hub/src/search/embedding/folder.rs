//! The files of a model folder: what is read of each, and what kind of model they hold.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde::Deserialize;

use super::error::EmbeddingError;
use super::static_model::StaticModel;
use super::tensors::Tensors;
use super::word_pieces::WordPieces;

const MAX_MODEL: u64 = 2 << 30;
const MAX_TOKENIZER: u64 = 64 << 20;
const MAX_CONFIG: u64 = 1 << 20;

/// The bytes of a model folder's files.
#[derive(Debug, Clone, Default)]
pub struct ModelFiles {
    /// `config.json`
    pub config: Vec<u8>,
    /// `model.safetensors`
    pub model: Vec<u8>,
    /// `tokenizer.json`, or nothing if there is a `vocab.txt`.
    pub tokenizer: Option<Vec<u8>>,
    /// `vocab.txt`, read only where there is no `tokenizer.json`.
    pub vocabulary: Vec<u8>,
    /// `1_Pooling/config.json`, if there is one.
    pub pooling: Option<Vec<u8>>,
}

#[derive(Deserialize)]
struct AnyConfig {
    model_type: Option<String>,
}

impl ModelFiles {
    /// Reads them, none further than a model of a sensible size goes.
    pub fn read(folder: &Path) -> Result<Self, EmbeddingError> {
        let tokenizer = read_if_there(folder, "tokenizer.json", MAX_TOKENIZER)?;
        let vocabulary = match tokenizer {
            Some(_) => Vec::new(),
            None => read(folder, "vocab.txt", MAX_TOKENIZER)?,
        };
        Ok(Self {
            config: read(folder, "config.json", MAX_CONFIG)?,
            model: read(folder, "model.safetensors", MAX_MODEL)?,
            tokenizer,
            vocabulary,
            pooling: read_if_there(folder, "1_Pooling/config.json", MAX_CONFIG)?,
        })
    }

    pub(super) fn is_bert(&self) -> Result<bool, EmbeddingError> {
        let config: AnyConfig = self.config()?;
        Ok(config.model_type.as_deref() == Some("bert"))
    }

    pub(super) fn static_model(&self) -> Result<StaticModel, EmbeddingError> {
        StaticModel::read(&Tensors::read(&self.model)?, self.word_pieces()?)
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
                let config: PoolingConfig = json("1_Pooling/config.json", bytes)?;
                if config.pooling_mode_cls_token { Pooling::FirstPiece } else { Pooling::Mean }
            }
        };
        Bert::read(&Tensors::read(&self.model)?, &self.config()?, self.word_pieces()?, pooling)
    }

    fn config<'a, T: Deserialize<'a>>(&'a self) -> Result<T, EmbeddingError> {
        json("config.json", &self.config)
    }

    fn word_pieces(&self) -> Result<WordPieces, EmbeddingError> {
        match &self.tokenizer {
            Some(bytes) => WordPieces::from_json(bytes),
            None => WordPieces::from_lines(&self.vocabulary),
        }
    }
}

fn json<'a, T: Deserialize<'a>>(file: &'static str, bytes: &'a [u8]) -> Result<T, EmbeddingError> {
    serde_json::from_slice(bytes).map_err(|error| EmbeddingError::damaged(file, error))
}

fn read_if_there(folder: &Path, file: &'static str, limit: u64) -> Result<Option<Vec<u8>>, EmbeddingError> {
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
