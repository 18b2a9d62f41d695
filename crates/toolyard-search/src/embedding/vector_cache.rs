//! The embeddings of texts, kept in a file between processes.
//!
//! The file is derived data: it can be deleted at any time. It starts with a magic number, the hash of the model and the
//! number of dimensions; then there is one record of a fixed size per text; it ends with the hash of all that. A file that
//! is damaged, or was written by another model or version, is ignored as a whole and replaced.

use std::{
    collections::HashMap,
    fs::File,
    io::{Read as _, Write as _},
    path::Path,
    sync::Arc,
};

use toolyard_core::ContentHash;

use super::{model::EmbeddingModel, vectors::QuantizedEmbedding};

const MAGIC: &[u8; 8] = b"tyvec\0\0\x01";
const HASH_BYTES: usize = 32;
const HEADER_BYTES: usize = MAGIC.len() + HASH_BYTES + 4;
const KEY_BYTES: usize = 16;
/// A scale precedes the codes.
const SCALE_BYTES: usize = 4;
/// Larger files are not read: no catalogue has as many tools.
const MAX_FILE_BYTES: u64 = 512 << 20;
/// Texts in a file; beyond it, those that this process did not use are dropped.
const MAX_TEXTS: usize = 200_000;

/// Identifies a text: the start of its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TextKey([u8; KEY_BYTES]);

impl TextKey {
    pub(super) fn of(text: &str) -> Self {
        let hash = ContentHash::of(text);
        let mut key = [0; KEY_BYTES];
        key.iter_mut().zip(hash.as_bytes()).for_each(|(key, byte)| *key = *byte);
        Self(key)
    }
}

/// Embeddings by text; `None` for a text of which the model knows no word.
type Vectors = HashMap<TextKey, Option<Arc<QuantizedEmbedding>>>;

/// The embeddings that one model has computed.
#[derive(Debug)]
pub(super) struct VectorCache {
    model: ContentHash,
    dimensions: usize,
    vectors: Vectors,
    has_unsaved: bool,
}

impl VectorCache {
    pub(super) fn new(model: &EmbeddingModel) -> Self {
        Self {
            model: model.hash(),
            dimensions: model.dimensions(),
            vectors: HashMap::new(),
            has_unsaved: false,
        }
    }

    /// Reads the file of earlier processes; empty if there is none that can be used.
    pub(super) fn read(file: &Path, model: &EmbeddingModel) -> Self {
        let mut cache = Self::new(model);
        cache.vectors = cache.read_file(file).unwrap_or_default();
        cache
    }

    pub(super) fn get(&self, key: &TextKey) -> Option<Option<Arc<QuantizedEmbedding>>> {
        self.vectors.get(key).cloned()
    }

    pub(super) fn insert(&mut self, key: TextKey, embedding: Option<QuantizedEmbedding>) {
        self.vectors.insert(key, embedding.map(Arc::new));
        self.has_unsaved = true;
    }

    /// The bytes of a file with all embeddings, including those that other processes added to it; `None` if there is
    /// nothing new.
    pub(super) fn take_unsaved_bytes(&mut self, file: &Path) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.has_unsaved) {
            return None;
        }
        let others = self.read_file(file).unwrap_or_default();
        let missing = others.iter().filter(|(key, _)| !self.vectors.contains_key(key));
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.vectors.len() * self.record_bytes());
        bytes.extend_from_slice(&self.header()?);
        for (key, embedding) in self.vectors.iter().chain(missing).take(MAX_TEXTS) {
            bytes.extend_from_slice(&key.0);
            let (scale, codes) =
                embedding.as_ref().map_or((0.0, None), |vector| (vector.scale(), Some(vector)));
            bytes.extend_from_slice(&scale.to_le_bytes());
            let codes = codes.map(|vector| vector.codes()).unwrap_or_default();
            bytes.extend(codes.iter().map(|code| code.cast_unsigned()));
            bytes.resize(bytes.len() + self.dimensions.saturating_sub(codes.len()), 0);
        }
        let hash = ContentHash::of(&bytes);
        bytes.extend_from_slice(hash.as_bytes());
        Some(bytes)
    }

    /// Replaces the file at once, so that no process reads half of it.
    pub(super) fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let unique = format!("{}-{:?}.tmp", std::process::id(), std::thread::current().id());
        let temporary = file.with_extension(unique.replace(['(', ')'], ""));
        let written = File::create(&temporary)
            .and_then(|mut created| created.write_all(bytes))
            .and_then(|()| std::fs::rename(&temporary, file));
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }

    fn read_file(&self, file: &Path) -> Option<Vectors> {
        let mut bytes = Vec::new();
        File::open(file).ok()?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
        self.parse(&bytes)
    }

    /// `None` for a file that is damaged or belongs to another model.
    fn parse(&self, bytes: &[u8]) -> Option<Vectors> {
        let (content, hash) = bytes.split_at_checked(bytes.len().checked_sub(HASH_BYTES)?)?;
        let records = content.strip_prefix(self.header()?.as_slice())?;
        if ContentHash::of(content).as_bytes() != hash || records.len() % self.record_bytes() != 0 {
            return None;
        }
        records.chunks_exact(self.record_bytes()).map(parse_record).collect()
    }

    fn header(&self) -> Option<Vec<u8>> {
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(self.model.as_bytes());
        header.extend_from_slice(&u32::try_from(self.dimensions).ok()?.to_le_bytes());
        Some(header)
    }

    fn record_bytes(&self) -> usize {
        KEY_BYTES + SCALE_BYTES + self.dimensions
    }
}

fn parse_record(record: &[u8]) -> Option<(TextKey, Option<Arc<QuantizedEmbedding>>)> {
    let (key, record) = record.split_first_chunk::<KEY_BYTES>()?;
    let (scale, codes) = record.split_first_chunk::<SCALE_BYTES>()?;
    let scale = f32::from_le_bytes(*scale);
    let codes: Box<[i8]> = codes.iter().map(|byte| byte.cast_signed()).collect();
    let embedding = (scale != 0.0).then(|| QuantizedEmbedding::from_parts(codes, scale));
    Some((TextKey(*key), embedding.flatten().map(Arc::new)))
}
