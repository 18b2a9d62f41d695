//! Opens a database and applies pending migrations.

use std::{fmt::Write as _, io, path::Path, time::Duration};

use sqlx::{
    AnyConnection, AnyPool, Connection as _, Executor as _, Row as _, any::AnyPoolOptions,
    migrate::MigrateError,
};
use tokio::time::{sleep, timeout};

use super::{
    engine::{Engine, statement},
    migrations::migrations_of,
    tables::{DROPPED_TABLES, DROPPING_MIGRATION},
};
use crate::{
    error::{StoreError, no_answer},
    location::Location,
};

// SQLite before 3.51.3 can corrupt a database when the write-ahead log is reset during a concurrent write.
#[cfg(feature = "sqlite")]
const _: () = assert!(libsqlite3_sys::SQLITE_VERSION_NUMBER >= 3_051_003, "SQLite is too old");

const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long PostgreSQL may take to show that an idle connection still works. If a firewall forgot the connection, no answer and no
/// error would ever come.
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// A connection that is idle for less time is used without a test.
const MAX_UNTESTED_IDLE_TIME: Duration = Duration::from_millis(500);
/// A connection that is cut while it begins is tried again: one failure must not keep a process from starting.
const CONNECT_ATTEMPTS: usize = 3;
const CONNECT_RETRY_DELAY: Duration = Duration::from_millis(300);
/// Limits the extra connection attempt that finds out why the pool timed out.
const DIAGNOSIS_TIMEOUT: Duration = Duration::from_secs(2);
/// How often migrations of SQLite are tried while another process may apply them.
const MIGRATION_ATTEMPTS: usize = 20;
const MIGRATION_RETRY_DELAY: Duration = Duration::from_millis(250);
const SQLITE_MAX_CONNECTIONS: u32 = 6;
const POSTGRES_MAX_CONNECTIONS: u32 = 12;
const SQLITE_PRAGMAS: &str = "PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 10000; PRAGMA foreign_keys = ON; \
                              PRAGMA wal_autocheckpoint = 8000";

/// Opens a database, creates it if it is missing, and migrates it to the current schema.
pub(crate) async fn open(location: &Location) -> Result<AnyPool, StoreError> {
    let open_error = |reason: String| StoreError::Open { location: location.clone(), reason };
    if let Some(feature) = missing_feature(location.engine()) {
        return Err(open_error(format!(
            "the crate toolyard-store was built without its feature `{feature}`"
        )));
    }
    sqlx::any::install_default_drivers();
    let (url, max_connections) = match location {
        Location::Sqlite(path) => {
            (sqlite_url(path).map_err(|error| open_error(error.to_string()))?, SQLITE_MAX_CONNECTIONS)
        }
        Location::Postgres(url) => (url.clone(), POSTGRES_MAX_CONNECTIONS),
    };
    let engine = location.engine();
    let options = AnyPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                if engine == Engine::Sqlite {
                    connection.execute(sqlx::raw_sql(SQLITE_PRAGMAS)).await?;
                }
                Ok(())
            })
        });
    let options = if engine == Engine::Postgres { test_connections(options) } else { options };
    let mut opened = options.clone().connect(&url).await;
    for _ in 1..CONNECT_ATTEMPTS {
        if engine == Engine::Sqlite || !matches!(opened, Err(sqlx::Error::Io(_))) {
            break;
        }
        sleep(CONNECT_RETRY_DELAY).await;
        opened = options.clone().connect(&url).await;
    }
    let pool = match opened {
        // The pool retries until its timeout and does not report why; one direct attempt does.
        Err(error @ sqlx::Error::PoolTimedOut) => {
            let attempt = timeout(DIAGNOSIS_TIMEOUT, AnyConnection::connect(&url)).await;
            Err(open_error(attempt.ok().and_then(Result::err).unwrap_or(error).to_string()))
        }
        other => other.map_err(|error| open_error(error.to_string())),
    }?;
    migrate(&pool, location).await?;
    Ok(pool)
}

/// Tests idle connections like the pool itself, which however would wait for ever if the other end is gone and did not close
/// the connection. One that was released a moment ago was tested then.
fn test_connections(options: AnyPoolOptions) -> AnyPoolOptions {
    options
        .test_before_acquire(false)
        .before_acquire(|connection, state| {
            Box::pin(async move {
                if state.idle_for >= MAX_UNTESTED_IDLE_TIME {
                    ping(connection).await?;
                }
                Ok(true)
            })
        })
        .after_release(|connection, _| {
            Box::pin(async move {
                ping(connection).await?;
                Ok(true)
            })
        })
}

