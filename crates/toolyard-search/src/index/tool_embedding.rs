//! The embedding of a tool, and the terms of its name.

use crate::{
    analysis::{
        stemmer::{is_stop_term, stem_english},
        tokenizer::{TokenKind, tokenize},
    },
    document::{SourceText, ToolText},
    embedding::{EmbeddingModel, QuantizedEmbedding, tool_embedding_text},
    index::vocabulary::{TermId, Vocabulary},
};

/// The embedding of a tool, and the terms of its name: the more of them a request mentions, the less semantic similarity
/// counts.
#[derive(Debug, Clone)]
pub(crate) struct ToolEmbedding {
    pub(crate) vector: QuantizedEmbedding,
    pub(crate) name_terms: Box<[TermId]>,
}

impl ToolEmbedding {
    /// Embeds a tool; `None` if the model knows no word of it.
    pub(crate) fn new(
        model: &EmbeddingModel,
        source: &SourceText,
        tool: &ToolText,
        vocabulary: &mut Vocabulary,
    ) -> Option<Self> {
        let vector = model.embed(&tool_embedding_text(&source.id, tool))?.quantize();
        let mut name_terms = Vec::new();
        tokenize(&tool.name, |token, kind| {
            let term = stem_english(token);
            if kind != TokenKind::Identifier && !is_stop_term(&term) {
                name_terms.push(vocabulary.intern(&term));
            }
        });
        Some(Self { vector, name_terms: name_terms.into() })
    }
}
