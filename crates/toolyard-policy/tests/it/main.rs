//! Decisions of policies: single ones, and many beside a second evaluator.

mod decisions;
mod oracle;
