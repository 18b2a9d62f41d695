//! One-time codes: the links that `toolyard serve` and `toolyard open` print.

use std::time::{Duration, Instant};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::Mutex;

/// How long a code is valid.
const CODE_LIFETIME: Duration = Duration::from_secs(600);
const MAX_PENDING_CODES: usize = 100;
const CODE_BYTES: usize = 16;

/// Why there is no one-time code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The operating system gave no random numbers for a sign-in code of the console.
    ///
    /// Remedy: restart the gateway; if it stays, check `/dev/urandom` and the sandbox of the process.
    #[error("failed to generate a sign-in code: {0}")]
    Random(#[from] getrandom::Error),
    /// Too many sign-in codes of the console were requested and not used.
    ///
    /// Remedy: use one of the links, or wait ten minutes until they expire.
    #[error("{MAX_PENDING_CODES} sign-in codes are unused; hint: use one of them, or wait ten minutes")]
    TooMany,
}

/// The codes that nobody has used yet. Only their hashes are kept.
#[derive(Debug, Default)]
pub(crate) struct SignInCodes(Mutex<Vec<(blake3::Hash, Instant)>>);

impl SignInCodes {
    pub(crate) fn create(&self) -> Result<String, CodeError> {
        self.create_at(Instant::now())
    }

    fn create_at(&self, now: Instant) -> Result<String, CodeError> {
        let mut bytes = [0; CODE_BYTES];
        getrandom::fill(&mut bytes)?;
        let code = URL_SAFE_NO_PAD.encode(bytes);
        let mut codes = self.0.lock();
        codes.retain(|(_, expires)| *expires > now);
        if codes.len() >= MAX_PENDING_CODES {
            return Err(CodeError::TooMany);
        }
        codes.push((blake3::hash(code.as_bytes()), now + CODE_LIFETIME));
        Ok(code)
    }

    /// Whether the code is valid. It is not valid a second time.
    pub(crate) fn consume(&self, code: &str) -> bool {
        self.consume_at(code, Instant::now())
    }

    fn consume_at(&self, code: &str, now: Instant) -> bool {
        let presented = blake3::hash(code.as_bytes());
        let mut codes = self.0.lock();
        codes.retain(|(_, expires)| *expires > now);
        let before = codes.len();
        // Hashes are compared in constant time, and all of them are.
        codes.retain(|(hash, _)| *hash != presented);
        codes.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_valid_once_and_for_ten_minutes() {
        let codes = SignInCodes::default();
        let now = Instant::now();
        let code = codes.create_at(now).unwrap();
        assert_eq!(code.len(), 22, "128 bits");
        assert!(!codes.consume_at("", now) && !codes.consume_at("AAAAAAAAAAAAAAAAAAAAAA", now));
        assert!(codes.consume_at(&code, now) && !codes.consume_at(&code, now));
        let late = codes.create_at(now).unwrap();
        assert!(!codes.consume_at(&late, now + CODE_LIFETIME));
    }

    #[test]
    fn unused_codes_are_limited_and_expire() {
        let codes = SignInCodes::default();
        let now = Instant::now();
        (0..MAX_PENDING_CODES).for_each(|_| drop(codes.create_at(now).unwrap()));
        assert!(matches!(codes.create_at(now), Err(CodeError::TooMany)));
        assert!(codes.create_at(now + CODE_LIFETIME).is_ok());
    }
}
