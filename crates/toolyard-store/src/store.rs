//! The store: one database that implements many small traits of `toolyard-core`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::TryStreamExt as _;
use sqlx::{Any, AnyPool, any::AnyArguments, any::AnyRow, query::Query};
use toolyard_core::ResultsUsage;

use crate::{
    error::{StoreError, no_answer},
    journal::{held_leases::HeldLeases, outcomes::OutcomeRow},
    location::Location,
    sql::{
        Durability, Engine, connect,
        writer::{JobKind, WriteFn, Writer},
    },
};

/// The limits of [`Engine::limit_locks`] for one transaction: its connection belongs to the pool. An abandoned request would keep the
/// connection until it gets the lock.
const LIMIT_LOCKS: &str = "SELECT set_config('lock_timeout', '5s', true), \
                           set_config('idle_in_transaction_session_timeout', '4s', true)";

/// How long the database may take for the answer to a query, or between two rows of it. Without an answer the connection is given up:
/// its other end may be gone and not have closed it.
const MAX_READ_SILENCE: Duration = Duration::from_secs(60);

/// Returns milliseconds since 1970; replaceable in tests.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// An open database. Clones are cheap and share it.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<StoreInner>,
}

#[derive(Debug)]
struct StoreInner {
    location: Location,
    pool: AnyPool,
    writer: Writer,
    held_leases: HeldLeases,
    results_usage: tokio::sync::Mutex<MeasuredResults>,
    is_reachable: AtomicBool,
}

/// What was stored, and when that was counted.
type MeasuredResults = Option<(tokio::time::Instant, ResultsUsage)>;

impl Store {
    /// Opens a store, creates it if it is missing, and migrates an older one to the current schema.
    ///
    /// # Errors
    /// [`StoreError::Open`] if the database cannot be reached or created, [`StoreError::NewerSchema`] if a later
    /// version of Toolyard has migrated it.
    pub async fn open(location: Location) -> Result<Self, StoreError> {
        let pool = connect::open(&location).await?;
        let writer = Writer::start(&pool, location.engine());
        Ok(Self {
            inner: Arc::new(StoreInner {
                location,
                pool,
                writer,
                held_leases: HeldLeases::default(),
                results_usage: tokio::sync::Mutex::default(),
                is_reachable: AtomicBool::new(true),
            }),
        })
    }

    /// Where the database is.
    pub fn location(&self) -> &Location {
        &self.inner.location
    }

    /// The engine of the database.
    pub fn engine(&self) -> Engine {
        self.inner.location.engine()
    }

    /// The number of writes that wait to be committed.
    pub fn queued_writes(&self) -> usize {
        self.inner.writer.queued()
    }

    /// Whether the last [`Self::ping`] was answered; true before the first one, because the store was opened.
    pub fn is_reachable(&self) -> bool {
        self.inner.is_reachable.load(Ordering::Relaxed)
    }

    pub(crate) fn note_reachable(&self, is_reachable: bool) {
        self.inner.is_reachable.store(is_reachable, Ordering::Relaxed);
    }

    pub(crate) fn results_usage(&self) -> &tokio::sync::Mutex<MeasuredResults> {
        &self.inner.results_usage
    }

    /// Connections for reading; all writing goes through [`Self::write`].
    pub(crate) fn pool(&self) -> &AnyPool {
        &self.inner.pool
    }

    pub(crate) fn held_leases(&self) -> &HeldLeases {
        &self.inner.held_leases
    }

    pub(crate) async fn fetch_all(
        &self,
        query: Query<'_, Any, AnyArguments>,
    ) -> Result<Vec<AnyRow>, StoreError> {
        with_read_timeout(query.fetch_all(self.pool())).await
    }

    /// All rows of a query as records.
    pub(crate) async fn select<T>(
        &self,
        query: Query<'_, Any, AnyArguments>,
        read_row: fn(&AnyRow) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        // Row by row, because all rows of large tables would take as much memory again as their records.
        let mut rows = query.fetch(self.pool());
        let mut records = Vec::new();
        while let Some(row) = with_read_timeout(rows.try_next()).await? {
            records.push(read_row(&row)?);
        }
        Ok(records)
    }

    /// The first row of a query as a record, if there is one.
    pub(crate) async fn select_optional<T>(
        &self,
        query: Query<'_, Any, AnyArguments>,
        read_row: fn(&AnyRow) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        with_read_timeout(query.fetch_optional(self.pool())).await?.as_ref().map(read_row).transpose()
    }

    /// Durably writes the outcome of a step; returns whether the lease still covered it.
    pub(crate) async fn write_outcome(&self, row: OutcomeRow) -> Result<bool, StoreError> {
        self.inner.writer.write_outcome(row).await
    }

    /// Like [`Self::write`], but `work` is left out if the caller stops waiting before it begins.
    pub(crate) async fn write_unless_abandoned<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        durability: Durability,
        data: D,
        work: WriteFn<D, T>,
    ) -> Result<T, StoreError> {
        self.inner.writer.write(durability, data, JobKind::UnlessAbandoned, work).await
    }

    /// Runs `work` in a transaction of its own where that is possible: other replicas wait for the row that it locks, and two
    /// such rows in one transaction could be locked in two orders. Work that nobody waits for any more when its turn comes is
    /// left out. On PostgreSQL the server's setting decides about durability.
    pub(crate) async fn write_alone<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        durability: Durability,
        data: D,
        work: WriteFn<D, T>,
    ) -> Result<T, StoreError> {
        if self.engine() == Engine::Sqlite {
            return self.write_unless_abandoned(durability, data, work).await;
        }
        let mut transaction = self.pool().begin().await?;
        sqlx::query(LIMIT_LOCKS).execute(&mut *transaction).await?;
        let result = work(&mut transaction, &data).await?;
        transaction.commit().await.map_err(|error| StoreError::CommitUnknown(error.to_string()))?;
        Ok(result)
    }

    /// Runs `work` in the next commit and returns once that is done.
    pub(crate) async fn write<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        durability: Durability,
        data: D,
        work: WriteFn<D, T>,
    ) -> Result<T, StoreError> {
        self.inner.writer.write(durability, data, JobKind::Transaction, work).await
    }

    /// Like [`Self::write`], for work of one statement, which is atomic without a transaction.
    pub(crate) async fn write_statement<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        durability: Durability,
        data: D,
        work: WriteFn<D, T>,
    ) -> Result<T, StoreError> {
        self.inner.writer.write(durability, data, JobKind::OneStatement, work).await
    }
}

/// The answer of the database, or an error if none comes within [`MAX_READ_SILENCE`].
async fn with_read_timeout<T>(answer: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, StoreError> {
    match tokio::time::timeout(MAX_READ_SILENCE, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_elapsed) => Err(StoreError::Database(no_answer(MAX_READ_SILENCE))),
    }
}
