//! Makes one commit out of the work of many: a group commit, told to each only when it stands.

use std::{collections::HashSet, sync::Arc};

use sqlx::{Any, AnyConnection, AnyPool, Executor as _, pool::PoolConnection};
use tokio::sync::{mpsc, oneshot};
use toolyard_core::BoxFuture;

use crate::{
    engine::{Durability, Engine},
    error::StoreError,
    outcomes::{OutcomeRow, write_outcomes},
};

/// No commit holds more work than this.
const BATCH: usize = 256;
/// Work that may wait before those who bring it are held up.
const QUEUE: usize = 4_096;

/// What is done inside a transaction. It may be done again when the transaction had to be given up.
pub(crate) type Work<D, T> = for<'c> fn(&'c mut AnyConnection, &'c D) -> BoxFuture<'c, Result<T, StoreError>>;

/// Takes work for the next commit.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Queued>,
}

struct Queued {
    item: Item,
    durability: Durability,
}

enum Item {
    Job(Box<dyn Job>),
    /// Outcomes of one batch become one statement.
    Outcome(Box<OutcomeRow>, Reply),
}

type Reply = oneshot::Sender<Result<bool, StoreError>>;

trait Job: Send {
    fn run<'c>(&'c mut self, connection: &'c mut AnyConnection) -> BoxFuture<'c, Result<(), StoreError>>;
    fn settle(self: Box<Self>, outcome: Result<(), StoreError>);
    fn is_one_statement(&self) -> bool;
    /// The same work in smaller jobs, for when it fails as a whole.
    fn split(self: Box<Self>) -> Vec<Box<dyn Job>>;
}

/// The outcomes of one batch.
struct Outcomes {
    engine: Engine,
    rows: Vec<(Box<OutcomeRow>, Reply)>,
    written: HashSet<(String, String)>,
}

impl Job for Outcomes {
    fn run<'c>(&'c mut self, connection: &'c mut AnyConnection) -> BoxFuture<'c, Result<(), StoreError>> {
        Box::pin(async move {
            let rows: Vec<&OutcomeRow> = self.rows.iter().map(|(row, _)| &**row).collect();
            self.written = write_outcomes(connection, self.engine, &rows).await?;
            Ok(())
        })
    }

    fn settle(self: Box<Self>, outcome: Result<(), StoreError>) {
        for (row, reply) in self.rows {
            let _ = reply.send(outcome.clone().map(|()| self.written.contains(&row.key())));
        }
    }

    fn is_one_statement(&self) -> bool {
        self.rows.len() == 1
    }

    fn split(self: Box<Self>) -> Vec<Box<dyn Job>> {
        let engine = self.engine;
        let alone = |row| Box::new(Self { engine, rows: vec![row], written: HashSet::new() }) as Box<dyn Job>;
        self.rows.into_iter().map(alone).collect()
    }
}

struct Task<D, T> {
    data: Arc<D>,
    work: Work<D, T>,
    done: Option<T>,
    one_statement: bool,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<D: Send + Sync + 'static, T: Send + 'static> Job for Task<D, T> {
    fn run<'c>(&'c mut self, connection: &'c mut AnyConnection) -> BoxFuture<'c, Result<(), StoreError>> {
        Box::pin(async move {
            self.done = Some((self.work)(connection, &self.data).await?);
            Ok(())
        })
    }

    fn settle(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { done, reply, .. } = *self;
        let answer = outcome.and_then(|()| done.ok_or(StoreError::Closed));
        // Whoever asked may have stopped waiting; the work stands all the same.
        let _ = reply.send(answer);
    }

    fn is_one_statement(&self) -> bool {
        self.one_statement
    }

    fn split(self: Box<Self>) -> Vec<Box<dyn Job>> {
        vec![self]
    }
}

impl Writer {
    /// Starts writing. SQLite has one writer at a time; PostgreSQL takes several.
    pub(crate) fn start(pool: &AnyPool, engine: Engine) -> Self {
        let (queue, work) = mpsc::channel(QUEUE);
        let work = Arc::new(tokio::sync::Mutex::new(work));
        let writers = match engine {
            Engine::Sqlite => 1,
            Engine::Postgres => 2,
        };
        for _ in 0..writers {
            tokio::spawn(write(pool.clone(), engine, Arc::clone(&work)));
        }
        Self { queue }
    }

