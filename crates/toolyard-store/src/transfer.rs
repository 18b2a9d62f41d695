//! The whole store as lines of JSON, to be kept or read into another engine.

use std::io::{BufRead, Write};

use futures_util::TryStreamExt as _;
use serde_json::{Value, json};
use sqlx::{AnyConnection, Row as _, any::AnyRow};

use crate::{
    audit::make_partition,
    engine::{Durability, Engine, statement},
    error::StoreError,
    store::Store,
    tables::{Holds, TABLES, Table},
};

/// The form of the lines; a reader refuses what it does not know.
const FORM: i64 = 1;
/// How many rows one commit takes.
const BATCH: usize = 500;

/// Why an export or import ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The file failed.
    #[error("failed to read or write the export: {0}")]
    File(#[from] std::io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A line is not what it should be.
    #[error("line {line} of the export cannot be understood: {reason}")]
    Line {
        /// Which line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// There is something in the store already.
    #[error("the store is not empty: table {0} has rows")]
    NotEmpty(&'static str),
}

impl Store {
    /// Writes everything, a line per row; how many rows.
    pub async fn export(&self, target: &mut (dyn Write + Send)) -> Result<u64, TransferError> {
        writeln!(target, "{}", json!({"toolyard_export": FORM}))?;
        let mut count = 0;
        for table in TABLES {
            let sql = statement(format!("SELECT * FROM {}", table.name));
            let mut rows = sqlx::query(sql).fetch(self.pool());
            while let Some(row) = rows.try_next().await.map_err(StoreError::from)? {
                let values = table.columns.iter().map(|(column, holds)| value(&row, column, *holds));
                let values: Vec<Value> = values.collect::<Result<_, _>>().map_err(StoreError::from)?;
                writeln!(target, "{}", json!({"table": table.name, "row": values}))?;
                count += 1;
            }
        }
        target.flush()?;
        Ok(count)
    }

    /// Reads an export into a store that is still empty; how many rows.
    pub async fn import(&self, source: &mut (dyn BufRead + Send)) -> Result<u64, TransferError> {
        for table in TABLES {
            let sql = statement(format!("SELECT 1 FROM {} LIMIT 1", table.name));
            let first = sqlx::query(sql).fetch_optional(self.pool()).await.map_err(StoreError::from)?;
            if first.is_some() {
                return Err(TransferError::NotEmpty(table.name));
            }
        }
        let mut batch = Batch { engine: self.engine(), rows: Vec::new() };
        let mut count = 0;
        for (at, line) in source.lines().enumerate() {
            let line = line?;
            let refused = |reason: &str| TransferError::Line { line: at + 1, reason: reason.to_owned() };
            let read: Value = serde_json::from_str(&line).map_err(|error| refused(&error.to_string()))?;
            if at == 0 {
                if read.get("toolyard_export") != Some(&json!(FORM)) {
                    return Err(refused("this is not an export of a form that is known here"));
                }
                continue;
            }
            batch.rows.push(row(&read).ok_or_else(|| refused("no such table, or not its columns"))?);
            count += 1;
            if batch.rows.len() >= BATCH {
                let full = std::mem::replace(&mut batch, Batch { engine: self.engine(), rows: Vec::new() });
                self.write(Durability::Synced, full, |connection, batch| Box::pin(insert(connection, batch)))
                    .await?;
            }
        }
        self.write(Durability::Synced, batch, |connection, batch| Box::pin(insert(connection, batch)))
            .await?;
        let engine = self.engine();
        self.write(Durability::Synced, engine, |connection, engine| Box::pin(put_right(connection, *engine)))
            .await?;
        Ok(count)
    }
}

struct Batch {
    engine: Engine,
    rows: Vec<(&'static Table, Vec<Value>)>,
}

fn value(row: &AnyRow, column: &str, holds: Holds) -> Result<Value, sqlx::Error> {
    Ok(match holds {
        Holds::Text => row.try_get::<Option<String>, _>(column)?.map_or(Value::Null, Value::from),
        Holds::Integer => row.try_get::<Option<i64>, _>(column)?.map_or(Value::Null, Value::from),
        Holds::Real => row.try_get::<Option<f64>, _>(column)?.map_or(Value::Null, Value::from),
        Holds::Bytes => {
            row.try_get::<Option<Vec<u8>>, _>(column)?.map_or(Value::Null, |bytes| hex(&bytes).into())
        }
    })
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().map_or('0', char::from);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
}

/// A row of a table that is known here, with as many values as it has columns, each of the right kind.
fn row(line: &Value) -> Option<(&'static Table, Vec<Value>)> {
    let name = line.get("table")?.as_str()?;
    let table = TABLES.iter().find(|table| table.name == name)?;
    let values = line.get("row")?.as_array()?.clone();
    let fits = |(value, (_, holds)): (&Value, &(&str, Holds))| match holds {
        Holds::Text => value.is_null() || value.is_string(),
        Holds::Integer => value.is_null() || value.is_i64(),
        Holds::Real => value.is_null() || value.is_number(),
        Holds::Bytes => value.is_null() || value.as_str().is_some_and(|text| unhex(text).is_some()),
    };
    let sound = values.len() == table.columns.len() && values.iter().zip(table.columns).all(fits);
    sound.then_some((table, values))
}

async fn insert(connection: &mut AnyConnection, batch: &Batch) -> Result<(), StoreError> {
    for (table, values) in &batch.rows {
        if batch.engine == Engine::Postgres && table.name == "audit" {
            let day = values.get(1).and_then(Value::as_i64).unwrap_or(0);
            make_partition(connection, day).await?;
        }
        let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        let places: Vec<String> = (1..=names.len()).map(|place| format!("${place}")).collect();
        let sql = format!("INSERT INTO {} ({}) VALUES ({})", table.name, names.join(", "), places.join(", "));
        let mut query = sqlx::query(statement(sql));
        for (value, (_, holds)) in values.iter().zip(table.columns) {
            query = match holds {
                Holds::Text => query.bind(value.as_str().map(str::to_owned)),
                Holds::Integer => query.bind(value.as_i64()),
                Holds::Real => query.bind(value.as_f64()),
                Holds::Bytes => query.bind(value.as_str().and_then(unhex)),
            };
        }
        query.execute(&mut *connection).await?;
    }
    Ok(())
}

/// What follows from the rows: the end of the audit chain, and where numbering goes on.
async fn put_right(connection: &mut AnyConnection, engine: Engine) -> Result<(), StoreError> {
    let last = "SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1";
    if let Some(row) = sqlx::query(last).fetch_optional(&mut *connection).await? {
        let query = sqlx::query("UPDATE audit_head SET number = $1, hash = $2");
        let query = query.bind(row.try_get::<i64, _>("number")?).bind(row.try_get::<String, _>("hash")?);
        query.execute(&mut *connection).await?;
    }
    if engine == Engine::Postgres {
        let sql = "SELECT setval(pg_get_serial_sequence('questions', 'id'), COALESCE(MAX(id), 0) + 1, false) FROM questions";
        sqlx::query(sql).execute(connection).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_their_written_form() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        assert_eq!(unhex("0"), None);
        assert_eq!(unhex("zz"), None);
    }

    #[test]
    fn a_row_must_fit_its_table() {
        assert!(row(&json!({"table": "descriptions", "row": ["a", "b"]})).is_some());
        assert!(row(&json!({"table": "descriptions", "row": ["a"]})).is_none());
        assert!(row(&json!({"table": "descriptions; DROP TABLE runs", "row": ["a", "b"]})).is_none());
        assert!(row(&json!({"table": "results", "row": ["a", "not a number", 3]})).is_none());
    }
}
