//! In-memory [`Results`] store with a size limit; drops the oldest first.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use toolyard_core::{BoxFuture, ResultPage, ResultRef, Results, ResultsError, ResultsUsage};

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
    by_reference: HashMap<ResultRef, Arc<str>>,
    oldest_first: VecDeque<ResultRef>,
    bytes: usize,
    evicted: u64,
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

    fn store_now(&self, whole: &str) -> Result<ResultRef, ResultsError> {
        if whole.len() > self.max_bytes {
            return Err(ResultsError::Storage(format!(
                "a result of {} bytes exceeds the in-memory limit",
                whole.len()
            )));
        }
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        while stored.bytes + whole.len() > self.max_bytes {
            let Some(oldest) = stored.oldest_first.pop_front() else { break };
            if let Some(dropped) = stored.by_reference.remove(&oldest) {
                stored.bytes -= dropped.len();
                stored.evicted += 1;
            }
        }
        let reference = new_result_ref();
        stored.bytes += whole.len();
        stored.oldest_first.push_back(reference.clone());
        stored.by_reference.insert(reference.clone(), whole.into());
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
    fn store<'a>(&'a self, whole: &'a str) -> BoxFuture<'a, Result<ResultRef, ResultsError>> {
        Box::pin(async move { self.store_now(whole) })
    }

    fn read<'a>(
        &'a self,
        reference: &'a ResultRef,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<ResultPage, ResultsError>> {
        Box::pin(async move {
            let whole = {
                let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
                stored.by_reference.get(reference).map(Arc::clone)
            };
            let whole = whole.ok_or_else(|| ResultsError::NotFound(reference.clone()))?;
            Ok(ResultPage::of(&whole, offset, limit))
        })
    }

    fn usage(&self) -> BoxFuture<'_, Option<ResultsUsage>> {
        Box::pin(async move {
            let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
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
    use super::*;

    #[tokio::test]
    async fn the_oldest_result_is_evicted() {
        let results = MemoryResults::with_max_bytes(10);
        let first = results.store("12345").await.unwrap();
        let second = results.store("67890").await.unwrap();
        let third = results.store("abc").await.unwrap();
        assert_eq!(results.read(&first, 0, 9).await, Err(ResultsError::NotFound(first)));
        assert_eq!(results.read(&second, 1, 3).await.unwrap().text, "789");
        assert_eq!(results.read(&third, 0, 9).await.unwrap().next, None);
        assert!(results.store("more than ten bytes").await.is_err());
        let usage = ResultsUsage { stored: 2, stored_bytes: 8, evicted: Some(1) };
        assert_eq!(results.usage().await, Some(usage));
    }
}
