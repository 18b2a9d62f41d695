//! Records as they are stored, and queries for them.

use serde::Serialize;
use sqlx::{Row as _, any::AnyRow};
use toolyard_core::{AuditRecord, ContentHash, SourceId};

use crate::{
    error::StoreError,
    sql::{Engine, read_hash, read_optional_hash, statement},
    store::Store,
};

/// One record of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    /// Position in the chain, from 1.
    pub number: i64,
    /// The tool call.
    #[serde(flatten)]
    pub record: AuditRecord,
    /// The hash of this record and all before it.
    pub hash: ContentHash,
}

impl AuditEntry {
    pub(super) fn from_row(row: &AnyRow) -> Result<Self, StoreError> {
        let sources: Vec<String> =
            serde_json::from_str(&row.try_get::<String, _>("sources")?).map_err(StoreError::corrupt)?;
        Ok(Self {
            number: row.try_get("number")?,
            record: AuditRecord {
                at: row.try_get("at")?,
                caller: row.try_get("caller")?,
                call: row.try_get("call")?,
                tool: row.try_get("tool")?,
                sources: sources.into_iter().map(SourceId::from).collect(),
                arguments: read_hash(row, "arguments")?,
                result: read_optional_hash(row, "result")?,
                outcome: row.try_get("outcome")?,
                milliseconds: row.try_get("milliseconds")?,
            },
            hash: read_hash(row, "hash")?,
        })
    }
}

/// Selects audit records. Absent fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only calls of this tool.
    pub tool: Option<String>,
    /// Only calls by this caller.
    pub caller: Option<String>,
    /// Only this outcome: `ok`, `failed`, `timeout`, …
    pub outcome: Option<String>,
    /// Only records with a smaller number.
    pub before: Option<i64>,
    /// Only records with a larger number.
    pub after: Option<i64>,
    /// Only calls from this time on, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Only calls before this time, in milliseconds since 1970.
    pub until: Option<i64>,
    /// Whether the earliest records are returned if there are more than the limit, instead of the latest.
    pub from_earliest: bool,
    /// The maximum number of records.
    pub limit: i64,
}

impl Store {
    /// The audit records that match a query, oldest first.
    pub async fn query_audit(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        let sql = "SELECT * FROM audit WHERE ($1 IS NULL OR tool = $1) AND ($2 IS NULL OR caller = $2)
                   AND ($3 IS NULL OR outcome = $3) AND number < $4 AND number > $5 AND at >= $6 AND at < $7
                   ORDER BY number";
        let direction = if query.from_earliest { "ASC" } else { "DESC" };
        let sql = format!("{sql} {direction} LIMIT $8");
        let sql = match self.engine() {
            Engine::Sqlite => sql,
            // PostgreSQL cannot infer the type of a parameter that is compared with NULL.
            Engine::Postgres => ["$1", "$2", "$3"]
                .iter()
                .fold(sql, |sql, name| sql.replace(name, &format!("CAST({name} AS TEXT)"))),
        };
        let AuditQuery { tool, caller, outcome, before, after, since, until, from_earliest, limit } =
            query.clone();
        let query = sqlx::query(statement(sql)).bind(tool).bind(caller).bind(outcome);
        let query = query.bind(before.unwrap_or(i64::MAX)).bind(after.unwrap_or(i64::MIN));
        let query = query.bind(since.unwrap_or(i64::MIN)).bind(until.unwrap_or(i64::MAX)).bind(limit);
        let mut rows = self.fetch_all(query).await?;
        if !from_earliest {
            rows.reverse();
        }
        rows.iter().map(AuditEntry::from_row).collect()
    }
}