    /// Does work in the next commit and answers when that stands. Work of one statement needs no transaction of its own.
    pub(crate) async fn write<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        durability: Durability,
        data: D,
        one_statement: bool,
        work: Work<D, T>,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Task { data: Arc::new(data), work, done: None, one_statement, reply });
        let queued = Queued { item: Item::Job(job), durability };
        self.queue.send(queued).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    /// Writes what came of a step, durably; whether it was this lease's to write.
    pub(crate) async fn write_outcome(&self, row: OutcomeRow) -> Result<bool, StoreError> {
        let (reply, answer) = oneshot::channel();
        let queued = Queued { item: Item::Outcome(Box::new(row), reply), durability: Durability::Synced };
        self.queue.send(queued).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

/// Commits until nobody can bring work any more.
async fn write(pool: AnyPool, engine: Engine, work: Arc<tokio::sync::Mutex<mpsc::Receiver<Queued>>>) {
    let mut lanes = [Durability::Relaxed, Durability::Synced].map(|durability| Lane {
        pool: pool.clone(),
        engine,
        durability,
        connection: None,
    });
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        let received = work.lock().await.recv_many(&mut batch, BATCH).await;
        if received == 0 {
            return;
        }
        let durability = batch.iter().map(|queued| queued.durability).max().unwrap_or(Durability::Synced);
        let mut jobs: Vec<Box<dyn Job>> = Vec::with_capacity(batch.len());
        let mut outcomes = Outcomes { engine, rows: Vec::new(), written: HashSet::new() };
        for queued in batch.drain(..) {
            match queued.item {
                Item::Job(job) => jobs.push(job),
                Item::Outcome(row, reply) => outcomes.rows.push((row, reply)),
            }
        }
        // After the jobs: an outcome may belong to an intent of the same batch.
        if !outcomes.rows.is_empty() {
            jobs.push(Box::new(outcomes));
        }
        if let Some(lane) = lanes.iter_mut().find(|lane| lane.durability == durability) {
            lane.commit(jobs).await;
        }
    }
}

/// A connection of the writer's own, whose commits all stand equally safely.
struct Lane {
    pool: AnyPool,
    engine: Engine,
    durability: Durability,
    connection: Option<PoolConnection<Any>>,
}

impl Lane {
    /// All jobs in one transaction. If that fails, each in one of its own, so that one bad job costs no other.
    async fn commit(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        match self.together(&mut jobs).await {
            Ok(()) => jobs.into_iter().for_each(|job| job.settle(Ok(()))),
            Err(error) => {
                let jobs: Vec<Box<dyn Job>> = jobs.into_iter().flat_map(Job::split).collect();
                if let [_only] = jobs.as_slice() {
                    return jobs.into_iter().for_each(|job| job.settle(Err(error.clone())));
                }
                for job in jobs {
                    let mut alone = vec![job];
                    let outcome = self.together(&mut alone).await;
                    alone.into_iter().for_each(|job| job.settle(outcome.clone()));
                }
            }
        }
    }

    async fn together(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), StoreError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connected().await?,
        };
        let outcome = in_one_transaction(&mut connection, self.engine, jobs).await;
        // After a failure of the connection its state is not known; the next commit gets a new one.
        if matches!(outcome, Ok(()) | Err(Failure::OfJob(_))) {
            self.connection = Some(connection);
        }
        outcome.map_err(|failure| match failure {
            Failure::OfJob(error) | Failure::OfConnection(error) => error,
        })
    }

    async fn connected(&mut self) -> Result<PoolConnection<Any>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        connection.execute(sqlx::raw_sql(self.engine.commits(self.durability))).await?;
        // It never goes back to the pool: those who read must not inherit how it commits.
        Ok(connection)
    }
}

enum Failure {
    OfJob(StoreError),
    OfConnection(StoreError),
}

async fn in_one_transaction(
    connection: &mut AnyConnection,
    engine: Engine,
    jobs: &mut [Box<dyn Job>],
) -> Result<(), Failure> {
    let lost = |error: sqlx::Error| Failure::OfConnection(error.into());
    if let [job] = jobs
        && job.is_one_statement()
    {
        return job.run(connection).await.map_err(Failure::OfConnection);
    }
    connection.execute(sqlx::raw_sql(engine.begin())).await.map_err(lost)?;
    for job in jobs {
        if let Err(error) = job.run(connection).await {
            connection.execute(sqlx::raw_sql("ROLLBACK")).await.map_err(lost)?;
            return Err(Failure::OfJob(error));
        }
    }
    connection.execute(sqlx::raw_sql("COMMIT")).await.map_err(lost)?;
    Ok(())
}
