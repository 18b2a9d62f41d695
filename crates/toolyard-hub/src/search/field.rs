//! Where a word may stand in a tool's definition, and how much it counts there.

/// A place where words stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The tool's name and its title for people.
    Name,
    /// Its description.
    Description,
    /// The names of its parameters.
    ParamName,
    /// Their descriptions.
    ParamDescription,
    /// The name of its server.
    Server,
    /// What the server says about itself.
    ServerDescription,
    /// Its capability tags.
    Capability,
    /// English words for a description in another language, from a lexicon.
    Translation,
}

/// How words of one field are weighed.
pub(crate) struct FieldWeight {
    /// What one occurrence counts.
    pub(crate) boost: f32,
    /// How much longer texts dilute: 0 not at all, 1 wholly.
    pub(crate) length: f32,
    /// How many words are usual. It is a constant and not the catalogue's mean: so a server that is added or removed
    /// changes nothing for the others, and the same tool scores the same in every catalogue.
    pub(crate) usual: f32,
    /// More words than this are not looked at.
    pub(crate) most: usize,
}

impl Field {
    /// All fields.
    pub(crate) const ALL: [Self; 8] = [
        Self::Name,
        Self::Description,
        Self::ParamName,
        Self::ParamDescription,
        Self::Server,
        Self::ServerDescription,
        Self::Capability,
        Self::Translation,
    ];

    /// Found by measuring on the development halves of the sets in docs/search.md.
    pub(crate) const fn weight(self) -> FieldWeight {
        let (boost, length, usual, most) = match self {
            Self::Name => (2.5, 0.0, 2.1, 64),
            Self::Description => (0.87, 0.83, 17.0, 1000),
            Self::ParamName => (0.47, 1.0, 4.5, 300),
            Self::ParamDescription => (0.32, 0.5, 26.6, 1500),
            Self::Server => (1.32, 0.41, 2.9, 64),
            Self::ServerDescription => (0.09, 0.95, 57.8, 300),
            Self::Capability => (0.0, 0.0, 3.0, 64),
            Self::Translation => (0.5, 0.6, 17.0, 500),
        };
        FieldWeight { boost, length, usual, most }
    }

    /// The word for `--explain`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Description => "description",
            Self::ParamName => "parameter",
            Self::ParamDescription => "parameter text",
            Self::Server => "server",
            Self::ServerDescription => "server text",
            Self::Capability => "capability",
            Self::Translation => "translation",
        }
    }
}
