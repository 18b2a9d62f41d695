//! The embeddings of tools and requests that are known.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use crate::document::ToolText;

/// Longer texts are truncated: small models read about as many tokens.
const MAX_TEXT_CHARS: usize = 400;
/// The embeddings of older requests are dropped.
pub(crate) const MAX_REQUESTS: usize = 256;

/// The known embeddings, of unit length; those that cannot be used are empty.
#[derive(Clone, Default)]
pub(crate) struct Embeddings {
    /// By the hash of the text.
    tools: HashMap<u64, Arc<[f32]>>,
    /// The newest first.
    requests: VecDeque<(String, Arc<[f32]>)>,
}

impl Embeddings {
    /// That of the text of a tool.
    pub(crate) fn of_tool(&self, text: &str) -> Option<Arc<[f32]>> {
        self.tools.get(&text_hash(text)).map(Arc::clone)
    }

    pub(crate) fn of_request(&self, request: &str) -> Option<&[f32]> {
        self.requests.iter().find(|(known, _)| known == request).map(|(_, embedding)| &**embedding)
    }

    pub(crate) fn add_tool(&mut self, text: &str, vector: Vec<f32>) {
        self.tools.insert(text_hash(text), unit_vector(vector));
    }

    pub(crate) fn add_request(&mut self, request: &str, vector: Vec<f32>) {
        self.requests.truncate(MAX_REQUESTS - 1);
        self.requests.push_front((request.to_owned(), unit_vector(vector)));
    }

    /// Forgets those of tools if there are more than `limit`, most of which must be of removed tools.
    pub(crate) fn forget_tools_above(&mut self, limit: usize) {
        if self.tools.len() > limit {
            self.tools.clear();
        }
    }
}

/// The text of a tool that is embedded. Parameters are left out: they would make all tools similar ("the id of the …").
pub(crate) fn text_to_embed(source: &str, tool: &ToolText) -> String {
    let words = |name: &str| name.replace(['_', '-'], " ");
    truncated(&format!("{}: {}. {}", words(source), words(&tool.name), tool.description))
}

pub(crate) fn truncated(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

fn text_hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn unit_vector(mut vector: Vec<f32>) -> Arc<[f32]> {
    let length = dot(&vector, &vector).sqrt();
    if !length.is_finite() || length <= f32::MIN_POSITIVE {
        return Arc::default();
    }
    vector.iter_mut().for_each(|value| *value /= length);
    vector.into()
}

/// 0 for vectors of different dimensions.
pub(crate) fn dot(one: &[f32], other: &[f32]) -> f32 {
    if one.len() != other.len() {
        return 0.0;
    }
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}
