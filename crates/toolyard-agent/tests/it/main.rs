//! Whole runs of agents: receipts, killed processes, large values, prompts, suspended runs.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test helper fails the test, as intended"
)]

mod crash;
mod large_values;
mod prompt_tokens;
mod receipts;
mod suspended;
