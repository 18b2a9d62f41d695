//! A description cache that lives as long as the process.

use std::collections::HashMap;

use parking_lot::RwLock;
use toolyard_core::{BoxFuture, ContentHash, RawJson, SkillDescriptionCache};

/// A [`SkillDescriptionCache`] in memory, for embedders without a store.
#[derive(Debug, Default)]
pub struct MemoryDescriptionCache {
    entries: RwLock<HashMap<ContentHash, RawJson>>,
}

impl SkillDescriptionCache for MemoryDescriptionCache {
    fn description<'a>(&'a self, program: &'a ContentHash) -> BoxFuture<'a, Option<RawJson>> {
        Box::pin(async move { self.entries.read().get(program).cloned() })
    }

    fn put_description<'a>(&'a self, program: &'a ContentHash, tools: &'a RawJson) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.entries.write().insert(*program, tools.clone());
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn each_content_has_its_own_description_and_the_last_one_wins() {
        let cache = MemoryDescriptionCache::default();
        let (first, second) = (ContentHash::of("first"), ContentHash::of("second"));
        assert_eq!(cache.description(&first).await, None);
        for number in [1, 2] {
            cache.put_description(&first, &json!([number]).into()).await;
        }
        assert_eq!(cache.description(&first).await, Some(json!([2]).into()));
        assert_eq!(cache.description(&second).await, None);
    }
}
