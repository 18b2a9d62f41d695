//! [`TokenCache`]: verified tokens, by their hash, until they expire. A call with a known token costs a hash instead of a signature.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use toolyard_core::CallerIdentity;

/// Verified tokens in memory; the oldest leaves first.
const MAX_TOKENS: usize = 4_096;

/// The SHA-256 hash of a token.
pub(super) type TokenHash = [u8; 32];

#[derive(Debug, Default)]
pub(super) struct TokenCache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    tokens: HashMap<TokenHash, VerifiedToken>,
    /// In the order in which they were added.
    order: VecDeque<TokenHash>,
}

#[derive(Debug, Clone)]
pub(super) struct VerifiedToken {
    pub(super) identity: Arc<CallerIdentity>,
    /// In seconds since 1970.
    pub(super) valid_until: i64,
    /// The keys that it was verified with. With other keys, it must be verified again.
    pub(super) key_generation: u64,
}

impl TokenCache {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock()
    }

    pub(super) fn find(
        &self,
        hash: &TokenHash,
        key_generation: u64,
        now: i64,
    ) -> Option<Arc<CallerIdentity>> {
        let entries = self.lock();
        let token = entries.tokens.get(hash)?;
        (token.key_generation == key_generation && now < token.valid_until)
            .then(|| Arc::clone(&token.identity))
    }

    pub(super) fn insert(&self, hash: TokenHash, token: VerifiedToken) {
        let mut entries = self.lock();
        if entries.tokens.insert(hash, token).is_none() {
            entries.order.push_back(hash);
        }
        while entries.order.len() > MAX_TOKENS {
            if let Some(oldest) = entries.order.pop_front() {
                entries.tokens.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(valid_until: i64) -> VerifiedToken {
        let identity = Arc::new(CallerIdentity::principal("https://id.example", "ada"));
        VerifiedToken { identity, valid_until, key_generation: 1 }
    }

    #[test]
    fn tokens_are_found_until_they_expire_or_keys_change() {
        let cache = TokenCache::default();
        cache.insert([1; 32], token(100));
        assert!(cache.find(&[1; 32], 1, 99).is_some());
        assert!(cache.find(&[1; 32], 1, 100).is_none() && cache.find(&[1; 32], 2, 99).is_none());
        assert!(cache.find(&[2; 32], 1, 99).is_none());
    }

    #[test]
    fn the_number_of_tokens_is_bounded() {
        let cache = TokenCache::default();
        let hash = |number: usize| {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&number.to_le_bytes());
            hash
        };
        for number in 0..3 * MAX_TOKENS {
            cache.insert(hash(number), token(100));
            cache.insert(hash(number), token(100));
        }
        let entries = cache.lock();
        assert_eq!((entries.tokens.len(), entries.order.len()), (MAX_TOKENS, MAX_TOKENS));
        assert!(entries.tokens.contains_key(&hash(3 * MAX_TOKENS - 1)));
    }
}
