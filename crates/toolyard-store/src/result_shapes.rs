//! The shapes of tool results, learned from earlier results: names and types rather than content.

use sqlx::{Row as _, any::AnyRow};
use toolyard_core::{BoxFuture, DataOwner, ResultShape, ResultShapes, unix_millis};

use crate::{
    error::StoreError,
    sql::{Durability, read_id, read_owner},
    store::Store,
};

impl ResultShapes for Store {
    fn recent(&self, owner: DataOwner, limit: usize) -> BoxFuture<'_, Vec<ResultShape>> {
        Box::pin(async move {
            let sql = "SELECT source, tool, shape, owner FROM result_shapes WHERE owner = $1
                       ORDER BY learned_at DESC, tool LIMIT $2";
            let query = sqlx::query(sql).bind(owner.as_text().into_owned());
            let query = query.bind(i64::try_from(limit).unwrap_or(i64::MAX));
            self.select(query, result_shape).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to read result shapes");
                Vec::new()
            })
        })
    }

    fn record<'a>(&'a self, shape: &'a ResultShape) -> BoxFuture<'a, ()> {
        let written = self.write(Durability::Relaxed, shape.clone(), |connection, shape| {
            Box::pin(async move {
                let sql =
                    "INSERT INTO result_shapes (source, tool, shape, learned_at, owner) VALUES ($1, $2, $3, $4, $5)
                           ON CONFLICT (owner, source, tool) DO UPDATE
                           SET shape = excluded.shape, learned_at = excluded.learned_at";
                let query = sqlx::query(sql).bind(shape.source.as_str()).bind(shape.tool.as_str());
                let query = query.bind(shape.shape.as_str()).bind(unix_millis());
                query.bind(shape.owner.as_text().into_owned()).execute(connection).await?;
                Ok(())
            })
        });
        Box::pin(async move {
            if let Err(error) = written.await {
                let error: StoreError = error;
                tracing::warn!(%error, "failed to write a result shape");
            }
        })
    }
}

fn result_shape(row: &AnyRow) -> Result<ResultShape, StoreError> {
    Ok(ResultShape {
        owner: read_owner(row)?,
        source: read_id(row, "source")?,
        tool: row.try_get("tool")?,
        shape: row.try_get("shape")?,
    })
}
