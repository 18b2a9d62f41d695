//! Semantic search with a local embedding model: optional, and only ever in addition to lexical search.
//!
//! [`EmbeddingModel`] reads two kinds of model folders: static models as model2vec writes them, and BERT models (with the
//! feature `embedding-bert`). An [`Embedder`] keeps what a model has computed. `semantic_weight` bounds how much they add to the lexical score.

#[cfg(feature = "embedding-bert")]
mod bert;
mod compact;
#[cfg(feature = "embedding-bert")]
mod elementwise;
mod embedder;
mod error;
mod model;
mod model_files;
mod model_input;
mod semantic_weight;
mod static_model;
mod tensors;
mod vector_cache;
mod vectors;
mod wordpiece;

pub use compact::compact_weights;
pub use embedder::Embedder;
pub use error::EmbeddingError;
pub use model::EmbeddingModel;
pub use vectors::{Embedding, QuantizedEmbedding};

pub(crate) use model_input::{query_embedding_text, tool_embedding_texts};
