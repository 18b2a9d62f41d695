//! Why the store cannot be opened or used.

use toolyard_core::JournalError;

use crate::engine::Location;

/// A failure of the store. It is cloned to everyone whose work was in the same commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database cannot be opened.
    #[error("failed to open the store at {location}: {reason}")]
    Open {
        /// Where it is; a password in it is not shown.
        location: Location,
        /// Why.
        reason: String,
    },
    /// The database was written by a later version of Toolyard.
    #[error("the store at {location} was written by a later version of toolyard (it has migration {found})")]
    Newer {
        /// Where it is.
        location: String,
        /// The migration that is not known here.
        found: i64,
    },
    /// The database refused a statement.
    #[error("the database failed: {0}")]
    Database(String),
    /// What is stored cannot be understood.
    #[error("the store holds something that cannot be understood: {0}")]
    Corrupt(String),
    /// The journal's own refusals pass through.
    #[error(transparent)]
    Journal(JournalError),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether it is a database elsewhere that could not be reached.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Open { location: Location::Postgres(_), .. })
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open { .. } => {
                Some("check the path or address under `store` in toolyard.toml and who may write there")
            }
            Self::Newer { .. } => Some("use the toolyard that wrote it, or another store"),
            Self::Corrupt(_) => Some("look at it with `toolyard store check`"),
            Self::Database(_) | Self::Journal(_) | Self::Closed => None,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.to_string())
    }
}

impl From<JournalError> for StoreError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl From<StoreError> for JournalError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Journal(error) => error,
            other => Self::Failed(other.to_string()),
        }
    }
}
