//! Whole tool results, named by their owner and content and stored in compressed chunks until they expire.

use std::time::Duration;

use sqlx::{AnyConnection, Row as _};
use tokio::time::Instant;
use toolyard_core::{
    BoxFuture, ContentHash, DataOwner, ResultPage, ResultRef, Results, ResultsError, ResultsUsage, redact,
    unix_millis,
};

use crate::{
    error::StoreError,
    large_text::{is_large, on_other_thread},
    sql::{Durability, compress, decompress, read_owner},
    store::Store,
};

/// Bytes of a chunk before compression. A page of a result then needs a few chunks, however long the result is.
const CHUNK_BYTES: usize = 256 << 10;
/// Characters of a reference: no vowels, which could form words, and none that look alike.
const REFERENCE_ALPHABET: &[u8] = b"23456789bcdfghjkmnpqrstvwxyz";

/// Characters of a reference after `r_`.
const REFERENCE_CHARS: usize = 16;

/// Results are counted at most this often: that reads their table.
const USAGE_MAX_AGE: Duration = Duration::from_mins(1);

/// How long results are stored, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultRetention {
    /// Older results expire.
    pub max_age_millis: i64,
    /// The oldest results expire while all together exceed this size before compression.
    pub max_bytes: i64,
}

impl Default for ResultRetention {
    fn default() -> Self {
        Self { max_age_millis: 7 * 24 * 60 * 60 * 1_000, max_bytes: 1 << 30 }
    }
}

impl Results for Store {
    fn store<'a>(
        &'a self,
        whole: &'a str,
        owner: DataOwner,
    ) -> BoxFuture<'a, Result<ResultRef, ResultsError>> {
        Box::pin(async move {
            let data = if is_large(whole.len()) {
                let whole = whole.to_owned();
                on_other_thread(move || NewResult::new(&whole, owner)).await
            } else {
                NewResult::new(whole, owner)
            };
            let data = data.map_err(storage_error)?;
            let reference = ResultRef::new(data.reference.as_str());
            let written =
                self.write(Durability::Relaxed, data, |connection, data| Box::pin(insert(connection, data)));
            written.await.map_err(storage_error)?;
            Ok(reference)
        })
    }

    fn read<'a>(
        &'a self,
        reference: &'a ResultRef,
        reader: DataOwner,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<ResultPage, ResultsError>> {
        Box::pin(async move {
            let page = self.result_page(reference, reader, offset, limit).await.map_err(storage_error)?;
            page.ok_or_else(|| ResultsError::NotFound(reference.clone()))
        })
    }

    fn usage(&self) -> BoxFuture<'_, Option<ResultsUsage>> {
        Box::pin(async move {
            let mut measured = self.results_usage().lock().await;
            if let Some((_, usage)) = measured.filter(|(at, _)| at.elapsed() < USAGE_MAX_AGE) {
                return Some(usage);
            }
            let usage = self.measure_results().await.ok()?;
            *measured = Some((Instant::now(), usage));
            Some(usage)
        })
    }
}

impl Store {
    async fn measure_results(&self) -> Result<ResultsUsage, StoreError> {
        // A sum of whole numbers has another type in PostgreSQL.
        let sql =
            "SELECT COUNT(*) AS stored, CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS stored_bytes FROM results";
        let row = sqlx::query(sql).fetch_one(self.pool()).await?;
        let number =
            |column| Ok::<u64, StoreError>(u64::try_from(row.try_get::<i64, _>(column)?).unwrap_or(0));
        Ok(ResultsUsage { stored: number("stored")?, stored_bytes: number("stored_bytes")?, evicted: None })
    }

    async fn result_page(
        &self,
        reference: &ResultRef,
        reader: DataOwner,
        offset: usize,
        limit: usize,
    ) -> Result<Option<ResultPage>, StoreError> {
        let query =
            sqlx::query("SELECT bytes, owner FROM results WHERE reference = $1").bind(reference.as_str());
        let Some(row) = query.fetch_optional(self.pool()).await? else { return Ok(None) };
        if !reader.may_read(&read_owner(&row)?) {
            return Ok(None);
        }
        let total = usize::try_from(row.try_get::<i64, _>("bytes")?).unwrap_or(0);
        // Chunks end at character boundaries and may be a few bytes short, so one before and one after are read too.
        let first = (offset.min(total) / CHUNK_BYTES).saturating_sub(1);
        let last = offset.saturating_add(limit).min(total) / CHUNK_BYTES + 1;
        let sql = "SELECT content FROM result_chunks WHERE reference = $1 AND number >= $2 AND number <= $3 ORDER BY number";
        let query = sqlx::query(sql).bind(reference.as_str()).bind(to_i64(first)).bind(to_i64(last));
        let mut text = String::new();
        for row in self.fetch_all(query).await? {
            text.push_str(&decompress(&row.try_get::<Vec<u8>, _>("content")?)?);
        }
        let start = self.chunk_start(reference, first).await?;
        let mut page = ResultPage::of(&text, offset.min(total).saturating_sub(start), limit);
        page.offset += start;
        page.total = total;
        let end = page.offset + page.text.len();
        page.next = (end < total).then_some(end);
        Ok(Some(page))
    }

