//! Durable truth in SQL: journal, registry, history, results, audit, on SQLite or PostgreSQL.
//!
//! This room is still empty. Its plan: it implements the traits `History`, `Results` and `Conversations` of
//! `toolyard-core`, which stand in memory today.
