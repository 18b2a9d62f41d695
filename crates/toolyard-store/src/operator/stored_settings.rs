//! Versions of the settings in the store. A version is never changed; the one with the highest number is in effect.

use sqlx::{Row as _, any::AnyRow};
use toolyard_core::{
    AuditRecord, AuditedDecision, BoxFuture, ContentHash, SettingsVersion, StorageError, StoredSettings,
    unix_millis,
};

use crate::{audit::append::append_record, error::StoreError, sql::Durability, store::Store};

const LATEST: &str = "SELECT COALESCE(MAX(number), 0) AS number FROM settings_versions";
/// Inserts nothing if another process is adding a version.
const ADD: &str = "INSERT INTO settings_versions (number, text, change, changed_by, changed_at) \
                   VALUES ($1, $2, $3, $4, $5) ON CONFLICT (number) DO NOTHING";

struct NewVersion {
    number: i64,
    text: String,
    change: String,
    by: String,
}

impl StoredSettings for Store {
    fn latest_settings(&self) -> BoxFuture<'_, Result<Option<SettingsVersion>, StorageError>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM settings_versions ORDER BY number DESC LIMIT 1");
            Ok(self.select(query, version).await?.pop())
        })
    }

    fn latest_settings_number(&self) -> BoxFuture<'_, Result<i64, StorageError>> {
        Box::pin(async move {
            let numbers = self.select(sqlx::query(LATEST), |row| Ok(row.try_get("number")?));
            Ok(numbers.await?.pop().unwrap_or_default())
        })
    }

    fn settings_versions(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SettingsVersion>, StorageError>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM settings_versions ORDER BY number DESC LIMIT $1")
                .bind(i64::try_from(limit).unwrap_or(i64::MAX));
            Ok(self.select(query, version).await?)
        })
    }

    fn settings_version(&self, number: i64) -> BoxFuture<'_, Result<Option<SettingsVersion>, StorageError>> {
        Box::pin(async move {
            let query = sqlx::query("SELECT * FROM settings_versions WHERE number = $1").bind(number);
            Ok(self.select(query, version).await?.pop())
        })
    }

    fn add_settings_version<'a>(
        &'a self,
        after: i64,
        text: &'a str,
        change: &'a str,
        by: &'a str,
    ) -> BoxFuture<'a, Result<Option<i64>, StorageError>> {
        let new = NewVersion {
            number: after.saturating_add(1),
            text: text.to_owned(),
            change: change.to_owned(),
            by: by.to_owned(),
        };
        Box::pin(async move {
            let data = (new, self.engine());
            let added = self.write(Durability::Synced, data, |connection, (new, engine)| {
                Box::pin(async move {
                    let now = unix_millis();
                    let latest: i64 =
                        sqlx::query(LATEST).fetch_one(&mut *connection).await?.try_get("number")?;
                    if latest.saturating_add(1) != new.number {
                        return Ok(None);
                    }
                    let query = sqlx::query(ADD)
                        .bind(new.number)
                        .bind(new.text.as_str())
                        .bind(new.change.as_str())
                        .bind(new.by.as_str())
                        .bind(now);
                    if query.execute(&mut *connection).await?.rows_affected() != 1 {
                        return Ok(None);
                    }
                    let subject = format!("settings in the store, version {}: {}", new.number, new.change);
                    let (decision, content) =
                        (AuditedDecision::ChangeSettings, ContentHash::of(new.text.as_str()));
                    let record = AuditRecord::decision(now, decision, &new.by, &subject, content);
                    append_record(connection, *engine, record).await?;
                    Ok::<_, StoreError>(Some(new.number))
                })
            });
            Ok(added.await?)
        })
    }
}

fn version(row: &AnyRow) -> Result<SettingsVersion, StoreError> {
    Ok(SettingsVersion {
        number: row.try_get("number")?,
        text: row.try_get("text")?,
        change: row.try_get("change")?,
        changed_by: row.try_get("changed_by")?,
        changed_at: row.try_get("changed_at")?,
    })
}