async fn ping(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    timeout(PING_TIMEOUT, connection.ping()).await.unwrap_or_else(|_elapsed| {
        Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, no_answer(PING_TIMEOUT))))
    })
}

/// The feature that an engine needs, if this build does not have it.
fn missing_feature(engine: Engine) -> Option<&'static str> {
    match engine {
        Engine::Sqlite => (!cfg!(feature = "sqlite")).then_some("sqlite"),
        Engine::Postgres => (!cfg!(feature = "postgres")).then_some("postgres"),
    }
}

async fn migrate(pool: &AnyPool, location: &Location) -> Result<(), StoreError> {
    let migrations = migrations_of(location.engine());
    let latest = migrations.iter().map(|migration| migration.version).max();
    // Checking every migration takes longer than most commands; SQLite migrations record their number in the file.
    if location.engine() == Engine::Sqlite && sqlite_user_version(pool).await == latest {
        return Ok(());
    }
    let mut attempts = MIGRATION_ATTEMPTS;
    loop {
        attempts -= 1;
        match apply_migrations(pool, location.engine()).await {
            Ok(None) => return Ok(()),
            Ok(Some(table)) => return Err(StoreError::StoredSettings { location: location.clone(), table }),
            Err(MigrateError::VersionMissing(migration)) => {
                return Err(StoreError::NewerSchema { location: location.clone(), migration });
            }
            // SQLite has no lock for migrations: another process may have applied them at the same time.
            Err(_) if location.engine() == Engine::Sqlite && attempts > 0 => {
                sleep(MIGRATION_RETRY_DELAY).await;
                if sqlite_user_version(pool).await == latest {
                    return Ok(());
                }
            }
            Err(error) => {
                return Err(StoreError::Open { location: location.clone(), reason: error.to_string() });
            }
        }
    }
}

/// Applies pending migrations; applies none if one would drop a table with rows, and returns the table.
async fn apply_migrations(pool: &AnyPool, engine: Engine) -> Result<Option<&'static str>, MigrateError> {
    // Of one moment: another process may migrate the store at the same time.
    let mut snapshot = pool.begin_with(engine.begin_snapshot()).await?;
    let table = find_rows_to_drop(&mut snapshot, engine).await?;
    snapshot.rollback().await?;
    if table.is_none() {
        migrations_of(engine).run(pool).await?;
    }
    Ok(table)
}

/// A table with policies or settings that a pending migration would drop: without its policies, calls that were denied would be
/// allowed.
async fn find_rows_to_drop(
    connection: &mut AnyConnection,
    engine: Engine,
) -> Result<Option<&'static str>, sqlx::Error> {
    let is_migrated = match engine {
        Engine::Sqlite => "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '_sqlx_migrations'",
        Engine::Postgres => "SELECT 1 WHERE to_regclass('_sqlx_migrations') IS NOT NULL",
    };
    if sqlx::query(is_migrated).fetch_optional(&mut *connection).await?.is_none() {
        return Ok(None);
    }
    let applied = "SELECT CAST(COALESCE(MAX(version), 0) AS BIGINT) AS version FROM _sqlx_migrations";
    let applied: i64 = sqlx::query(applied).fetch_one(&mut *connection).await?.try_get("version")?;
    for (table, created_by) in DROPPED_TABLES {
        if (created_by..DROPPING_MIGRATION).contains(&applied) {
            let row = statement(format!("SELECT 1 FROM {table} LIMIT 1"));
            if sqlx::query(row).fetch_optional(&mut *connection).await?.is_some() {
                return Ok(Some(table));
            }
        }
    }
    Ok(None)
}

/// The number of the last migration applied to a SQLite file, if it can be read.
async fn sqlite_user_version(pool: &AnyPool) -> Option<i64> {
    let row = sqlx::query("PRAGMA user_version").fetch_one(pool).await.ok()?;
    row.try_get(0).ok()
}

fn sqlite_url(path: &Path) -> io::Result<String> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    create_private_file(path)?;
    let text = path.to_str().ok_or_else(|| io::Error::other("the path is not valid Unicode"))?;
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

/// Creates the file readable by its owner only; SQLite copies these permissions to its -wal and -shm files.
pub(crate) fn create_private_file(path: &Path) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(|_| ())
}
