//! Export and import of the whole store as JSON lines, also between engines.

use std::io::{self, BufRead, Seek, Write};

use futures_util::TryStreamExt as _;
use serde_json::{Value, json};
use sqlx::{AnyConnection, Row as _, any::AnyRow};
use tokio::task::consume_budget;

use crate::{
    audit::append::create_partition,
    error::StoreError,
    sql::{ColumnType, DROPPED_TABLES, Durability, Engine, TABLES, Table, placeholders, statement},
    store::Store,
};

/// The version of the export format; importing rejects any other.
const EXPORT_VERSION: i64 = 1;
const ROWS_PER_COMMIT: usize = 500;

/// Why an export or import failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The file of an export could not be read or written.
    ///
    /// Remedy: check the path, the permissions and the free space of the disk.
    #[error("failed to read or write the export: {0}")]
    File(#[from] io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A line of the export is invalid: the file is damaged, of another version, or no export.
    ///
    /// Remedy: export again with `toolyard store export FILE`, with a version that is not later than this one.
    #[error("line {line} of the export is invalid: {reason}")]
    Line {
        /// The line number, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// An import needs an empty store, so that nothing is mixed.
    ///
    /// Remedy: set `store` to a new database or file, and import there.
    #[error("the store is not empty: table {0} has rows")]
    NotEmpty(&'static str),
}

impl Store {
    /// Writes all rows, one per line, as of one moment; returns their number.
    pub async fn export(&self, target: &mut (dyn Write + Send)) -> Result<u64, TransferError> {
        writeln!(target, "{}", json!({"toolyard_export": EXPORT_VERSION}))?;
        let mut count = 0;
        // Otherwise a checkpoint, read later, may cover audit records that were appended meanwhile.
        let mut snapshot =
            self.pool().begin_with(self.engine().begin_snapshot()).await.map_err(StoreError::from)?;
        for table in TABLES {
            let sql = statement(format!("SELECT * FROM {}", table.name));
            let mut rows = sqlx::query(sql).fetch(&mut *snapshot);
            while let Some(row) = rows.try_next().await.map_err(StoreError::from)? {
                let values =
                    table.columns().map(|(column, column_type)| read_value(&row, column, column_type));
                let values: Vec<Value> = values.collect::<Result<_, _>>().map_err(StoreError::from)?;
                writeln!(target, "{}", json!({"table": table.name, "row": values}))?;
                count += 1;
            }
        }
        target.flush()?;
        Ok(count)
    }

    /// Reads an export, twice, into an empty store; returns the number of rows.
    pub async fn import<R: BufRead + Seek + Send>(&self, source: &mut R) -> Result<u64, TransferError> {
        for table in TABLES {
            let sql = statement(format!("SELECT 1 FROM {} LIMIT 1", table.name));
            let first = sqlx::query(sql).fetch_optional(self.pool()).await.map_err(StoreError::from)?;
            if first.is_some() {
                return Err(TransferError::NotEmpty(table.name));
            }
        }
        // All of it is checked before anything is written, so that no store is left half filled.
        for row in parse_export(source) {
            row?;
            consume_budget().await;
        }
        source.rewind()?;
        let mut batch = ImportBatch { engine: self.engine(), rows: Vec::new() };
        let mut count = 0;
        for row in parse_export(source) {
            batch.rows.push(row?);
            count += 1;
            if batch.rows.len() >= ROWS_PER_COMMIT {
                let full =
                    std::mem::replace(&mut batch, ImportBatch { engine: self.engine(), rows: Vec::new() });
                self.write(Durability::Synced, full, |connection, batch| Box::pin(insert(connection, batch)))
                    .await?;
            }
        }
        self.write(Durability::Synced, batch, |connection, batch| Box::pin(insert(connection, batch)))
            .await?;
        let engine = self.engine();
        self.write(Durability::Synced, engine, |connection, engine| {
            Box::pin(update_derived(connection, *engine))
        })
        .await?;
        Ok(count)
    }
}

type ExportedRow = (&'static Table, Vec<Value>);

struct ImportBatch {
    engine: Engine,
    rows: Vec<ExportedRow>,
}

fn read_value(row: &AnyRow, column: &str, column_type: ColumnType) -> Result<Value, sqlx::Error> {
    Ok(match column_type {
        ColumnType::Text => row.try_get::<Option<String>, _>(column)?.map_or(Value::Null, Value::from),
        ColumnType::Integer => row.try_get::<Option<i64>, _>(column)?.map_or(Value::Null, Value::from),
        ColumnType::Real => row.try_get::<Option<f64>, _>(column)?.map_or(Value::Null, Value::from),
        ColumnType::Blob => {
            row.try_get::<Option<Vec<u8>>, _>(column)?.map_or(Value::Null, |bytes| hex::encode(bytes).into())
        }
    })
}

/// The rows of an export, whose first line has its version.
fn parse_export<R: BufRead>(source: &mut R) -> impl Iterator<Item = Result<ExportedRow, TransferError>> {
    source.lines().enumerate().filter_map(|(index, line)| parse_line(index, line).transpose())
}

/// The row in a line; none in the first.
fn parse_line(index: usize, line: io::Result<String>) -> Result<Option<ExportedRow>, TransferError> {
    let line = line?;
    let invalid = |reason: &str| TransferError::Line { line: index + 1, reason: reason.to_owned() };
    let parsed: Value = serde_json::from_str(&line).map_err(|error| invalid(&error.to_string()))?;
    if index == 0 {
        return match parsed.get("toolyard_export") == Some(&json!(EXPORT_VERSION)) {
            true => Ok(None),
            false => Err(invalid("not an export, or of an unsupported version")),
        };
    }
    let table = parsed.get("table").and_then(Value::as_str);
    if let Some((table, _)) = DROPPED_TABLES.iter().find(|(dropped, _)| Some(*dropped) == table) {
        return Err(invalid(&format!(
            "it is of the table `{table}`, and policies and settings are in files only; save the text to a file, name the \
             file in toolyard.toml, and remove the lines of this table from the export"
        )));
    }
    let row = parse_row(&parsed);
    row.map(Some).ok_or_else(|| invalid("unknown table, or values that do not fit its columns"))
}

/// Parses a row and checks its table and the number and types of its values.
fn parse_row(line: &Value) -> Option<ExportedRow> {
    let name = line.get("table")?.as_str()?;
    let table = TABLES.iter().find(|table| table.name == name)?;
    let mut values = line.get("row")?.as_array()?.clone();
    let last_column = table.columns().last();
    // Exports of earlier versions know no owners; what they have is the operator's.
    if last_column.is_some_and(|(name, _)| name == "owner") && values.len() + 1 == table.columns().count() {
        values.push(Value::from(""));
    }
    let fits = |(value, (_, column_type)): (&Value, (&str, ColumnType))| match column_type {
        ColumnType::Text => value.is_null() || value.is_string(),
        ColumnType::Integer => value.is_null() || value.is_i64(),
        ColumnType::Real => value.is_null() || value.is_number(),
        ColumnType::Blob => value.is_null() || value.as_str().is_some_and(|text| hex::decode(text).is_ok()),
    };
    let valid = values.len() == table.columns().count() && values.iter().zip(table.columns()).all(fits);
    valid.then_some((table, values))
}

async fn insert(connection: &mut AnyConnection, batch: &ImportBatch) -> Result<(), StoreError> {
    for (table, values) in &batch.rows {
        if batch.engine == Engine::Postgres && table.name == "audit" {
            let mut columns = table.columns().zip(values);
            let day = columns.find(|((name, _), _)| *name == "day").and_then(|(_, value)| value.as_i64());
            create_partition(connection, day.unwrap_or(0)).await?;
        }
        let names: Vec<&str> = table.columns().map(|(name, _)| name).collect();
        let values_sql = placeholders(batch.engine, 1, names.len());
        let sql = format!("INSERT INTO {} ({}) VALUES {values_sql}", table.name, names.join(", "));
        let mut query = sqlx::query(statement(sql));
        for (value, (_, column_type)) in values.iter().zip(table.columns()) {
            query = match column_type {
                ColumnType::Text => query.bind(value.as_str().map(str::to_owned)),
                ColumnType::Integer => query.bind(value.as_i64()),
                ColumnType::Real => query.bind(value.as_f64()),
                ColumnType::Blob => query.bind(value.as_str().and_then(|text| hex::decode(text).ok())),
            };
        }
        query.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Updates what is derived from the rows: the head of the audit chain and the sequence of approval ids.
async fn update_derived(connection: &mut AnyConnection, engine: Engine) -> Result<(), StoreError> {
    let last = "SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1";
    if let Some(row) = sqlx::query(last).fetch_optional(&mut *connection).await? {
        let query = sqlx::query("UPDATE audit_head SET number = $1, hash = $2");
        let query = query.bind(row.try_get::<i64, _>("number")?).bind(row.try_get::<String, _>("hash")?);
        query.execute(&mut *connection).await?;
    }
    if engine == Engine::Postgres {
        let sql = "SELECT setval(pg_get_serial_sequence('approvals', 'id'), COALESCE(MAX(id), 0) + 1, false) FROM approvals";
        sqlx::query(sql).execute(connection).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_must_fit_its_table() {
        assert!(parse_row(&json!({"table": "program_descriptions", "row": ["a", "b"]})).is_some());
        assert!(parse_row(&json!({"table": "program_descriptions", "row": ["a"]})).is_none());
        assert!(
            parse_row(&json!({"table": "program_descriptions; DROP TABLE runs", "row": ["a", "b"]}))
                .is_none()
        );
        assert!(parse_row(&json!({"table": "results", "row": ["a", "not a number", 3]})).is_none());
        let (_, of_earlier_version) = parse_row(&json!({"table": "results", "row": ["a", 1, 3]})).unwrap();
        assert_eq!(of_earlier_version, [json!("a"), json!(1), json!(3), json!("")]);
        assert!(parse_row(&json!({"table": "results", "row": ["a", 1]})).is_none());
        let chunk =
            |content: &str| parse_row(&json!({"table": "result_chunks", "row": ["a", 0, 0, content]}));
        assert!(chunk("00ff").is_some() && chunk("0").is_none() && chunk("zz").is_none());
    }
}
