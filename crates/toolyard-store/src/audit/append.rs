//! Appends records to the chain.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use serde::{Deserialize, Serialize};
use sqlx::{
    Any, AnyConnection, Row as _,
    any::{AnyArguments, AnyRow},
    query::Query,
};
use toolyard_core::{AuditRecord, ContentHash, SourceId, redact};

use crate::{
    error::StoreError,
    sql::{Durability, Engine, chunks, placeholders, read_hash, statement},
    store::Store,
};

/// More records are appended in several commits, so that others can write in between.
pub(super) const MAX_RECORDS_PER_COMMIT: usize = 4_096;
/// A checkpoint of the chain is stored after every so many records.
const CHECKPOINT_INTERVAL: i64 = 1_000;
/// Record counts for which an insert statement exists.
const CHUNK_SIZES: [usize; 3] = [128, 16, 1];
const VALUES_PER_RECORD: usize = 12;
pub(crate) const DAY_MILLIS: i64 = 24 * 60 * 60 * 1_000;

/// Redacted records that are appended together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AuditBatch {
    /// A batch with an id is appended once, however often it is written.
    pub(super) id: Option<BatchId>,
    pub(super) records: Vec<AuditRecord>,
}

/// Identifies a batch across attempts, restarts and processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BatchId {
    /// The audit log that recorded the batch.
    pub(super) writer: String,
    /// Increases from batch to batch of a writer. A batch is written only after all before it are committed.
    pub(super) number: i64,
}

struct Append {
    engine: Engine,
    batches: Vec<Arc<AuditBatch>>,
}

impl Store {
    /// Appends records to the audit log, with secrets redacted.
    pub async fn append_audit(&self, records: Vec<AuditRecord>) -> Result<(), StoreError> {
        let batch = AuditBatch { id: None, records: redact_records(records) };
        self.append_audit_batches(vec![Arc::new(batch)], Durability::Relaxed).await
    }

    /// Appends batches in order, except those that were appended before.
    pub(super) async fn append_audit_batches(
        &self,
        batches: Vec<Arc<AuditBatch>>,
        durability: Durability,
    ) -> Result<(), StoreError> {
        if batches.iter().all(|batch| batch.records.is_empty()) {
            return Ok(());
        }
        let durability = match self.engine() {
            // Relaxed commits of SQLite are safe from a crash of this process.
            Engine::Sqlite => durability,
            // A PostgreSQL server that crashes forgets relaxed commits that it has acknowledged.
            Engine::Postgres => Durability::Synced,
        };
        let data = Append { engine: self.engine(), batches };
        self.write(durability, data, |connection, data| Box::pin(append(connection, data))).await
    }

    /// Forgets a writer all of whose batches are appended and whose batches nobody will write again.
    pub(super) async fn forget_audit_writer(&self, writer: String) -> Result<(), StoreError> {
        self.write_statement(Durability::Relaxed, writer, |connection, writer| {
            Box::pin(async move {
                let query = sqlx::query("DELETE FROM audit_writers WHERE writer = $1").bind(writer.as_str());
                query.execute(connection).await?;
                Ok(())
            })
        })
        .await
    }
}

/// Appends one record in the transaction of the change that it records.
pub(crate) async fn append_record(
    connection: &mut AnyConnection,
    engine: Engine,
    record: AuditRecord,
) -> Result<(), StoreError> {
    let batch = AuditBatch { id: None, records: redact_records(vec![record]) };
    append(connection, &Append { engine, batches: vec![Arc::new(batch)] }).await
}

