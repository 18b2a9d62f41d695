//! Dialect differences between the two engines.

use sqlx::AssertSqlSafe;

/// The database engine of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// One file with one writer at a time.
    Sqlite,
    /// A database server with concurrent writers.
    Postgres,
}

/// What a commit survives once it is reported as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durability {
    /// A crash of this process; power loss may undo the latest commits.
    Relaxed,
    /// Power loss.
    Synced,
}

impl Engine {
    /// SQL for milliseconds since 1970 by the database's clock, which all replicas share.
    pub(crate) fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)",
            Self::Postgres => "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
        }
    }

    /// The statement that sets the durability of a connection's commits.
    pub(crate) fn set_durability(self, durability: Durability) -> &'static str {
        match (self, durability) {
            (Self::Sqlite, Durability::Synced) => "PRAGMA synchronous = FULL",
            (Self::Sqlite, Durability::Relaxed) => "PRAGMA synchronous = NORMAL",
            (Self::Postgres, Durability::Synced) => "SET synchronous_commit = on",
            (Self::Postgres, Durability::Relaxed) => "SET synchronous_commit = off",
        }
    }

    /// SQL that limits how long a session holds and waits for locks, so that a replica that stops in the middle of a transaction, or
    /// whose host vanishes, does not stop the others: the server ends its transaction. They wait a little longer than that.
    pub(crate) fn limit_locks(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '4s'",
        }
    }

    /// The statement that begins a write transaction.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            // Takes the write lock at once: two readers that both upgrade to writers would deadlock.
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// The statement that begins a transaction whose reads all see the same state of the database.
    pub(crate) fn begin_snapshot(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN",
            Self::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }

    /// A clause that only PostgreSQL needs, such as a row lock: SQLite locks the whole database for a writer.
    pub(crate) fn postgres_only(self, clause: &'static str) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => clause,
        }
    }
}

/// Marks SQL that is assembled from this crate's own constants as safe from injection.
pub(crate) fn statement(sql: String) -> AssertSqlSafe<String> {
    AssertSqlSafe(sql)
}
