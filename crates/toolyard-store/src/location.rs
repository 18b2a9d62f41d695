//! Where a store's database is.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::sql::Engine;

/// A SQLite file or a PostgreSQL database. Its `Display` and `Debug` forms omit the password.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// A SQLite file, for one machine.
    Sqlite(PathBuf),
    /// The URL of a PostgreSQL database, `postgres://user:password@host/database`, shared by many machines.
    Postgres(String),
}

impl Location {
    /// Parses the setting `store`: a PostgreSQL URL, or a file path relative to `base`.
    pub fn parse(text: &str, base: &Path) -> Self {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            Self::Postgres(text.to_owned())
        } else {
            Self::Sqlite(base.join(text))
        }
    }

    /// The engine that serves this location.
    pub fn engine(&self) -> Engine {
        match self {
            Self::Sqlite(_) => Engine::Sqlite,
            Self::Postgres(_) => Engine::Postgres,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            Self::Postgres(url) => match url.rsplit_once('@') {
                Some((_credentials, host)) => write!(f, "postgres://…@{host}"),
                None => f.write_str(url),
            },
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