    /// The offset of a chunk in its result.
    async fn chunk_start(&self, reference: &ResultRef, number: usize) -> Result<usize, StoreError> {
        if number == 0 {
            return Ok(0);
        }
        let sql = "SELECT starts_at FROM result_chunks WHERE reference = $1 AND number = $2";
        let query = sqlx::query(sql).bind(reference.as_str()).bind(to_i64(number));
        let row = query.fetch_one(self.pool()).await?;
        Ok(usize::try_from(row.try_get::<i64, _>("starts_at")?).unwrap_or(0))
    }

    /// Deletes expired results; returns their number.
    pub async fn expire_results(&self, retention: ResultRetention) -> Result<u64, StoreError> {
        let deleted = self.write(Durability::Relaxed, retention, |connection, retention| {
            Box::pin(expire(connection, *retention))
        });
        deleted.await
    }
}

#[expect(clippy::needless_pass_by_value, reason = "map_err passes errors by value")]
fn storage_error(error: StoreError) -> ResultsError {
    ResultsError::Storage(error.to_string())
}

/// The same content of the same owner has the same reference in every store. Another owner cannot compute it, so that nobody
/// learns from a reference whether somebody else has got the same content.
fn reference_of(text: &str, owner: DataOwner) -> ResultRef {
    let hash = match owner {
        DataOwner::Operator => ContentHash::of(text),
        DataOwner::Caller(owner) => ContentHash::of_parts([owner.as_bytes().as_slice(), text.as_bytes()]),
    };
    let to_character = |byte: &u8| {
        REFERENCE_ALPHABET.get(usize::from(*byte) % REFERENCE_ALPHABET.len()).copied().map(char::from)
    };
    ResultRef::new(format!(
        "r_{}",
        hash.as_bytes().iter().take(REFERENCE_CHARS).filter_map(to_character).collect::<String>()
    ))
}

struct Chunk {
    starts_at: i64,
    content: Vec<u8>,
}

fn split_chunks(text: &str) -> Result<Vec<Chunk>, StoreError> {
    let mut chunks = Vec::new();
    let mut start = 0;
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let length = rest.floor_char_boundary(CHUNK_BYTES);
        let content = rest.get(..length).unwrap_or(rest);
        chunks.push(Chunk { starts_at: to_i64(start), content: compress(content.as_bytes())? });
        start += content.len();
    }
    Ok(chunks)
}

fn to_i64(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

struct NewResult {
    reference: String,
    owner: DataOwner,
    chunks: Vec<Chunk>,
    bytes: i64,
    created_at: i64,
}

impl NewResult {
    /// Redacts, names and compresses a result.
    fn new(whole: &str, owner: DataOwner) -> Result<Self, StoreError> {
        let text = redact(whole);
        Ok(Self {
            reference: reference_of(&text, owner).to_string(),
            owner,
            chunks: split_chunks(&text)?,
            bytes: to_i64(text.len()),
            created_at: unix_millis(),
        })
    }
}

/// Inserts a result, or renews the age of one that exists.
async fn insert(connection: &mut AnyConnection, data: &NewResult) -> Result<(), StoreError> {
    let sql = "INSERT INTO results (reference, owner, bytes, created_at) VALUES ($1, $2, $3, $4)
               ON CONFLICT (reference) DO UPDATE SET created_at = excluded.created_at";
    let query = sqlx::query(sql).bind(data.reference.as_str()).bind(data.owner.as_text().into_owned());
    query.bind(data.bytes).bind(data.created_at).execute(&mut *connection).await?;
    for (number, chunk) in (0_i64..).zip(&data.chunks) {
        let sql = "INSERT INTO result_chunks (reference, number, starts_at, content) VALUES ($1, $2, $3, $4)
                   ON CONFLICT (reference, number) DO NOTHING";
        let query = sqlx::query(sql).bind(data.reference.as_str()).bind(number).bind(chunk.starts_at);
        query.bind(chunk.content.as_slice()).execute(&mut *connection).await?;
    }
    Ok(())
}

async fn expire(connection: &mut AnyConnection, retention: ResultRetention) -> Result<u64, StoreError> {
    let oldest = unix_millis().saturating_sub(retention.max_age_millis);
    let query = sqlx::query("DELETE FROM results WHERE created_at < $1").bind(oldest);
    let too_old = query.execute(&mut *connection).await?.rows_affected();
    // Counted from the newest, everything beyond the size limit is deleted.
    let sql = "DELETE FROM results WHERE reference IN (
                   SELECT reference FROM (
                       SELECT reference, SUM(bytes) OVER (ORDER BY created_at DESC, reference) AS running_total FROM results
                   ) AS sized WHERE running_total > $1)";
    let too_many =
        sqlx::query(sql).bind(retention.max_bytes).execute(&mut *connection).await?.rows_affected();
    Ok(too_old + too_many)
}
