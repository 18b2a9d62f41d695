//! A step's call: `resolved_tool.rs` looks the tool up, `prepare.rs` resolves the arguments and checks permission,
//! `argument_view.rs` is what approvers see of the arguments, `call.rs` executes and verifies, `progress.rs` forwards what the tool reports meanwhile.

pub(super) mod argument_view;
pub(super) mod call;
pub(super) mod prepare;
mod progress;
pub(super) mod resolved_tool;

use toolyard_core::redact;

const MAX_PREVIEW_CHARS: usize = 500;

/// The beginning of a text, secrets redacted.
pub(super) fn preview(text: &str) -> String {
    // Redacts more than is shown, so that truncation does not hide that something is a secret.
    let beginning: String = text.chars().take(4 * MAX_PREVIEW_CHARS).collect();
    truncate(&redact(&beginning), MAX_PREVIEW_CHARS)
}

pub(super) fn truncate(text: &str, max_chars: usize) -> String {
    let mut characters = text.chars();
    let mut truncated: String = characters.by_ref().take(max_chars).collect();
    if characters.next().is_some() {
        truncated.push('…');
    }
    truncated
}
