//! The audit log: records taken in memory, written in batches, each chained to the one before by its hash.

use std::{
    borrow::Cow,
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Serialize;
use sqlx::{
    Any, AnyConnection, Row as _,
    any::{AnyArguments, AnyRow},
    query::Query,
};
use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};
use toolyard_core::{Audit, AuditRecord, ContentHash, SourceId, redact};

use crate::{
    engine::{Durability, Engine, statement},
    error::StoreError,
    rows::{chunks, places},
    store::{Store, now},
};

/// Records that may wait to be written; beyond that they are counted as lost, and that is recorded.
const QUEUE: usize = 65_536;
/// How many records one commit takes.
const BATCH: usize = 4_096;
/// How long a record waits for others: a commit costs the same for one as for hundreds.
const GATHER: Duration = Duration::from_millis(100);
/// Every so many records the end of the chain is written down apart from it.
const CHECKPOINT_EVERY: i64 = 1_000;
/// Statements exist for these numbers of records only.
const CHUNKS: [usize; 3] = [128, 16, 1];
/// How many values one record has.
const VALUES: usize = 12;
const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Takes records of calls and writes them in the background.
#[derive(Debug)]
pub struct StoredAudit {
    desk: Arc<Desk>,
}

/// Where records wait. Taking one wakes nobody unless it is the first.
#[derive(Debug, Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    /// There is something to write.
    arrived: Notify,
    /// It must not wait for more.
    urgent: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    records: Vec<AuditRecord>,
    /// How many found no room.
    lost: u64,
    /// Who wants to know when what is here is written.
    flushes: Vec<oneshot::Sender<()>>,
    /// Nobody brings anything any more.
    closed: bool,
}

/// One record as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// Its place in the chain, from 1.
    pub number: i64,
    /// What happened.
    #[serde(flatten)]
    pub record: AuditRecord,
    /// The hash of this record and all before it.
    pub hash: ContentHash,
}

/// What a look at the whole chain found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every record is as it was written.
    Whole {
        /// How many there are.
        records: i64,
        /// The hash at the end; noted elsewhere, it shows later that nothing before it was changed.
        head: ContentHash,
    },
    /// The first place where it is not.
    Broken {
        /// The number of the record that is wrong or missing.
        number: i64,
        /// What is wrong.
        reason: String,
    },
}

/// Which records are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only calls of this tool.
    pub tool: Option<String>,
    /// Only calls on this one's behalf.
    pub who: Option<String>,
    /// Only this outcome: `ok`, `failed`, `timeout`, …
    pub outcome: Option<String>,
    /// Only records before this one.
    pub before: Option<i64>,
    /// At most so many, the latest ones.
    pub limit: i64,
}

impl StoredAudit {
    /// Starts writing to the store.
    pub fn start(store: &Store) -> Self {
        let desk = Arc::<Desk>::default();
        tokio::spawn(write_batches(store.clone(), Arc::clone(&desk)));
        Self { desk }
    }

    /// Waits until everything taken so far is written.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        self.desk.waiting().flushes.push(done);
        self.desk.hurry();
        let _ = written.await;
    }
}

impl Drop for StoredAudit {
    fn drop(&mut self) {
        self.desk.waiting().closed = true;
        self.desk.hurry();
    }
}

impl Audit for StoredAudit {
    fn record(&self, record: AuditRecord) {
        let mut waiting = self.desk.waiting();
        if waiting.records.len() >= QUEUE {
            waiting.lost += 1;
            return;
        }
        waiting.records.push(record);
        let first = waiting.records.len() == 1;
        drop(waiting);
        if first {
            self.desk.arrived.notify_one();
        }
    }
}

impl Desk {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hurry(&self) {
        self.arrived.notify_one();
        self.urgent.notify_one();
    }

    fn is_urgent(&self) -> bool {
        let waiting = self.waiting();
        waiting.closed || !waiting.flushes.is_empty()
    }
}

async fn write_batches(store: Store, desk: Arc<Desk>) {
    loop {
        desk.arrived.notified().await;
        if !desk.is_urgent() {
            // More records make the same commit worth more. That nobody was in a hurry is the usual case.
            let _ = timeout(GATHER, desk.urgent.notified()).await;
        }
        let Waiting { mut records, lost, flushes, closed } = {
            let mut waiting = desk.waiting();
            let closed = waiting.closed;
            // About as many will come again.
            let next = Vec::with_capacity(waiting.records.len().min(BATCH));
            std::mem::replace(&mut *waiting, Waiting { records: next, closed, ..Waiting::default() })
        };
        if lost > 0 {
            records.push(loss(lost));
        }
        while !records.is_empty() {
            let later = records.split_off(records.len().min(BATCH));
            if let Err(error) = store.append_audit(std::mem::replace(&mut records, later)).await {
                tracing::error!(%error, "audit records were not written");
            }
        }
        for done in flushes {
            let _ = done.send(());
        }
        if closed {
            return;
        }
    }
}

