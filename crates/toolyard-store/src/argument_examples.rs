//! Arguments of successful calls, each for its owner only.

use sqlx::{AnyConnection, Row as _, any::AnyRow};
use toolyard_core::{ArgumentExample, ArgumentExamples, BoxFuture, unix_millis};

use crate::{
    error::StoreError,
    sql::{Durability, json_from_text, read_hash, read_id},
    store::Store,
};

/// Examples of all owners; the oldest ones beyond are deleted.
const MAX_EXAMPLES: i64 = 10_000;

impl ArgumentExamples for Store {
    fn of_owner<'a>(&'a self, owner: &'a str, limit: usize) -> BoxFuture<'a, Vec<ArgumentExample>> {
        Box::pin(async move {
            let sql =
                "SELECT owner, source, tool, definition, arguments FROM argument_examples WHERE owner = $1
                       ORDER BY learned_at DESC, source, tool LIMIT $2";
            let query = sqlx::query(sql).bind(owner).bind(i64::try_from(limit).unwrap_or(i64::MAX));
            self.select(query, argument_example).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to read argument examples");
                Vec::new()
            })
        })
    }

    fn record_example<'a>(&'a self, example: &'a ArgumentExample) -> BoxFuture<'a, ()> {
        let written = self.write(Durability::Relaxed, example.clone(), |connection, example| {
            Box::pin(write_example(connection, example))
        });
        Box::pin(async move {
            if let Err(error) = written.await {
                tracing::warn!(%error, "failed to write an argument example");
            }
        })
    }
}

async fn write_example(connection: &mut AnyConnection, example: &ArgumentExample) -> Result<(), StoreError> {
    let sql = "INSERT INTO argument_examples (owner, source, tool, definition, arguments, learned_at)
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (owner, source, tool) DO UPDATE
               SET definition = excluded.definition, arguments = excluded.arguments, learned_at = excluded.learned_at";
    let query = sqlx::query(sql)
        .bind(example.owner.as_str())
        .bind(example.source.as_str())
        .bind(example.tool.as_str());
    let query = query.bind(example.definition.to_string()).bind(example.arguments.get()).bind(unix_millis());
    query.execute(&mut *connection).await?;
    let trim = "DELETE FROM argument_examples WHERE learned_at <
                (SELECT learned_at FROM argument_examples ORDER BY learned_at DESC LIMIT 1 OFFSET $1)";
    sqlx::query(trim).bind(MAX_EXAMPLES).execute(connection).await?;
    Ok(())
}

fn argument_example(row: &AnyRow) -> Result<ArgumentExample, StoreError> {
    Ok(ArgumentExample::from_stored(
        row.try_get::<String, _>("owner")?,
        row.try_get::<String, _>("tool")?,
        read_id(row, "source")?,
        read_hash(row, "definition")?,
        json_from_text(row.try_get("arguments")?)?,
    ))
}
