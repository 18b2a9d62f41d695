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
    /// The maximum number of records; the latest ones are returned.
    pub limit: i64,
}

impl Store {
    /// The latest audit records that match a query, oldest first.
    pub async fn query_audit(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        let sql = "SELECT * FROM audit WHERE ($1 IS NULL OR tool = $1) AND ($2 IS NULL OR caller = $2)
                   AND ($3 IS NULL OR outcome = $3) AND number < $4 ORDER BY number DESC LIMIT $5";
        let sql = match self.engine() {
            Engine::Sqlite => sql.to_owned(),
            // PostgreSQL cannot infer the type of a parameter that is compared with NULL.
            Engine::Postgres => ["$1", "$2", "$3"]
                .iter()
                .fold(sql.to_owned(), |sql, name| sql.replace(name, &format!("CAST({name} AS TEXT)"))),
        };
        let AuditQuery { tool, caller, outcome, before, limit } = query.clone();
        let query = sqlx::query(statement(sql)).bind(tool).bind(caller).bind(outcome);
        let rows = self.fetch_all(query.bind(before.unwrap_or(i64::MAX)).bind(limit)).await?;
        rows.iter().rev().map(AuditEntry::from_row).collect()
    }
}
