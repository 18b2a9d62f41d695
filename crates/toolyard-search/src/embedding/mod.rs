//! Semantic search with a local embedding model: optional, and only ever in addition to lexical search.
//!
//! [`EmbeddingModel`] reads two kinds of model folders: static models as model2vec writes them, and BERT models (with the
//! feature `embedding-bert`). `semantic_weight` bounds how much they add to the lexical score.

#[cfg(feature = "embedding-bert")]
mod bert;
mod error;
mod model;
mod model_files;
mod model_input;
mod semantic_weight;
mod static_model;
mod tensors;
mod vectors;
mod wordpiece;

pub use error::EmbeddingError;
pub use model::EmbeddingModel;
pub use vectors::{Embedding, QuantizedEmbedding};

pub(crate) use model_input::{query_embedding_text, tool_embedding_text};
