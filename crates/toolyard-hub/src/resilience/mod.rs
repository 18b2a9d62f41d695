//! Keeps a failing source from harming others: circuit breaker, concurrency limit, retry policy, health per tool.

pub(crate) mod breaker;
pub(crate) mod concurrency_limit;
pub(crate) mod fair_queue;
pub(crate) mod health;
pub(crate) mod retry;