/// Redacts the text fields: even a name may contain a secret.
pub(super) fn redact_records(mut records: Vec<AuditRecord>) -> Vec<AuditRecord> {
    // Most names occur in many records; each one without secrets is scanned once.
    let mut harmless = HashSet::new();
    for record in &mut records {
        for text in [&mut record.caller, &mut record.tool, &mut record.outcome] {
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
    // The row lock on the head serializes replicas.
    let lock = data.engine.postgres_only("FOR UPDATE");
    let sql = format!("SELECT number, hash FROM audit_head {lock}");
    let head = sqlx::query(statement(sql)).fetch_one(&mut *connection).await?;
    let (mut number, mut previous) = read_link(&head)?;
    let mut records = Vec::new();
    for batch in &data.batches {
        if is_new(connection, batch).await? {
            records.extend(&batch.records);
        }
    }
    let mut partitioned_day = None;
    for chunk in chunks(&records, &CHUNK_SIZES) {
        let mut query = sqlx::query(statement(insert_sql(data.engine, chunk.len())));
        let mut checkpoint = None;
        for &record in chunk {
            let day = record.at.div_euclid(DAY_MILLIS);
            if data.engine == Engine::Postgres && partitioned_day != Some(day) {
                create_partition(connection, day).await?;
                partitioned_day = Some(day);
            }
            number += 1;
            previous = record.chain_hash(number, &previous);
            query = bind_record(query, number, day, record, &previous)?;
            if number % CHECKPOINT_INTERVAL == 0 {
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
    let query = sqlx::query("UPDATE audit_head SET number = $1, hash = $2");
    query.bind(number).bind(previous.to_string()).execute(connection).await?;
    Ok(())
}

/// Whether a batch was not appended before; marks it as appended in the same transaction.
async fn is_new(connection: &mut AnyConnection, batch: &AuditBatch) -> Result<bool, StoreError> {
    let Some(id) = &batch.id else { return Ok(true) };
    let sql = "INSERT INTO audit_writers (writer, batch) VALUES ($1, $2)
               ON CONFLICT (writer) DO UPDATE SET batch = excluded.batch WHERE audit_writers.batch < excluded.batch";
    let marked = sqlx::query(sql).bind(id.writer.as_str()).bind(id.number).execute(connection).await?;
    Ok(marked.rows_affected() > 0)
}

/// The number and hash of a row of `audit_head` or `audit_checkpoints`.
pub(crate) fn read_link(row: &AnyRow) -> Result<(i64, ContentHash), StoreError> {
    Ok((row.try_get("number")?, read_hash(row, "hash")?))
}

/// The PostgreSQL partition of a day, counted from 1970.
pub(crate) fn partition_name(day: i64) -> String {
    if day < 0 { format!("audit_before_{}", day.unsigned_abs()) } else { format!("audit_{day}") }
}

/// Creates the PostgreSQL partition of a day.
pub(crate) async fn create_partition(connection: &mut AnyConnection, day: i64) -> Result<(), StoreError> {
    let name = partition_name(day);
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS {name} PARTITION OF audit FOR VALUES FROM ({day}) TO ({})",
        day.saturating_add(1)
    );
    sqlx::query(statement(sql)).execute(connection).await?;
    Ok(())
}

fn insert_sql(engine: Engine, records: usize) -> String {
    format!(
        "INSERT INTO audit (number, day, at, caller, call, tool, sources, arguments, result, outcome, milliseconds, hash)
         VALUES {}",
        placeholders(engine, records, VALUES_PER_RECORD)
    )
}

fn bind_record<'q>(
    query: Query<'q, Any, AnyArguments>,
    number: i64,
    day: i64,
    record: &'q AuditRecord,
    hash: &ContentHash,
) -> Result<Query<'q, Any, AnyArguments>, StoreError> {
    let sources: Vec<&str> = record.sources.iter().map(SourceId::as_str).collect();
    let sources = serde_json::to_string(&sources).map_err(StoreError::corrupt)?;
    let query = query.bind(number).bind(day).bind(record.at).bind(record.caller.as_str());
    let query = query.bind(record.call.as_str()).bind(record.tool.as_str()).bind(sources);
    let query = query.bind(record.arguments.to_string()).bind(record.result.map(String::from));
    Ok(query.bind(record.outcome.as_str()).bind(record.milliseconds).bind(hash.to_string()))
}
