//! Policies that all gateways of the store share. Each change is in the audit log.

use sqlx::Row as _;
use toolyard_core::{
    AuditRecord, AuditedDecision, BoxFuture, ContentHash, PolicyStore, StorageError, StoredPolicy,
    unix_millis,
};

use crate::{audit::append::append_record, error::StoreError, sql::Durability, store::Store};

const SET: &str = "INSERT INTO policies (name, text, updated_at) VALUES ($1, $2, $3) \
                   ON CONFLICT (name) DO UPDATE SET text = excluded.text, updated_at = excluded.updated_at";
const DELETE: &str = "DELETE FROM policies WHERE name = $1";

/// A change of one policy document.
struct PolicyChange {
    name: String,
    /// The new text; none if the document is removed.
    text: Option<String>,
    by: String,
}

impl PolicyStore for Store {
    fn stored_policies(&self) -> BoxFuture<'_, Result<Vec<StoredPolicy>, StorageError>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM policies ORDER BY name");
            let policies = self.select(query, |row| {
                Ok(StoredPolicy {
                    name: row.try_get("name")?,
                    text: row.try_get("text")?,
                    updated_at: row.try_get("updated_at")?,
                })
            });
            Ok(policies.await?)
        })
    }

    fn set_policy<'a>(
        &'a self,
        name: &'a str,
        text: &'a str,
        by: &'a str,
    ) -> BoxFuture<'a, Result<(), StorageError>> {
        Box::pin(async move { self.change_policy(name, Some(text), by).await.map(drop) })
    }

    fn remove_policy<'a>(&'a self, name: &'a str, by: &'a str) -> BoxFuture<'a, Result<bool, StorageError>> {
        Box::pin(self.change_policy(name, None, by))
    }
}

impl Store {
    async fn change_policy(&self, name: &str, text: Option<&str>, by: &str) -> Result<bool, StorageError> {
        let change = PolicyChange { name: name.to_owned(), text: text.map(str::to_owned), by: by.to_owned() };
        let data = (change, self.engine());
        let changed = self.write(Durability::Synced, data, |connection, (change, engine)| {
            Box::pin(async move {
                let now = unix_millis();
                let query = match &change.text {
                    Some(text) => sqlx::query(SET).bind(change.name.as_str()).bind(text.as_str()).bind(now),
                    None => sqlx::query(DELETE).bind(change.name.as_str()),
                };
                if query.execute(&mut *connection).await?.rows_affected() != 1 {
                    return Ok(false);
                }
                let verb = if change.text.is_some() { "set" } else { "remove" };
                let subject = format!("{verb} policy {}", change.name);
                let content = ContentHash::of(change.text.as_deref().unwrap_or_default());
                let decision = AuditedDecision::ChangePolicy;
                let record = AuditRecord::decision(now, decision, &change.by, &subject, content);
                append_record(connection, *engine, record).await?;
                Ok::<_, StoreError>(true)
            })
        });
        Ok(changed.await?)
    }
}
