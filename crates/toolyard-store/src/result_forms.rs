//! What results of tools look like, beyond the life of a process.

use sqlx::Row as _;
use toolyard_core::{BoxFuture, ResultForm, ResultForms, SourceId};

use crate::{
    engine::Durability,
    error::StoreError,
    store::{Store, now},
};

impl ResultForms for Store {
    fn recent(&self, limit: usize) -> BoxFuture<'_, Vec<ResultForm>> {
        Box::pin(async move {
            read(self, limit).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "what results look like could not be read");
                Vec::new()
            })
        })
    }

    fn learn<'a>(&'a self, form: &'a ResultForm) -> BoxFuture<'a, ()> {
        let written = self.write(Durability::Relaxed, form.clone(), |connection, form| {
            Box::pin(async move {
                let sql = "INSERT INTO result_forms (source, tool, form, learned_at) VALUES ($1, $2, $3, $4)
                           ON CONFLICT (source, tool) DO UPDATE
                           SET form = excluded.form, learned_at = excluded.learned_at";
                let query = sqlx::query(sql).bind(form.source.as_str()).bind(form.tool.as_str());
                query.bind(form.form.as_str()).bind(now()).execute(connection).await?;
                Ok(())
            })
        });
        Box::pin(async move {
            if let Err(error) = written.await {
                let error: StoreError = error;
                tracing::warn!(%error, "what a result looks like could not be remembered");
            }
        })
    }
}

async fn read(store: &Store, limit: usize) -> Result<Vec<ResultForm>, StoreError> {
    let sql = "SELECT source, tool, form FROM result_forms ORDER BY learned_at DESC, tool LIMIT $1";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = sqlx::query(sql).bind(limit).fetch_all(store.pool()).await?;
    rows.iter()
        .map(|row| {
            Ok(ResultForm {
                source: SourceId::from(row.try_get::<String, _>("source")?),
                tool: row.try_get("tool")?,
                form: row.try_get("form")?,
            })
        })
        .collect()
}
