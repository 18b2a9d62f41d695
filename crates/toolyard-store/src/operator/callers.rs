//! Callers with API keys. Each change is in the audit log.

use sqlx::{
    Any, Row as _,
    any::{AnyArguments, AnyRow},
    query::Query,
};
use toolyard_core::{
    AuditRecord, AuditedDecision, BoxFuture, CallerStore, ContentHash, StorageError, StoredCaller, StoredKey,
    unix_millis,
};

use crate::{
    audit::append::append_record,
    error::StoreError,
    sql::{Durability, read_hash},
    store::Store,
};

/// A change of one caller.
enum CallerChange {
    Add(StoredCaller),
    ReplaceKey(StoredKey),
    Revoke,
}

impl CallerChange {
    /// What the audit log says about it.
    fn subject(&self, name: &str) -> String {
        match self {
            Self::Add(caller) => format!("add caller {name} with API key {}", caller.key.id),
            Self::ReplaceKey(key) => format!("replace API key of caller {name} by {}", key.id),
            Self::Revoke => format!("revoke caller {name}"),
        }
    }

    /// What was decided on: the key and what it may be used for.
    fn content(&self) -> ContentHash {
        match self {
            Self::Add(caller) => ContentHash::of(format!(
                "{} {:?} {:?} {:?}",
                caller.key.id, caller.allowed_profiles, caller.allowed_agents, caller.key.expires_at
            )),
            Self::ReplaceKey(key) => ContentHash::of(format!("{} {:?}", key.id, key.expires_at)),
            Self::Revoke => ContentHash::of(""),
        }
    }
}

impl CallerStore for Store {
    fn callers(&self) -> BoxFuture<'_, Result<Vec<StoredCaller>, StorageError>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM callers ORDER BY name");
            Ok(self.select(query, read_caller).await?)
        })
    }

    fn add_caller<'a>(
        &'a self,
        caller: &'a StoredCaller,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        self.change_caller(&caller.name, CallerChange::Add(caller.clone()), by)
    }

    fn replace_caller_key<'a>(
        &'a self,
        name: &'a str,
        key: &'a StoredKey,
        by: &'a str,
    ) -> BoxFuture<'a, Result<bool, StorageError>> {
        self.change_caller(name, CallerChange::ReplaceKey(key.clone()), by)
    }

    fn revoke_caller<'a>(&'a self, name: &'a str, by: &'a str) -> BoxFuture<'a, Result<bool, StorageError>> {
        self.change_caller(name, CallerChange::Revoke, by)
    }
}

impl Store {
    fn change_caller(
        &self,
        name: &str,
        change: CallerChange,
        by: &str,
    ) -> BoxFuture<'_, Result<bool, StorageError>> {
        let data = (change, name.to_owned(), by.to_owned(), self.engine());
        Box::pin(async move {
            let changed = self.write(Durability::Synced, data, |connection, (change, name, by, engine)| {
                Box::pin(async move {
                    let now = unix_millis();
                    if change_query(change, name, now)?.execute(&mut *connection).await?.rows_affected() != 1
                    {
                        return Ok(false);
                    }
                    let (decision, subject) = (AuditedDecision::ChangeCaller, change.subject(name));
                    let record = AuditRecord::decision(now, decision, by, &subject, change.content());
                    append_record(connection, *engine, record).await?;
                    Ok::<_, StoreError>(true)
                })
            });
            Ok(changed.await?)
        })
    }
}

fn change_query(
    change: &CallerChange,
    name: &str,
    now: i64,
) -> Result<Query<'static, Any, AnyArguments>, StoreError> {
    let hash = |key: &StoredKey| ContentHash::from(key.secret_hash).to_string();
    let name = name.to_owned();
    Ok(match change {
        CallerChange::Add(caller) => sqlx::query(
            "INSERT INTO callers (name, key_id, secret_hash, allowed_profiles, allowed_agents, created_at, expires_at, \
             revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
        )
        .bind(name)
        .bind(caller.key.id.clone())
        .bind(hash(&caller.key))
        .bind(list_to_text(caller.allowed_profiles.as_deref())?)
        .bind(list_to_text(caller.allowed_agents.as_deref())?)
        .bind(caller.created_at)
        .bind(caller.key.expires_at)
        .bind(caller.revoked_at),
        CallerChange::ReplaceKey(key) => sqlx::query(
            "UPDATE callers SET key_id = $2, secret_hash = $3, expires_at = $4 WHERE name = $1 AND revoked_at IS NULL",
        )
        .bind(name)
        .bind(key.id.clone())
        .bind(hash(key))
        .bind(key.expires_at),
        CallerChange::Revoke => {
            sqlx::query("UPDATE callers SET revoked_at = $2 WHERE name = $1 AND revoked_at IS NULL")
                .bind(name)
                .bind(now)
        }
    })
}

fn read_caller(row: &AnyRow) -> Result<StoredCaller, StoreError> {
    let key = StoredKey {
        id: row.try_get("key_id")?,
        secret_hash: *read_hash(row, "secret_hash")?.as_bytes(),
        expires_at: row.try_get("expires_at")?,
    };
    Ok(StoredCaller {
        name: row.try_get("name")?,
        key,
        allowed_profiles: list_from_text(row.try_get("allowed_profiles")?)?,
        allowed_agents: list_from_text(row.try_get("allowed_agents")?)?,
        created_at: row.try_get("created_at")?,
        revoked_at: row.try_get("revoked_at")?,
    })
}

fn list_to_text(list: Option<&[String]>) -> Result<Option<String>, StoreError> {
    list.map(|list| serde_json::to_string(list).map_err(StoreError::corrupt)).transpose()
}

fn list_from_text(text: Option<String>) -> Result<Option<Vec<String>>, StoreError> {
    text.map(|text| serde_json::from_str(&text).map_err(StoreError::corrupt)).transpose()
}
