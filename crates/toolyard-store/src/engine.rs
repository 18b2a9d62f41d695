//! The two engines: how they are opened, migrated and told how safely to commit.

use std::{
    fmt::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{
    AnyConnection, AnyPool, AssertSqlSafe, Connection as _, Executor as _, Row as _,
    any::AnyPoolOptions,
    migrate::{MigrateError, Migrator},
};
use tokio::time::timeout;

use crate::error::StoreError;

// SQLite before 3.51.3 could corrupt a database when the write-ahead log was reset at a bad moment.
const _: () = assert!(libsqlite3_sys::SQLITE_VERSION_NUMBER >= 3_051_003, "SQLite is too old");

static SQLITE_MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");
static POSTGRES_MIGRATIONS: Migrator = sqlx::migrate!("migrations/postgres");

/// How long a last attempt to connect may take.
const LAST_ATTEMPT: Duration = Duration::from_secs(2);

/// Where the truth is kept.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// A file of its own; one machine.
    Sqlite(PathBuf),
    /// A PostgreSQL database by its address, `postgres://user:password@host/database`; many machines.
    Postgres(String),
}

impl Location {
    /// Reads `store` of `toolyard.toml`: an address of PostgreSQL, or the path of a file.
    pub fn parse(text: &str, base: &Path) -> Self {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            Self::Postgres(text.to_owned())
        } else {
            Self::Sqlite(base.join(text))
        }
    }

    /// Which engine it is.
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
            // What stands before the @ may hold a password.
            Self::Postgres(address) => match address.rsplit_once('@') {
                Some((_, place)) => write!(f, "postgres://…@{place}"),
                None => f.write_str(address),
            },
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which database it is: the few statements that differ ask this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// One file, one writer at a time.
    Sqlite,
    /// A server.
    Postgres,
}

/// How safely a commit must stand before anyone is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durability {
    /// It survives a crash of this process; a loss of power may take the last moments.
    Relaxed,
    /// It survives a loss of power.
    Synced,
}

impl Engine {
    /// Milliseconds since 1970 by the database's own clock, which all replicas share.
    pub(crate) fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)",
            Self::Postgres => "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
        }
    }

    /// What a connection is told so that its commits stand this safely.
    pub(crate) fn commits(self, durability: Durability) -> &'static str {
        match (self, durability) {
            (Self::Sqlite, Durability::Synced) => "PRAGMA synchronous = FULL",
            (Self::Sqlite, Durability::Relaxed) => "PRAGMA synchronous = NORMAL",
            (Self::Postgres, Durability::Synced) => "SET synchronous_commit = on",
            (Self::Postgres, Durability::Relaxed) => "SET synchronous_commit = off",
        }
    }

    /// Begins a transaction that writes.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            // Takes the write lock at once: two readers that both want to write would block each other.
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    fn migrations(self) -> &'static Migrator {
        match self {
            Self::Sqlite => &SQLITE_MIGRATIONS,
            Self::Postgres => &POSTGRES_MIGRATIONS,
        }
    }
}

/// Opens a database, makes it if it is not there, and brings it up to date.
pub(crate) async fn open(location: &Location) -> Result<AnyPool, StoreError> {
    sqlx::any::install_default_drivers();
    let failed = |reason: String| StoreError::Open { location: location.clone(), reason };
    let address = match location {
        Location::Sqlite(path) => sqlite_address(path).map_err(|error| failed(error.to_string()))?,
        Location::Postgres(address) => address.clone(),
    };
    let engine = location.engine();
    let options = AnyPoolOptions::new()
        .max_connections(match engine {
            Engine::Sqlite => 6,
            Engine::Postgres => 12,
        })
        .acquire_timeout(Duration::from_secs(10))
        .after_connect(move |connection, _| {
            Box::pin(async move {
                if engine == Engine::Sqlite {
                    let pragmas =
                        "PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 10000; PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 8000";
                    connection.execute(sqlx::raw_sql(pragmas)).await?;
                }
                Ok(())
            })
        });
    let pool = match options.connect(&address).await {
        // All the time it was tried again, and only the last attempt knows why it failed.
        Err(error @ sqlx::Error::PoolTimedOut) => {
            let last = timeout(LAST_ATTEMPT, AnyConnection::connect(&address)).await;
            Err(failed(last.ok().and_then(Result::err).unwrap_or(error).to_string()))
        }
        other => other.map_err(|error| failed(error.to_string())),
    }?;
    migrate(&pool, location).await?;
    Ok(pool)
}

async fn migrate(pool: &AnyPool, location: &Location) -> Result<(), StoreError> {
    let engine = location.engine();
    let latest = engine.migrations().iter().map(|migration| migration.version).max().unwrap_or(0);
    // Looking through all migrations takes longer than most commands; in SQLite each one leaves its number behind.
    if engine == Engine::Sqlite && sqlite_version(pool).await == Some(latest) {
        return Ok(());
    }
    let outcome = engine.migrations().run(pool).await;
    outcome.map_err(|error| match error {
        MigrateError::VersionMissing(found) => StoreError::Newer { location: location.to_string(), found },
        other => StoreError::Open { location: location.clone(), reason: other.to_string() },
    })
}

/// The number of the last migration a file has seen; none if it cannot be told.
async fn sqlite_version(pool: &AnyPool) -> Option<i64> {
    let row = sqlx::query("PRAGMA user_version").fetch_one(pool).await.ok()?;
    row.try_get(0).ok()
}

fn sqlite_address(path: &Path) -> std::io::Result<String> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    private_file(path)?;
    let text = path.to_str().ok_or_else(|| std::io::Error::other("the path is not valid Unicode"))?;
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => {
                escaped.push(char::from(byte));
            }
            other => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "%{other:02X}");
            }
        }
    }
    Ok(format!("sqlite://{escaped}?mode=rwc"))
}

/// The file is its owner's alone from its first moment on; SQLite gives its companions the same rights.
fn private_file(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(|_| ())
}

/// A statement put together from our own constants.
pub(crate) fn statement(text: String) -> AssertSqlSafe<String> {
    AssertSqlSafe(text)
}
