//! Example requests per tool, in memory and in the store.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use sqlx::{Row as _, any::AnyRow};
use toolyard_core::{BoxFuture, ExampleRequests, SourceId, ToolExampleRequests, unix_millis};

use crate::{
    error::StoreError,
    sql::{Durability, read_hash, read_id},
    store::Store,
};

/// [`ExampleRequests`] of the store, read at once and kept in memory.
pub struct StoredExampleRequests {
    store: Store,
    /// By source and tool.
    tools: RwLock<HashMap<SourceId, HashMap<String, Arc<ToolExampleRequests>>>>,
    /// Set once the stored requests are loaded.
    loaded: tokio::sync::OnceCell<()>,
}

impl std::fmt::Debug for StoredExampleRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredExampleRequests").field("store", &self.store).finish_non_exhaustive()
    }
}

impl StoredExampleRequests {
    /// Loads the stored requests.
    pub async fn open(store: &Store) -> Result<Arc<Self>, StoreError> {
        let requests = Self::open_lazy(store);
        requests.loaded.get_or_try_init(|| requests.load()).await?;
        Ok(requests)
    }

    /// Like [`Self::open`], but loads the stored requests at the first [`ExampleRequests::ready`].
    pub fn open_lazy(store: &Store) -> Arc<Self> {
        let (store, tools, loaded) = (store.clone(), RwLock::default(), tokio::sync::OnceCell::new());
        Arc::new(Self { store, tools, loaded })
    }

    async fn load(&self) -> Result<(), StoreError> {
        let sql = "SELECT source, tool, definition, requests, model FROM example_requests";
        for example in self.store.select(sqlx::query(sql), example_requests).await? {
            self.remember(example);
        }
        Ok(())
    }

    /// Stores the example requests of a tool, replacing earlier ones.
    pub async fn record(&self, examples: ToolExampleRequests) -> Result<(), StoreError> {
        let requests = serde_json::to_string(&examples.requests).map_err(StoreError::corrupt)?;
        let row = (examples.clone(), requests);
        self.store
            .write(Durability::Synced, row, |connection, (examples, requests)| {
                Box::pin(async move {
                    let sql =
                        "INSERT INTO example_requests (source, tool, definition, requests, model, written_at)
                               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (source, tool) DO UPDATE
                               SET definition = excluded.definition, requests = excluded.requests,
                               model = excluded.model, written_at = excluded.written_at";
                    let query = sqlx::query(sql).bind(examples.source.as_str()).bind(examples.tool.as_str());
                    let query = query.bind(examples.definition.to_string()).bind(requests.as_str());
                    query.bind(examples.model.as_str()).bind(unix_millis()).execute(connection).await?;
                    Ok(())
                })
            })
            .await?;
        self.remember(examples);
        Ok(())
    }

    fn remember(&self, examples: ToolExampleRequests) {
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        let of_source = tools.entry(examples.source.clone()).or_default();
        of_source.insert(examples.tool.clone(), Arc::new(examples));
    }
}

impl ExampleRequests for StoredExampleRequests {
    fn of_tool(&self, source: &SourceId, tool: &str) -> Option<Arc<ToolExampleRequests>> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        tools.get(source)?.get(tool).map(Arc::clone)
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.loaded.get_or_try_init(|| self.load()).await {
                tracing::warn!(%error, "failed to read example requests");
            }
        })
    }
}

fn example_requests(row: &AnyRow) -> Result<ToolExampleRequests, StoreError> {
    Ok(ToolExampleRequests {
        source: read_id(row, "source")?,
        tool: row.try_get("tool")?,
        definition: read_hash(row, "definition")?,
        requests: serde_json::from_str(&row.try_get::<String, _>("requests")?)
            .map_err(StoreError::corrupt)?,
        model: row.try_get("model")?,
    })
}
