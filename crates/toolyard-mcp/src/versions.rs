//! The protocol revisions that Toolyard speaks.
//!
//! The *legacy* revisions begin a session with `initialize`. The *modern* one is stateless and begins with
//! `server/discover`.

/// The modern revision.
pub const MODERN_REVISION: &str = "2026-07-28";
/// The legacy revisions, newest first.
pub const LEGACY_REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
