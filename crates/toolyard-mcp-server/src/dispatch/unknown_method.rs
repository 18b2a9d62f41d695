//! The error for unknown methods, with a suggestion for mistyped ones.

use http::StatusCode;
use toolyard_core::RevisionFamily;
use toolyard_mcp::error_code;

use crate::dispatch::outcome::Outcome;

/// Characters of the unknown method that the error repeats.
const MAX_SHOWN_METHOD_CHARS: usize = 64;

/// Methods that may be suggested.
const SUGGESTED_METHODS: [&str; 18] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/directory/read",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "skills/get",
    "skills/list",
    "subscriptions/listen",
    "tools/call",
    "tools/list",
];

pub(crate) fn unknown_method(method: &str, family: RevisionFamily) -> Outcome {
    let status = if family == RevisionFamily::Modern { StatusCode::NOT_FOUND } else { StatusCode::OK };
    let shown: String = method.chars().take(MAX_SHOWN_METHOD_CHARS).collect();
    // Suggests a method with at most one typo per four characters.
    let near = SUGGESTED_METHODS
        .into_iter()
        .filter(|known| *known != method)
        .map(|known| (strsim::damerau_levenshtein(known, &shown), known))
        .min()
        .filter(|(distance, known)| *distance <= known.len() / 4);
    let hint = near.map(|(_, known)| format!("; did you mean `{known}`?")).unwrap_or_default();
    Outcome::error_with_status(
        status,
        error_code::METHOD_NOT_FOUND,
        format!("method `{shown}` does not exist{hint}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(method: &str) -> String {
        match unknown_method(method, RevisionFamily::Modern) {
            Outcome::Error { error, .. } => error.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_mistyped_method_gets_a_suggestion() {
        assert_eq!(message("tools/lst"), "method `tools/lst` does not exist; did you mean `tools/list`?");
        assert_eq!(message("unknown/method"), "method `unknown/method` does not exist");
        assert!(message(&"x".repeat(10_000)).len() < 200);
    }
}
