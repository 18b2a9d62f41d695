//! Group commit: combines concurrent writes into one transaction and acknowledges each once that is committed.

use std::{collections::HashSet, sync::Arc, time::Duration};

use sqlx::{Any, AnyConnection, AnyPool, Executor as _, pool::PoolConnection};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::timeout,
};
use toolyard_core::BoxFuture;

use super::engine::{Durability, Engine};
use crate::{
    error::{StoreError, no_answer},
    journal::outcomes::{OutcomeRow, write_outcomes},
};

const MAX_WRITES_PER_COMMIT: usize = 256;
/// A connection that does not answer a commit for this long is given up: its other end may be gone and not have closed it.
const MAX_SILENCE: Duration = Duration::from_secs(30);
/// Callers wait when this many writes are queued.
const MAX_QUEUED_WRITES: usize = 4_096;

/// Work inside a transaction. It runs again if the transaction was rolled back because of another write.
pub(crate) type WriteFn<D, T> =
    for<'c> fn(&'c mut AnyConnection, &'c D) -> BoxFuture<'c, Result<T, StoreError>>;

/// How a job is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobKind {
    Transaction,
    /// One statement, which is atomic without a transaction.
    OneStatement,
    /// A transaction, unless the caller stopped waiting before it began.
    UnlessAbandoned,
}

#[derive(Debug, Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<QueuedWrite>,
}

struct QueuedWrite {
    write: Write,
    durability: Durability,
}

enum Write {
    Job(Box<dyn WriteJob>),
    /// The outcomes of one batch become one statement.
    Outcome(Box<OutcomeRow>, OutcomeReply),
}

type OutcomeReply = oneshot::Sender<Result<bool, StoreError>>;

trait WriteJob: Send {
    fn run<'c>(&'c mut self, connection: &'c mut AnyConnection) -> BoxFuture<'c, Result<(), StoreError>>;
    fn reply(self: Box<Self>, outcome: Result<(), StoreError>);
    fn is_one_statement(&self) -> bool;
    /// The same work in smaller jobs, to isolate the one that fails.
    fn split(self: Box<Self>) -> Vec<Box<dyn WriteJob>>;
}

/// All step outcomes of one batch.
struct OutcomeBatch {
    engine: Engine,
    rows: Vec<(Box<OutcomeRow>, OutcomeReply)>,
    written: HashSet<(String, String)>,
}

impl WriteJob for OutcomeBatch {
    fn run<'c>(&'c mut self, connection: &'c mut AnyConnection) -> BoxFuture<'c, Result<(), StoreError>> {
        Box::pin(async move {
            let rows: Vec<&OutcomeRow> = self.rows.iter().map(|(row, _)| &**row).collect();
            self.written = write_outcomes(connection, self.engine, &rows).await?;
            Ok(())
        })
    }

    fn reply(self: Box<Self>, outcome: Result<(), StoreError>) {
        for (row, reply) in self.rows {
            let _ = reply.send(outcome.clone().map(|()| self.written.contains(&row.key())));
        }
    }

    fn is_one_statement(&self) -> bool {
        self.rows.len() == 1
    }

    fn split(self: Box<Self>) -> Vec<Box<dyn WriteJob>> {
        let engine = self.engine;
        let single =
            |row| Box::new(Self { engine, rows: vec![row], written: HashSet::new() }) as Box<dyn WriteJob>;
        self.rows.into_iter().map(single).collect()
    }
}

/// A [`WriteFn`] with its data and the channel for its result.
struct FunctionJob<D, T> {
    data: Arc<D>,
    work: WriteFn<D, T>,
    result: Option<T>,
    kind: JobKind,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<D: Send + Sync + 'static, T: Send + 'static> WriteJob for FunctionJob<D, T> {
    fn run<'c>(&'c mut self, connection: &'c mut AnyConnection) -> BoxFuture<'c, Result<(), StoreError>> {
        Box::pin(async move {
            if self.kind == JobKind::UnlessAbandoned && self.reply.is_closed() {
                return Ok(());
            }
            self.result = Some((self.work)(connection, &self.data).await?);
            Ok(())
        })
    }

    fn reply(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { result, reply, .. } = *self;
        // The caller may have stopped waiting; the write is committed all the same.
        let _ = reply.send(outcome.and_then(|()| result.ok_or(StoreError::Closed)));
    }

    fn is_one_statement(&self) -> bool {
        self.kind == JobKind::OneStatement
    }

    fn split(self: Box<Self>) -> Vec<Box<dyn WriteJob>> {
        vec![self]
    }
}

impl Writer {
    /// Starts the background tasks: one for SQLite, which has a single writer, two for PostgreSQL.
    pub(crate) fn start(pool: &AnyPool, engine: Engine) -> Self {
        let (queue, receiver) = mpsc::channel(MAX_QUEUED_WRITES);
        let receiver = Arc::new(Mutex::new(receiver));
        let tasks = match engine {
            Engine::Sqlite => 1,
            Engine::Postgres => 2,
        };
        for _ in 0..tasks {
            tokio::spawn(commit_batches(pool.clone(), engine, Arc::clone(&receiver)));
        }
        Self { queue }
    }

    /// Runs `work` in the next commit and returns once that is done.
    pub(crate) async fn write<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        durability: Durability,
        data: D,
        kind: JobKind,
        work: WriteFn<D, T>,
    ) -> Result<T, StoreError> {
        let (reply, result) = oneshot::channel();
        let job = FunctionJob { data: Arc::new(data), work, result: None, kind, reply };
        self.enqueue(Write::Job(Box::new(job)), durability).await?;
        result.await.map_err(|_| StoreError::Closed)?
    }

