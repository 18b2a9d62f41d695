//! Fields of a tool definition and their weights.

/// A part of a tool definition that is indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Field {
    /// Name and title of the tool.
    Name,
    Description,
    ParamName,
    ParamDescription,
    /// Id of the source.
    Source,
    SourceDescription,
    /// Capability tags. Their boost is 0: a tag makes a tool findable by that word, but adds nothing to the constant part of
    /// the score that every matching term gets.
    Capability,
    /// English translation of a Chinese description, from the glossary.
    Translation,
    /// Concepts that the names of the source and of the tool mention.
    Concept,
}

/// BM25F parameters of one field.
pub(crate) struct FieldWeight {
    /// Weight of one occurrence.
    pub(crate) boost: f32,
    /// Length normalization (BM25's `b`): 0 is none, 1 is full.
    pub(crate) length_normalization: f32,
    /// Typical number of tokens. A constant instead of the catalogue's mean, so that adding or removing a source does not
    /// change the scores of the others.
    pub(crate) typical_tokens: f32,
    /// Further tokens are ignored.
    pub(crate) max_tokens: usize,
}

impl Field {
    pub(crate) const ALL: [Self; 9] = [
        Self::Name,
        Self::Description,
        Self::ParamName,
        Self::ParamDescription,
        Self::Source,
        Self::SourceDescription,
        Self::Capability,
        Self::Translation,
        Self::Concept,
    ];

    /// Tuned on the development halves of the test sets in docs/search.md.
    pub(crate) const fn weight(self) -> FieldWeight {
        let (boost, length_normalization, typical_tokens, max_tokens) = match self {
            Self::Name => (2.5, 0.0, 2.1, 64),
            Self::Description => (0.87, 0.83, 17.0, 1000),
            Self::ParamName => (0.47, 1.0, 4.5, 300),
            Self::ParamDescription => (0.32, 0.5, 26.6, 1500),
            Self::Source => (1.32, 0.41, 2.9, 64),
            Self::SourceDescription => (0.09, 0.95, 57.8, 300),
            Self::Capability => (0.0, 0.0, 3.0, 64),
            Self::Translation => (0.5, 0.6, 17.0, 500),
            Self::Concept => (1.0, 0.0, 4.0, 64),
        };
        FieldWeight { boost, length_normalization, typical_tokens, max_tokens }
    }
}