/// That records are missing is itself a record.
fn loss(missing: u64) -> AuditRecord {
    AuditRecord {
        at: now(),
        who: "toolyard".to_owned(),
        call: String::new(),
        tool: String::new(),
        sources: Vec::new(),
        arguments: ContentHash::of(""),
        result: None,
        outcome: format!("{missing} records lost: the store could not keep up"),
        milliseconds: 0,
    }
}

struct Append {
    engine: Engine,
    records: Vec<AuditRecord>,
}

impl Store {
    /// Writes records at the end of the chain.
    pub async fn append_audit(&self, records: Vec<AuditRecord>) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        let data = Append { engine: self.engine(), records: without_secrets(records) };
        self.write(Durability::Relaxed, data, |connection, data| Box::pin(append(connection, data))).await
    }

    /// The latest records that match, oldest first.
    pub async fn audit(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        let sql = "SELECT * FROM audit WHERE ($1 IS NULL OR tool = $1) AND ($2 IS NULL OR who = $2)
                   AND ($3 IS NULL OR outcome = $3) AND number < $4 ORDER BY number DESC LIMIT $5";
        let sql = match self.engine() {
            Engine::Sqlite => sql.to_owned(),
            // PostgreSQL wants to know the type of a parameter that is only compared with NULL.
            Engine::Postgres => ["$1", "$2", "$3"]
                .iter()
                .fold(sql.to_owned(), |sql, name| sql.replace(name, &format!("CAST({name} AS TEXT)"))),
        };
        let AuditQuery { tool, who, outcome, before, limit } = query.clone();
        let query = sqlx::query(statement(sql)).bind(tool).bind(who).bind(outcome);
        let rows = query.bind(before.unwrap_or(i64::MAX)).bind(limit).fetch_all(self.pool()).await?;
        rows.iter().rev().map(entry).collect()
    }

    /// Looks at every record: is it the one that was written, in its place, and is none missing? `noted` is a number
    /// and hash that somebody kept elsewhere.
    pub async fn verify_audit(&self, noted: Option<(i64, ContentHash)>) -> Result<Verdict, StoreError> {
        let head = sqlx::query("SELECT number, hash FROM audit_head").fetch_one(self.pool()).await?;
        let (end, end_hash): (i64, ContentHash) = (head.try_get("number")?, hash(&head)?);
        let mut checkpoints = self.checkpoints().await?;
        checkpoints.extend(noted);
        let (mut number, mut previous) = (0, ContentHash::from([0; 32]));
        loop {
            let sql = "SELECT * FROM audit WHERE number > $1 ORDER BY number LIMIT 10000";
            let rows = sqlx::query(sql).bind(number).fetch_all(self.pool()).await?;
            for row in &rows {
                let Ok(entry) = entry(row) else { return Ok(broken(number + 1, "it cannot be read")) };
                number += 1;
                if entry.number != number {
                    return Ok(broken(number, "it is missing"));
                }
                if entry.hash != entry.record.chained(number, &previous) {
                    return Ok(broken(number, "it, or one before it, is not what was written"));
                }
                if checkpoints.iter().any(|(at, noted)| *at == number && *noted != entry.hash) {
                    return Ok(broken(
                        number,
                        "the chain was written anew: it does not match its checkpoint",
                    ));
                }
                previous = entry.hash;
            }
            if rows.is_empty() {
                break;
            }
        }
        let last_noted = checkpoints.iter().map(|(at, _)| *at).max().unwrap_or(0);
        if number < end.max(last_noted) {
            return Ok(broken(number + 1, "it is missing: the log was cut off"));
        }
        if number != end || previous != end_hash {
            return Ok(broken(number, "the end of the log is not the end of the chain"));
        }
        Ok(Verdict::Whole { records: number, head: previous })
    }

    async fn checkpoints(&self) -> Result<Vec<(i64, ContentHash)>, StoreError> {
        let rows = sqlx::query("SELECT number, hash FROM audit_checkpoints").fetch_all(self.pool()).await?;
        rows.iter().map(|row| Ok((row.try_get("number")?, hash(row)?))).collect()
    }
}

fn broken(number: i64, reason: &str) -> Verdict {
    Verdict::Broken { number, reason: reason.to_owned() }
}