    /// Durably writes the outcome of a step; returns whether the lease still covered it.
    pub(crate) async fn write_outcome(&self, row: OutcomeRow) -> Result<bool, StoreError> {
        let (reply, written) = oneshot::channel();
        self.enqueue(Write::Outcome(Box::new(row), reply), Durability::Synced).await?;
        written.await.map_err(|_| StoreError::Closed)?
    }

    /// The number of writes that wait.
    pub(crate) fn queued(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    async fn enqueue(&self, write: Write, durability: Durability) -> Result<(), StoreError> {
        self.queue.send(QueuedWrite { write, durability }).await.map_err(|_| StoreError::Closed)
    }
}

/// Commits batches until all [`Writer`]s are dropped.
async fn commit_batches(pool: AnyPool, engine: Engine, receiver: Arc<Mutex<mpsc::Receiver<QueuedWrite>>>) {
    let mut connections = [Durability::Relaxed, Durability::Synced].map(|durability| WriteConnection {
        pool: pool.clone(),
        engine,
        durability,
        connection: None,
        was_silent: false,
    });
    let mut batch = Vec::with_capacity(MAX_WRITES_PER_COMMIT);
    loop {
        let received = receiver.lock().await.recv_many(&mut batch, MAX_WRITES_PER_COMMIT).await;
        if received == 0 {
            return;
        }
        let durability = batch.iter().map(|queued| queued.durability).max().unwrap_or(Durability::Synced);
        let mut jobs: Vec<Box<dyn WriteJob>> = Vec::with_capacity(batch.len());
        let mut outcomes = OutcomeBatch { engine, rows: Vec::new(), written: HashSet::new() };
        for queued in batch.drain(..) {
            match queued.write {
                Write::Job(job) => jobs.push(job),
                Write::Outcome(row, reply) => outcomes.rows.push((row, reply)),
            }
        }
        // After the jobs: an outcome may belong to an intent of the same batch.
        if !outcomes.rows.is_empty() {
            jobs.push(Box::new(outcomes));
        }
        if let Some(connection) = connections.iter_mut().find(|one| one.durability == durability) {
            connection.commit(jobs).await;
            if connection.was_silent {
                // What silenced one connection has probably silenced the others.
                connections.iter_mut().for_each(WriteConnection::disconnect);
            }
        }
    }
}

/// A connection that the writer keeps, because its settings must not leak into the pool.
struct WriteConnection {
    pool: AnyPool,
    engine: Engine,
    durability: Durability,
    connection: Option<PoolConnection<Any>>,
    /// Whether a connection was given up because no answer came.
    was_silent: bool,
}

impl WriteConnection {
    /// The next commit opens a new connection.
    fn disconnect(&mut self) {
        self.was_silent = false;
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }

    /// Commits all jobs in one transaction. If that fails, commits each in its own, so that one failing job does not
    /// affect the others.
    async fn commit(&mut self, mut jobs: Vec<Box<dyn WriteJob>>) {
        match self.commit_together(&mut jobs).await {
            Ok(()) => jobs.into_iter().for_each(|job| job.reply(Ok(()))),
            Err(error) => {
                let jobs: Vec<Box<dyn WriteJob>> = jobs.into_iter().flat_map(WriteJob::split).collect();
                if let [_only] = jobs.as_slice() {
                    return jobs.into_iter().for_each(|job| job.reply(Err(error.clone())));
                }
                for job in jobs {
                    let mut single = vec![job];
                    let outcome = self.commit_together(&mut single).await;
                    single.into_iter().for_each(|job| job.reply(outcome.clone()));
                }
            }
        }
    }

    async fn commit_together(&mut self, jobs: &mut [Box<dyn WriteJob>]) -> Result<(), StoreError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let outcome = match self.engine {
            Engine::Sqlite => run_in_transaction(&mut connection, self.engine, jobs).await,
            Engine::Postgres => {
                let transaction = run_in_transaction(&mut connection, self.engine, jobs);
                timeout(MAX_SILENCE, transaction).await.unwrap_or_else(|_elapsed| {
                    self.was_silent = true;
                    Err(TransactionError::Connection(StoreError::CommitUnknown(no_answer(MAX_SILENCE))))
                })
            }
        };
        if matches!(outcome, Ok(()) | Err(TransactionError::Job(_))) {
            self.connection = Some(connection);
        } else {
            // The state of a failed connection is unknown, and its settings must not reach others by the pool. The next
            // commit opens a new one.
            drop(connection.detach());
        }
        outcome.map_err(|failure| match failure {
            TransactionError::Job(error) | TransactionError::Connection(error) => error,
        })
    }

    async fn connect(&mut self) -> Result<PoolConnection<Any>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        connection.execute(sqlx::raw_sql(self.engine.set_durability(self.durability))).await?;
        connection.execute(sqlx::raw_sql(self.engine.limit_locks())).await?;
        Ok(connection)
    }
}

enum TransactionError {
    Job(StoreError),
    Connection(StoreError),
}

async fn run_in_transaction(
    connection: &mut AnyConnection,
    engine: Engine,
    jobs: &mut [Box<dyn WriteJob>],
) -> Result<(), TransactionError> {
    let failed = |error: sqlx::Error| TransactionError::Connection(error.into());
    if let [job] = jobs
        && job.is_one_statement()
    {
        return job.run(connection).await.map_err(TransactionError::Connection);
    }
    connection.execute(sqlx::raw_sql(engine.begin())).await.map_err(failed)?;
    for job in jobs {
        if let Err(error) = job.run(connection).await {
            connection.execute(sqlx::raw_sql("ROLLBACK")).await.map_err(failed)?;
            return Err(TransactionError::Job(error));
        }
    }
    connection.execute(sqlx::raw_sql("COMMIT")).await.map_err(failed)?;
    Ok(())
}
