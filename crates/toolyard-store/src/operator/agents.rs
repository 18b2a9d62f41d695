//! Agents that are added and changed while processes run. Each change is in the audit log.

use sqlx::Row as _;
use toolyard_core::{
    AgentDefinitions, AuditRecord, AuditedDecision, BoxFuture, ContentHash, RawJson, StorageError,
    StoredAgent, unix_millis,
};

use crate::{
    audit::append::append_record,
    error::StoreError,
    sql::{Durability, json_from_text},
    store::Store,
};

const INSERT: &str =
    "INSERT INTO agents (name, config, updated_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
const UPDATE: &str = "UPDATE agents SET config = $2, updated_at = $3 WHERE name = $1";
const DELETE: &str = "DELETE FROM agents WHERE name = $1";

/// A change of one agent.
struct AgentChange {
    sql: &'static str,
    name: String,
    /// The new configuration; none if the agent is removed.
    config: Option<String>,
    by: String,
    /// What the audit log says about it.
    subject: String,
}

impl AgentDefinitions for Store {
    fn stored_agents(&self) -> BoxFuture<'_, Result<Vec<StoredAgent>, StorageError>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM agents ORDER BY name");
            let agents = self.select(query, |row| {
                Ok(StoredAgent {
                    name: row.try_get("name")?,
                    config: json_from_text(row.try_get("config")?)?,
                    updated_at: row.try_get("updated_at")?,
                })
            });
            Ok(agents.await?)
        })
    }

    fn add_agent<'a>(
        &'a self,
        name: &'a str,
        config: &'a RawJson,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        self.change_agent(INSERT, name, Some(config), by, "add")
    }

    fn replace_agent<'a>(
        &'a self,
        name: &'a str,
        config: &'a RawJson,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        self.change_agent(UPDATE, name, Some(config), by, "replace")
    }

    fn remove_agent<'a>(&'a self, name: &'a str, by: &'a str) -> BoxFuture<'a, Result<bool, StorageError>> {
        self.change_agent(DELETE, name, None, by, "remove")
    }
}

impl Store {
    fn change_agent(
        &self,
        sql: &'static str,
        name: &str,
        config: Option<&RawJson>,
        by: &str,
        verb: &str,
    ) -> BoxFuture<'_, Result<bool, StorageError>> {
        let change = AgentChange {
            sql,
            name: name.to_owned(),
            config: config.map(|config| config.get().to_owned()),
            by: by.to_owned(),
            subject: format!("{verb} agent {name}"),
        };
        let data = (change, self.engine());
        Box::pin(async move {
            let changed = self.write(Durability::Synced, data, |connection, (change, engine)| {
                Box::pin(async move {
                    let now = unix_millis();
                    let mut query = sqlx::query(change.sql).bind(change.name.as_str());
                    if let Some(config) = &change.config {
                        query = query.bind(config.as_str()).bind(now);
                    }
                    if query.execute(&mut *connection).await?.rows_affected() != 1 {
                        return Ok(false);
                    }
                    let content = ContentHash::of(change.config.as_deref().unwrap_or_default());
                    let decision = AuditedDecision::ChangeAgent;
                    let record = AuditRecord::decision(now, decision, &change.by, &change.subject, content);
                    append_record(connection, *engine, record).await?;
                    Ok::<_, StoreError>(true)
                })
            });
            Ok(changed.await?)
        })
    }
}
