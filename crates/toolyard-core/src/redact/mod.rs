//! Removes secrets from text and JSON before either is stored or logged.
//!
//! The rules are data (`rules.json`): formats of secrets that a pattern recognizes, words of keys whose values are secret, and
//! words that are never secret. Text is scanned once for the literals of all formats; a pattern runs only where its literal
//! was found. Each module uses those before it: [`rules`], [`marker`], [`sensitivity`], [`formats`] and [`assignment`],
//! [`text`], [`json`]. [`secret_values`] redacts secrets whose values are known.

mod assignment;
mod formats;
mod json;
mod marker;
mod rules;
mod secret_values;
mod sensitivity;
mod text;

pub use json::redact_json;
pub use secret_values::SecretValues;
pub use text::redact;

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
