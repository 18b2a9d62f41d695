//! Remembers what programs said about themselves for as long as the process lives.

use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

use toolyard_core::{BoxFuture, ContentHash, Descriptions, RawJson};

/// Descriptions in memory, for those who have no store: every process asks each program once.
#[derive(Debug, Default)]
pub struct MemoryDescriptions {
    kept: RwLock<HashMap<ContentHash, RawJson>>,
}

impl Descriptions for MemoryDescriptions {
    fn description<'a>(&'a self, program: &'a ContentHash) -> BoxFuture<'a, Option<RawJson>> {
        Box::pin(
            async move { self.kept.read().unwrap_or_else(PoisonError::into_inner).get(program).cloned() },
        )
    }

    fn keep_description<'a>(&'a self, program: &'a ContentHash, tools: &'a RawJson) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.kept.write().unwrap_or_else(PoisonError::into_inner).insert(*program, tools.clone());
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn each_content_has_its_own_description_and_the_last_one_counts() {
        let memory = MemoryDescriptions::default();
        let (first, second) = (ContentHash::of("first"), ContentHash::of("second"));
        assert_eq!(memory.description(&first).await, None);
        for number in [1, 2] {
            memory.keep_description(&first, &json!([number]).into()).await;
        }
        assert_eq!(memory.description(&first).await, Some(json!([2]).into()));
        assert_eq!(memory.description(&second).await, None);
    }
}