/// Names may hold what should not be kept, whatever they are the names of.
fn without_secrets(mut records: Vec<AuditRecord>) -> Vec<AuditRecord> {
    // Most names stand in many records: one in which nothing was found is looked at once.
    let mut harmless = HashSet::new();
    for record in &mut records {
        for text in [&mut record.who, &mut record.tool, &mut record.outcome] {
            if harmless.contains(text.as_str()) {
                continue;
            }
            match redact(text) {
                Cow::Owned(redacted) => *text = redacted,
                Cow::Borrowed(_) => {
                    harmless.insert(text.clone());
                }
            }
        }
        if let Cow::Owned(redacted) = redact(&record.call) {
            record.call = redacted;
        }
    }
    records
}

async fn append(connection: &mut AnyConnection, data: &Append) -> Result<(), StoreError> {
    // Replicas write one after another: whoever holds the head holds the end of the chain.
    let lock = match data.engine {
        Engine::Sqlite => "",
        Engine::Postgres => "FOR UPDATE",
    };
    let sql = format!("SELECT number, hash FROM audit_head {lock}");
    let head = sqlx::query(statement(sql)).fetch_one(&mut *connection).await?;
    let (mut number, mut previous): (i64, ContentHash) = (head.try_get("number")?, hash(&head)?);
    let mut partitioned = None;
    for chunk in chunks(&data.records, &CHUNKS) {
        let mut query = sqlx::query(statement(insert_of(data.engine, chunk.len())));
        let mut checkpoint = None;
        for record in chunk {
            let day = record.at.div_euclid(DAY);
            if data.engine == Engine::Postgres && partitioned != Some(day) {
                make_partition(connection, day).await?;
                partitioned = Some(day);
            }
            number += 1;
            previous = record.chained(number, &previous);
            query = bound(query, number, day, record, &previous)?;
            if number % CHECKPOINT_EVERY == 0 {
                checkpoint = Some((number, previous, record.at));
            }
        }
        query.execute(&mut *connection).await?;
        if let Some((number, hash, at)) = checkpoint {
            let sql = "INSERT INTO audit_checkpoints (number, hash, at) VALUES ($1, $2, $3)";
            let query = sqlx::query(sql).bind(number).bind(hash.to_string()).bind(at);
            query.execute(&mut *connection).await?;
        }
    }
    let query =
        sqlx::query("UPDATE audit_head SET number = $1, hash = $2").bind(number).bind(previous.to_string());
    query.execute(connection).await?;
    Ok(())
}

pub(crate) async fn make_partition(connection: &mut AnyConnection, day: i64) -> Result<(), StoreError> {
    let name = if day < 0 { format!("audit_before_{}", day.unsigned_abs()) } else { format!("audit_{day}") };
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS {name} PARTITION OF audit FOR VALUES FROM ({day}) TO ({})",
        day.saturating_add(1)
    );
    sqlx::query(statement(sql)).execute(connection).await?;
    Ok(())
}

fn insert_of(engine: Engine, records: usize) -> String {
    format!(
        "INSERT INTO audit (number, day, at, who, call, tool, sources, arguments, result, outcome, milliseconds, hash)
         VALUES {}",
        places(engine, records, VALUES)
    )
}

type AnyQuery<'q> = Query<'q, Any, AnyArguments>;

fn bound<'q>(
    query: AnyQuery<'q>,
    number: i64,
    day: i64,
    record: &'q AuditRecord,
    hash: &ContentHash,
) -> Result<AnyQuery<'q>, StoreError> {
    let sources: Vec<&str> = record.sources.iter().map(SourceId::as_str).collect();
    let sources = serde_json::to_string(&sources).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let query = query.bind(number).bind(day).bind(record.at).bind(record.who.as_str());
    let query = query.bind(record.call.as_str()).bind(record.tool.as_str()).bind(sources);
    let query = query.bind(record.arguments.to_string()).bind(record.result.map(String::from));
    Ok(query.bind(record.outcome.as_str()).bind(record.milliseconds).bind(hash.to_string()))
}

fn hash(row: &AnyRow) -> Result<ContentHash, StoreError> {
    row.try_get::<String, _>("hash")?.parse().map_err(StoreError::Corrupt)
}

fn entry(row: &AnyRow) -> Result<AuditEntry, StoreError> {
    let parsed = |text: String| text.parse::<ContentHash>().map_err(StoreError::Corrupt);
    let sources: Vec<String> = serde_json::from_str(&row.try_get::<String, _>("sources")?)
        .map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(AuditEntry {
        number: row.try_get("number")?,
        record: AuditRecord {
            at: row.try_get("at")?,
            who: row.try_get("who")?,
            call: row.try_get("call")?,
            tool: row.try_get("tool")?,
            sources: sources.into_iter().map(SourceId::from).collect(),
            arguments: parsed(row.try_get("arguments")?)?,
            result: row.try_get::<Option<String>, _>("result")?.map(parsed).transpose()?,
            outcome: row.try_get("outcome")?,
            milliseconds: row.try_get("milliseconds")?,
        },
        hash: hash(row)?,
    })
}
