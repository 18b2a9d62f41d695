//! The key that authenticates session ids, shared by all replicas of a store.

use toolyard_core::ContentHash;

use crate::{
    error::StoreError,
    sql::{Durability, read_hash},
    store::Store,
};

impl Store {
    /// The session key of this store. The first process stores `candidate`, 256 random bits; all others get the same key.
    pub async fn session_key(&self, candidate: [u8; 32]) -> Result<[u8; 32], StoreError> {
        let candidate = ContentHash::from(candidate).to_string();
        self.write(Durability::Synced, candidate, |connection, candidate| {
            Box::pin(async move {
                let sql = "INSERT INTO session_key (one, key) VALUES (1, $1) ON CONFLICT (one) DO NOTHING";
                sqlx::query(sql).bind(candidate.as_str()).execute(&mut *connection).await?;
                let row = sqlx::query("SELECT key FROM session_key").fetch_one(connection).await?;
                Ok(*read_hash(&row, "key")?.as_bytes())
            })
        })
        .await
    }
}
