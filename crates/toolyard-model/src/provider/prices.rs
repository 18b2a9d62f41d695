//! The cost of tokens.

use serde::{Deserialize, Serialize};

use crate::Usage;

/// Prices of a million tokens, in millionths of the operator's currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Input tokens.
    #[serde(default)]
    pub input: u64,
    /// Cached input tokens; the price of `input` if absent.
    #[serde(default)]
    pub cached: Option<u64>,
    /// Output tokens.
    #[serde(default)]
    pub output: u64,
}

impl Prices {
    /// The cost of this usage in millionths, rounded up.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let cached = usage.cached.min(usage.input);
        let items = [
            (usage.input - cached, self.input),
            (cached, self.cached.unwrap_or(self.input)),
            (usage.output, self.output),
        ];
        let sum: u128 = items.iter().map(|(tokens, price)| u128::from(*tokens) * u128::from(*price)).sum();
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}
