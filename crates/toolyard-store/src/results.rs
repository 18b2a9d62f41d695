//! Whole results, named by their content, kept in compressed parts until they are too old or too many.

use sqlx::{AnyConnection, Row as _};
use toolyard_core::{BoxFuture, ContentHash, ResultPage, ResultRef, Results, ResultsError, redact};

use crate::{
    compress::{compressed, uncompressed},
    engine::Durability,
    error::StoreError,
    store::{Store, now},
};

/// How much of a result stands in one part; a page needs one or two parts, however long the whole is.
const PART: usize = 256 << 10;
/// Letters of a reference: no vowels that make words, nothing that looks like something else.
const LETTERS: &[u8] = b"23456789bcdfghjkmnpqrstvwxyz";

/// How long and how much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// Results older than this are dropped, in milliseconds.
    pub age: i64,
    /// When all results together are larger than this, in bytes before compression, the oldest are dropped.
    pub bytes: i64,
}

impl Default for Keeping {
    fn default() -> Self {
        Self { age: 7 * 24 * 60 * 60 * 1_000, bytes: 1 << 30 }
    }
}

impl Results for Store {
    fn keep<'a>(&'a self, whole: &'a str) -> BoxFuture<'a, Result<ResultRef, ResultsError>> {
        Box::pin(async move {
            let text = redact(whole);
            let reference = reference_of(&text);
            let parts = parts_of(&text).map_err(failed)?;
            let bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
            let data = Kept { reference: reference.to_string(), parts, bytes, at: now() };
            let kept =
                self.write(Durability::Relaxed, data, |connection, data| Box::pin(insert(connection, data)));
            kept.await.map_err(failed)?;
            Ok(reference)
        })
    }

    fn read<'a>(
        &'a self,
        reference: &'a ResultRef,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<ResultPage, ResultsError>> {
        Box::pin(async move {
            let found = self.part_of_result(reference, offset, limit).await.map_err(failed)?;
            found.ok_or_else(|| ResultsError::Unknown(reference.clone()))
        })
    }
}

impl Store {
    async fn part_of_result(
        &self,
        reference: &ResultRef,
        offset: usize,
        limit: usize,
    ) -> Result<Option<ResultPage>, StoreError> {
        let query = sqlx::query("SELECT bytes FROM results WHERE reference = $1").bind(reference.as_str());
        let Some(row) = query.fetch_optional(self.pool()).await? else { return Ok(None) };
        let total = usize::try_from(row.try_get::<i64, _>("bytes")?).unwrap_or(0);
        // Parts may be a few bytes short of their size, so one before and one after are looked at too.
        let first = (offset.min(total) / PART).saturating_sub(1);
        let last = offset.saturating_add(limit).min(total) / PART + 1;
        let sql = "SELECT part, content FROM result_parts WHERE reference = $1 AND part >= $2 AND part <= $3 ORDER BY part";
        let number = |part: usize| i64::try_from(part).unwrap_or(i64::MAX);
        let query = sqlx::query(sql).bind(reference.as_str()).bind(number(first)).bind(number(last));
        let mut text = String::new();
        for row in query.fetch_all(self.pool()).await? {
            text.push_str(&uncompressed(&row.try_get::<Vec<u8>, _>("content")?)?);
        }
        let start = self.start_of_part(reference, first).await?;
        let mut page = ResultPage::of(&text, offset.min(total).saturating_sub(start), limit);
        page.offset += start;
        page.total = total;
        let end = page.offset + page.text.len();
        page.next = (end < total).then_some(end);
        Ok(Some(page))
    }

    /// Where a part begins: parts end at characters, so each may be up to three bytes short.
    async fn start_of_part(&self, reference: &ResultRef, part: usize) -> Result<usize, StoreError> {
        if part == 0 {
            return Ok(0);
        }
        let sql = "SELECT starts_at FROM result_parts WHERE reference = $1 AND part = $2";
        let number = i64::try_from(part).unwrap_or(i64::MAX);
        let row = sqlx::query(sql).bind(reference.as_str()).bind(number).fetch_one(self.pool()).await?;
        Ok(usize::try_from(row.try_get::<i64, _>("starts_at")?).unwrap_or(0))
    }

    /// Drops results that are too old or too much; how many.
    pub async fn expire_results(&self, keeping: Keeping) -> Result<u64, StoreError> {
        self.write(Durability::Relaxed, keeping, |connection, keeping| Box::pin(expire(connection, *keeping)))
            .await
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn failed(error: StoreError) -> ResultsError {
    ResultsError::Failed(error.to_string())
}

/// The same content has the same name, wherever it was kept.
fn reference_of(text: &str) -> ResultRef {
    let hash = ContentHash::of(text);
    let letter = |byte: &u8| LETTERS.get(usize::from(*byte) % LETTERS.len()).copied().map(char::from);
    ResultRef::new(format!("r_{}", hash.as_bytes().iter().take(16).filter_map(letter).collect::<String>()))
}

struct Part {
    starts_at: i64,
    content: Vec<u8>,
}

fn parts_of(text: &str) -> Result<Vec<Part>, StoreError> {
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
        let length = rest.floor_char_boundary(PART);
        let content = rest.get(..length).unwrap_or(rest);
        parts.push(Part {
            starts_at: i64::try_from(start).unwrap_or(i64::MAX),
            content: compressed(content.as_bytes())?,
        });
        start += content.len();
    }
    Ok(parts)
}

struct Kept {
    reference: String,
    parts: Vec<Part>,
    bytes: i64,
    at: i64,
}

/// A result that is kept again is young again.
async fn insert(connection: &mut AnyConnection, data: &Kept) -> Result<(), StoreError> {
    let sql = "INSERT INTO results (reference, bytes, created_at) VALUES ($1, $2, $3)
               ON CONFLICT (reference) DO UPDATE SET created_at = excluded.created_at";
    let query = sqlx::query(sql).bind(data.reference.as_str()).bind(data.bytes).bind(data.at);
    query.execute(&mut *connection).await?;
    for (number, part) in (0_i64..).zip(&data.parts) {
        let sql = "INSERT INTO result_parts (reference, part, starts_at, content) VALUES ($1, $2, $3, $4)
                   ON CONFLICT (reference, part) DO NOTHING";
        let query = sqlx::query(sql).bind(data.reference.as_str()).bind(number).bind(part.starts_at);
        query.bind(part.content.as_slice()).execute(&mut *connection).await?;
    }
    Ok(())
}

async fn expire(connection: &mut AnyConnection, keeping: Keeping) -> Result<u64, StoreError> {
    let query =
        sqlx::query("DELETE FROM results WHERE created_at < $1").bind(now().saturating_sub(keeping.age));
    let old = query.execute(&mut *connection).await?.rows_affected();
    // Newest first, everything beyond the room there is goes.
    let sql = "DELETE FROM results WHERE reference IN (
                   SELECT reference FROM (
                       SELECT reference, SUM(bytes) OVER (ORDER BY created_at DESC, reference) AS so_far FROM results
                   ) AS sized WHERE so_far > $1)";
    let many = sqlx::query(sql).bind(keeping.bytes).execute(&mut *connection).await?.rows_affected();
    Ok(old + many)
}
