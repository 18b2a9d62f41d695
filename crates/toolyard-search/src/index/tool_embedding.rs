//! The embedding of a tool, and the terms of its name.

use crate::{
    analysis::{
        stemmer::{is_stop_term, stem_english},
        tokenizer::{TokenKind, tokenize},
    },
    document::{ServerText, ToolText},
    embedding::{EmbeddingModel, QuantizedEmbedding, tool_input},
    index::vocabulary::{TermId, Vocabulary},
};

/// The embedding of a tool. The terms of its name decide how far semantic search may change the ranking.
#[derive(Debug, Clone)]
pub(crate) struct ToolEmbedding {
    pub(crate) vector: QuantizedEmbedding,
    pub(crate) name_terms: Box<[TermId]>,
}

impl ToolEmbedding {
    /// Embeds a tool; `None` if the model knows no word of it.
    pub(crate) fn new(
        model: &EmbeddingModel,
        server: &ServerText,
        tool: &ToolText,
        vocabulary: &mut Vocabulary,
    ) -> Option<Self> {
        let vector = model.embed(&tool_input(&server.id, tool))?.quantize();
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
