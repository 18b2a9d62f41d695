//! Keeps whole results in memory, dropping the oldest when there is no more room.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use toolyard_core::{BoxFuture, ResultPage, ResultRef, Results, ResultsError};

/// How many bytes of results are kept by default.
const ROOM: usize = 64 << 20;
/// Letters of a reference: no vowels that make words, nothing that looks like something else.
const LETTERS: &[u8] = b"23456789bcdfghjkmnpqrstvwxyz";

/// Results of this process.
#[derive(Debug)]
pub struct MemoryResults {
    room: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_reference: HashMap<ResultRef, Arc<str>>,
    oldest_first: VecDeque<ResultRef>,
    bytes: usize,
}

impl Default for MemoryResults {
    fn default() -> Self {
        Self::with_room(ROOM)
    }
}

impl MemoryResults {
    /// Keeps at most this many bytes.
    pub fn with_room(room: usize) -> Self {
        Self { room, kept: Mutex::default() }
    }

    fn keep_now(&self, whole: &str) -> Result<ResultRef, ResultsError> {
        if whole.len() > self.room {
            return Err(ResultsError::Failed(format!(
                "{} bytes are more than is kept in memory",
                whole.len()
            )));
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.bytes + whole.len() > self.room {
            let Some(oldest) = kept.oldest_first.pop_front() else { break };
            if let Some(dropped) = kept.by_reference.remove(&oldest) {
                kept.bytes -= dropped.len();
            }
        }
        let reference = new_reference();
        kept.bytes += whole.len();
        kept.oldest_first.push_back(reference.clone());
        kept.by_reference.insert(reference.clone(), whole.into());
        Ok(reference)
    }
}

/// A reference nobody can guess by counting: 12 of 28 letters.
pub fn new_reference() -> ResultRef {
    let letters = (0..12).filter_map(|_| fastrand::choice(LETTERS)).map(|letter| char::from(*letter));
    ResultRef::new(format!("r_{}", letters.collect::<String>()))
}

impl Results for MemoryResults {
    fn keep<'a>(&'a self, whole: &'a str) -> BoxFuture<'a, Result<ResultRef, ResultsError>> {
        Box::pin(async move { self.keep_now(whole) })
    }

    fn read<'a>(
        &'a self,
        reference: &'a ResultRef,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<ResultPage, ResultsError>> {
        Box::pin(async move {
            let whole = {
                let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.by_reference.get(reference).map(Arc::clone)
            };
            let whole = whole.ok_or_else(|| ResultsError::Unknown(reference.clone()))?;
            Ok(ResultPage::of(&whole, offset, limit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_makes_room() {
        let results = MemoryResults::with_room(10);
        let first = results.keep("12345").await.unwrap();
        let second = results.keep("67890").await.unwrap();
        let third = results.keep("abc").await.unwrap();
        assert_eq!(results.read(&first, 0, 9).await, Err(ResultsError::Unknown(first)));
        assert_eq!(results.read(&second, 1, 3).await.unwrap().text, "789");
        assert_eq!(results.read(&third, 0, 9).await.unwrap().next, None);
        assert!(results.keep("more than ten bytes").await.is_err());
    }
}
