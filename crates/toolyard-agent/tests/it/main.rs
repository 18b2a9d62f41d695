//! Whole runs of agents: answers that are checked, killed processes, large values, prompts, suspended runs.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic in a test helper fails the test, as intended"
)]

mod answers;
mod crash;
mod large_values;
mod prompt_tokens;
mod suspended;
