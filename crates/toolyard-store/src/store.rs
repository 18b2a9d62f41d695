//! The store: one database, many small traits.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use sqlx::AnyPool;

use crate::{
    engine::{self, Durability, Engine, Location},
    error::StoreError,
    leases::Leases,
    outcomes::OutcomeRow,
    writer::{Work, Writer},
};

/// Durable truth. Cloning it is cheap and gives the same store.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    location: Location,
    pool: AnyPool,
    writer: Writer,
    leases: Leases,
}

impl Store {
    /// Opens the store, makes it if it is not there, and brings an older one up to date.
    pub async fn open(location: Location) -> Result<Self, StoreError> {
        let pool = engine::open(&location).await?;
        let writer = Writer::start(&pool, location.engine());
        Ok(Self { inner: Arc::new(Inner { location, pool, writer, leases: Leases::default() }) })
    }

    /// Where it is.
    pub fn location(&self) -> &Location {
        &self.inner.location
    }

    /// Which engine it runs on.
    pub fn engine(&self) -> Engine {
        self.inner.location.engine()
    }

    /// For reading; all writing goes through [`Self::write`].
    pub(crate) fn pool(&self) -> &AnyPool {
        &self.inner.pool
    }

    /// What this process knows of the runs it holds.
    pub(crate) fn leases(&self) -> &Leases {
        &self.inner.leases
    }

    /// Writes what came of a step, durably; whether it was this lease's to write.
    pub(crate) async fn write_outcome(&self, row: OutcomeRow) -> Result<bool, StoreError> {
        self.inner.writer.write_outcome(row).await
    }

    /// Does work in the next commit and answers when that stands.
    pub(crate) async fn write<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        durability: Durability,
        data: D,
        work: Work<D, T>,
    ) -> Result<T, StoreError> {
        self.inner.writer.write(durability, data, false, work).await
    }

    /// The same for work of one statement, which is atomic by itself.
    pub(crate) async fn write_one<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        durability: Durability,
        data: D,
        work: Work<D, T>,
    ) -> Result<T, StoreError> {
        self.inner.writer.write(durability, data, true, work).await
    }
}

/// Milliseconds since 1970 by this machine's clock.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
