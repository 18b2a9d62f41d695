//! Removes secrets from text and JSON before either is stored or logged.
//!
//! The rules are data (`rules.json`): formats of secrets that a pattern recognizes, words of keys whose values are secret, and
//! words that are never secret. Text is scanned once for the literals of all formats; a pattern runs only where its literal
//! was found. Each module uses those before it: [`rules`], [`marker`], [`sensitivity`], [`formats`] and [`assignment`],
//! [`text`], [`json`].

mod assignment;
mod formats;
mod json;
mod marker;
mod rules;
mod sensitivity;
mod text;

pub use json::redact_json;
pub use text::redact;

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
