//! Errors of the store.

use std::{fmt::Display, time::Duration};

use toolyard_core::{JournalError, StorageError};

use crate::location::Location;

/// A failure of the store. Cloneable because every write of a failed commit reports it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database cannot be opened: wrong path or URL, no permission, or the server is down.
    ///
    /// Remedy: check `store` in `toolyard.toml`, the permissions of the file and its folder, or that PostgreSQL runs
    /// and accepts the credentials.
    #[error("failed to open the store at {location}: {reason}")]
    Open {
        /// The location, displayed without its password.
        location: Location,
        /// The engine's or the operating system's message.
        reason: String,
    },
    /// A later version of Toolyard has migrated the database; this one could damage it.
    ///
    /// Remedy: update Toolyard, or use another `store`; to go back, restore the backup that was made before the update.
    #[error(
        "the store at {location} was written by a later version of toolyard (it has migration {migration})"
    )]
    NewerSchema {
        /// The location, displayed without its password.
        location: Location,
        /// The number of the unknown migration.
        migration: i64,
    },
    /// The store has policies or settings of an earlier version; this one reads them from files only, and would drop them.
    ///
    /// Remedy: save what `SELECT name, text FROM policies` or `SELECT text FROM settings_versions ORDER BY number DESC
    /// LIMIT 1` prints to files, name these in `toolyard.toml`, and empty the table.
    #[error(
        "the store at {location} has rows in the table `{table}`, which this version would drop: policies and settings are in files only"
    )]
    StoredSettings {
        /// The location, displayed without its password.
        location: Location,
        /// The table with the rows.
        table: &'static str,
    },
    /// The database rejected a statement, or the connection failed; the text is its message.
    ///
    /// Remedy: check the free space of the disk and the state of the database: `toolyard store check`; then repeat the
    /// command.
    #[error("the database failed: {0}")]
    Database(String),
    /// The connection failed during a commit, so it is unknown whether the change was made.
    ///
    /// Remedy: look at the state (`toolyard runs show RUN`, `toolyard callers list`, …) before you repeat the
    /// command.
    #[error("the connection to the database failed during a commit, which may have been made: {0}")]
    CommitUnknown(String),
    /// A stored value cannot be decoded: the database was damaged or changed by another program.
    ///
    /// Remedy: check it with `toolyard store check`, and restore a backup if it is damaged.
    #[error("the store holds invalid data: {0}")]
    Corrupt(String),
    /// The journal rejected an operation.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The process did not renew the lease of a session in time: it was paused, or the store failed. Another process
    /// may have the session now.
    ///
    /// Remedy: call again: the new owner answers. If it repeats, raise `[cluster] lease` and check the latency of
    /// PostgreSQL.
    #[error(
        "lost the lease of `{name}` with the fencing number {fence}: it was released, has expired or was taken over"
    )]
    SessionLeaseLost {
        /// What was held.
        name: String,
        /// The fencing number of the lost lease.
        fence: i64,
    },
    /// The process is shutting down, or closed the store.
    ///
    /// Remedy: repeat the command, or the request at another replica.
    #[error("the store is closed")]
    Closed,
}

/// The reason of an error after the database was silent for this long.
pub(crate) fn no_answer(limit: Duration) -> String {
    format!("no answer for {} s", limit.as_secs())
}

impl StoreError {
    /// A stored value that cannot be decoded.
    pub(crate) fn corrupt(error: impl Display) -> Self {
        Self::Corrupt(error.to_string())
    }

    /// Whether a PostgreSQL database could not be opened.
    pub fn is_postgres_open_failure(&self) -> bool {
        matches!(self, Self::Open { location: Location::Postgres(_), .. })
    }

    /// What to do about the error.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Open { .. } => {
                Some("check the path or URL under `store` in toolyard.toml and its write permissions")
            }
            Self::NewerSchema { .. } => Some("upgrade toolyard, or use another store"),
            Self::StoredSettings { table: "policies", .. } => Some(
                "save the policies to files (SELECT name, text FROM policies), list these under `[policy] files`, then empty the \
                 table (DELETE FROM policies)",
            ),
            Self::StoredSettings { .. } => Some(
                "save the settings to toolyard.toml (SELECT text FROM settings_versions ORDER BY number DESC LIMIT 1), then \
                 empty the table (DELETE FROM settings_versions)",
            ),
            Self::Corrupt(_) => Some("run `toolyard store check`"),
            Self::Database(_)
            | Self::CommitUnknown(_)
            | Self::Journal(_)
            | Self::SessionLeaseLost { .. }
            | Self::Closed => None,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(match &error {
            // PostgreSQL's own text ends with a line number of its source code.
            sqlx::Error::Database(error) => match error.code() {
                Some(code) => format!("{} ({code})", error.message()),
                None => error.message().to_owned(),
            },
            other => other.to_string(),
        })
    }
}

impl From<StoreError> for JournalError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Journal(error) => error,
            other => Self::Storage(other.to_string()),
        }
    }
}

impl From<StoreError> for StorageError {
    fn from(error: StoreError) -> Self {
        match error {
            // A closed writer drops the writes in its queue, and does not say how far it got.
            StoreError::CommitUnknown(_) | StoreError::Closed => Self::with_unknown_outcome(error),
            other => Self::new(other),
        }
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use sqlx::Connection as _;

    use super::*;

    #[tokio::test]
    async fn a_database_error_shows_message_and_code() {
        sqlx::any::install_default_drivers();
        let mut connection = sqlx::AnyConnection::connect("sqlite::memory:").await.unwrap();
        let error = sqlx::query("SELECT * FROM missing").execute(&mut connection).await.unwrap_err();
        assert_eq!(StoreError::from(error), StoreError::Database("no such table: missing (1)".to_owned()));
    }
}
