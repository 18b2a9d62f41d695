//! In-memory [`Results`] store with a size limit; drops the oldest first.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use toolyard_core::{BoxFuture, DataOwner, ResultPage, ResultRef, Results, ResultsError, ResultsUsage};

/// Default size limit.
const MAX_STORED_BYTES: usize = 64 << 20;
const REFERENCE_CHARS: usize = 12;
/// Characters of a reference: no vowels, no look-alikes.
const REFERENCE_ALPHABET: &[u8] = b"23456789bcdfghjkmnpqrstvwxyz";

/// Stored results of this process.
#[derive(Debug)]
pub struct MemoryResults {
    max_bytes: usize,
    stored: Mutex<StoredTexts>,
}

#[derive(Debug, Default)]
struct StoredTexts {
    by_reference: HashMap<ResultRef, StoredText>,
    oldest_first: VecDeque<ResultRef>,
    bytes: usize,
    evicted: u64,
}

#[derive(Debug, Clone)]
struct StoredText {
    owner: DataOwner,
    text: Arc<str>,
}

impl Default for MemoryResults {
    fn default() -> Self {
        Self::with_max_bytes(MAX_STORED_BYTES)
    }
}

impl MemoryResults {
    fn with_max_bytes(max_bytes: usize) -> Self {
        Self { max_bytes, stored: Mutex::default() }
    }

    fn store_now(&self, whole: &str, owner: DataOwner) -> Result<ResultRef, ResultsError> {
        if whole.len() > self.max_bytes {
            return Err(ResultsError::Storage(format!(
                "a result of {} bytes exceeds the in-memory limit",
                whole.len()
            )));
        }
        let mut stored = self.stored.lock();
        while stored.bytes + whole.len() > self.max_bytes {
            let Some(oldest) = stored.oldest_first.pop_front() else { break };
            if let Some(dropped) = stored.by_reference.remove(&oldest) {
                stored.bytes -= dropped.text.len();
                stored.evicted += 1;
            }
        }
        let reference = new_result_ref();
        stored.bytes += whole.len();
        stored.oldest_first.push_back(reference.clone());
        stored.by_reference.insert(reference.clone(), StoredText { owner, text: whole.into() });
        Ok(reference)
    }
}

fn new_result_ref() -> ResultRef {
    let letters = (0..REFERENCE_CHARS)
        .filter_map(|_| fastrand::choice(REFERENCE_ALPHABET))
        .map(|letter| char::from(*letter));
    ResultRef::new(format!("r_{}", letters.collect::<String>()))
}

impl Results for MemoryResults {
    fn store<'a>(
        &'a self,
        whole: &'a str,
        owner: DataOwner,
    ) -> BoxFuture<'a, Result<ResultRef, ResultsError>> {
        Box::pin(async move { self.store_now(whole, owner) })
    }

    fn read<'a>(
        &'a self,
        reference: &'a ResultRef,
        reader: DataOwner,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<ResultPage, ResultsError>> {
        Box::pin(async move {
            let whole = {
                let stored = self.stored.lock();
                stored.by_reference.get(reference).filter(|stored| reader.may_read(&stored.owner)).cloned()
            };
            let whole = whole.ok_or_else(|| ResultsError::NotFound(reference.clone()))?;
            Ok(ResultPage::of(&whole.text, offset, limit))
        })
    }

    fn usage(&self) -> BoxFuture<'_, Option<ResultsUsage>> {
        Box::pin(async move {
            let stored = self.stored.lock();
            Some(ResultsUsage {
                stored: stored.by_reference.len() as u64,
                stored_bytes: stored.bytes as u64,
                evicted: Some(stored.evicted),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use toolyard_core::CallerIdentity;

    use super::*;

    const OPERATOR: DataOwner = DataOwner::Operator;

    #[tokio::test]
    async fn the_oldest_result_is_evicted() {
        let results = MemoryResults::with_max_bytes(10);
        let first = results.store("12345", OPERATOR).await.unwrap();
        let second = results.store("67890", OPERATOR).await.unwrap();
        let third = results.store("abc", OPERATOR).await.unwrap();
        assert_eq!(results.read(&first, OPERATOR, 0, 9).await, Err(ResultsError::NotFound(first)));
        assert_eq!(results.read(&second, OPERATOR, 1, 3).await.unwrap().text, "789");
        assert_eq!(results.read(&third, OPERATOR, 0, 9).await.unwrap().next, None);
        assert!(results.store("more than ten bytes", OPERATOR).await.is_err());
        let usage = ResultsUsage { stored: 2, stored_bytes: 8, evicted: Some(1) };
        assert_eq!(results.usage().await, Some(usage));
    }

    #[tokio::test]
    async fn a_result_is_read_by_its_owner_and_the_operator_only() {
        let [ada, eve] = ["ada", "eve"]
            .map(|name| DataOwner::of(Some(&CallerIdentity::principal("https://issuer", name))));
        let results = MemoryResults::default();
        let reference = results.store("private", ada).await.unwrap();
        for reader in [ada, OPERATOR] {
            assert_eq!(results.read(&reference, reader, 0, 9).await.unwrap().text, "private");
        }
        assert_eq!(results.read(&reference, eve, 0, 9).await, Err(ResultsError::NotFound(reference)));
        let unowned = results.store("of the operator", OPERATOR).await.unwrap();
        assert!(results.read(&unowned, ada, 0, 9).await.is_err());
    }
}
