//! Decides for each request which revision family it belongs to.

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;
use toolyard_core::RevisionFamily;
use toolyard_mcp::{
    error_code,
    versions::{LEGACY_REVISIONS, MODERN_REVISION},
};

use crate::{
    config::ServedRevisions,
    dispatch::{outcome::Outcome, params::Params, unknown_method::unknown_method},
    session::{client_capabilities::ClientCapabilities, peer::Peer},
};

/// Characters of a client's value that an error message repeats.
const MAX_ECHOED_CHARS: usize = 100;
/// The only revision with batches.
pub(crate) const BATCH_REVISION: &str = "2025-03-26";

/// What a request declares about its revision.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DeclaredRevision<'a> {
    pub(crate) method: &'a str,
    /// The header `MCP-Protocol-Version`, over HTTP.
    pub(crate) header: Option<&'a str>,
    /// The revision in `_meta`.
    pub(crate) meta: Option<&'a str>,
    pub(crate) over_http: bool,
}

/// The revision family of a request, or the error that rejects it.
pub(crate) fn revision_family(
    served: ServedRevisions,
    declared: DeclaredRevision<'_>,
) -> Result<RevisionFamily, Outcome> {
    let is_legacy = |version: &str| LEGACY_REVISIONS.contains(&version);
    let family = match (declared.meta, declared.header) {
        (Some(meta), header) if !is_legacy(meta) => {
            if served == ServedRevisions::Legacy {
                return Err(modern_unsupported(meta, declared));
            }
            if declared.over_http && header != Some(meta) {
                return Err(header_mismatch("MCP-Protocol-Version", header, meta));
            }
            if meta != MODERN_REVISION {
                return Err(unsupported(served, meta));
            }
            RevisionFamily::Modern
        }
        (Some(meta), Some(MODERN_REVISION)) => {
            return Err(header_mismatch("MCP-Protocol-Version", Some(MODERN_REVISION), meta));
        }
        (None, Some(MODERN_REVISION)) => RevisionFamily::Modern,
        (_, Some(header)) if !is_legacy(header) => return Err(unsupported_header(served, header)),
        _ if matches!(declared.method, "server/discover" | "subscriptions/listen") => RevisionFamily::Modern,
        _ => RevisionFamily::Legacy,
    };
    match (family, served) {
        (RevisionFamily::Modern, ServedRevisions::Legacy) => {
            Err(modern_unsupported(declared.header.unwrap_or(MODERN_REVISION), declared))
        }
        (RevisionFamily::Legacy, ServedRevisions::Modern) => {
            Err(unsupported(served, declared.header.or(declared.meta).unwrap_or("older than 2026-07-28")))
        }
        _ => Ok(family),
    }
}

/// The client of a modern request, which declares everything itself.
pub(crate) fn modern_peer(params: &mut Params, session_number: u64) -> Result<Arc<Peer>, Outcome> {
    let meta = params.meta.get_or_insert_default();
    let missing = |what| {
        let message = format!("params._meta is missing io.modelcontextprotocol/{what}");
        Outcome::error_with_status(StatusCode::BAD_REQUEST, error_code::INVALID_PARAMS, message)
    };
    if meta.revision.is_none() {
        return Err(missing("protocolVersion"));
    }
    let Some(capabilities) = meta.capabilities.take() else { return Err(missing("clientCapabilities")) };
    let (client, input) = (meta.client_name.take(), ClientCapabilities::read(&capabilities));
    let peer = Peer::new(MODERN_REVISION, client, input, session_number);
    Ok(Arc::new(Peer { raw_capabilities: Some(capabilities), ..peer }))
}

/// A legacy client that has not initialized: nothing is known about it, and no input is requested from it.
pub(crate) fn anonymous_peer(version: Option<&str>, session_number: u64) -> Arc<Peer> {
    // The header exists since 2025-06-18; older clients send none.
    let known = version.and_then(|version| LEGACY_REVISIONS.into_iter().find(|known| *known == version));
    let revision = known.unwrap_or("2025-03-26");
    Arc::new(Peer::new(revision, None, ClientCapabilities::default(), session_number))
}

pub(crate) fn header_mismatch(header: &str, declared: Option<&str>, expected: &str) -> Outcome {
    let truncate = |text: &str| -> String { text.chars().take(MAX_ECHOED_CHARS).collect() };
    let declared =
        declared.map_or("is missing".to_owned(), |declared| format!("is '{}'", truncate(declared)));
    let message = format!("header mismatch: {header} {declared}, the request has '{}'", truncate(expected));
    Outcome::error_with_status(StatusCode::BAD_REQUEST, error_code::HEADER_MISMATCH, message)
}

fn unsupported(served: ServedRevisions, requested: &str) -> Outcome {
    let supported = served.supported();
    let (requested, message) = unsupported_message(requested, &supported);
    Outcome::error_with_status(StatusCode::BAD_REQUEST, error_code::UNSUPPORTED_VERSION, message)
        .with_data(&json!({"supported": supported, "requested": requested}))
}

fn unsupported_message(requested: &str, supported: &[&str]) -> (String, String) {
    let requested: String = requested.chars().take(MAX_ECHOED_CHARS).collect();
    let supported = supported.join(", ");
    let message = format!("protocol version {requested} is not supported; supported: {supported}");
    (requested, message)
}

/// The error for an unknown revision in the header alone. Legacy servers had no code for it.
fn unsupported_header(served: ServedRevisions, header: &str) -> Outcome {
    if served == ServedRevisions::Legacy {
        legacy_unsupported_error(header)
    } else {
        unsupported(served, header)
    }
}

/// The error for a modern request to a legacy-only server. It must not look like the error of a modern server, or clients
/// would not fall back to `initialize`.
fn modern_unsupported(requested: &str, declared: DeclaredRevision<'_>) -> Outcome {
    if declared.over_http {
        legacy_unsupported_error(requested)
    } else {
        unknown_method(declared.method, RevisionFamily::Legacy)
    }
}

/// The error of legacy servers for an unsupported revision.
fn legacy_unsupported_error(requested: &str) -> Outcome {
    let (_, message) = unsupported_message(requested, &LEGACY_REVISIONS);
    Outcome::error_with_status(StatusCode::BAD_REQUEST, error_code::SERVER_ERROR, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http<'a>(method: &'a str, header: Option<&'a str>, meta: Option<&'a str>) -> DeclaredRevision<'a> {
        DeclaredRevision { method, header, meta, over_http: true }
    }

    fn error_code_of(result: Result<RevisionFamily, Outcome>) -> i64 {
        match result {
            Err(Outcome::Error { error, .. }) => error.code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_declares_its_revision_family() {
        let family = |declared| revision_family(ServedRevisions::Both, declared);
        assert_eq!(
            family(http("tools/list", Some(MODERN_REVISION), Some(MODERN_REVISION))).unwrap(),
            RevisionFamily::Modern
        );
        assert_eq!(family(http("tools/list", Some(MODERN_REVISION), None)).unwrap(), RevisionFamily::Modern);
        assert!(
            family(http("tools/list", Some(MODERN_REVISION), Some("2025-11-25"))).is_err(),
            "header and body contradict each other"
        );
        assert_eq!(family(http("server/discover", None, None)).unwrap(), RevisionFamily::Modern);
        assert_eq!(family(http("initialize", None, None)).unwrap(), RevisionFamily::Legacy);
        assert_eq!(family(http("tools/list", Some("2025-06-18"), None)).unwrap(), RevisionFamily::Legacy);
        assert_eq!(
            family(DeclaredRevision {
                method: "tools/list",
                meta: Some(MODERN_REVISION),
                ..DeclaredRevision::default()
            })
            .unwrap(),
            RevisionFamily::Modern
        );
    }

    #[test]
    fn mismatched_and_unknown_revisions_are_rejected() {
        let rejection = |declared| error_code_of(revision_family(ServedRevisions::Both, declared));
        assert_eq!(rejection(http("tools/list", None, Some(MODERN_REVISION))), error_code::HEADER_MISMATCH);
        assert_eq!(
            rejection(http("tools/list", Some("2025-11-25"), Some(MODERN_REVISION))),
            error_code::HEADER_MISMATCH
        );
        assert_eq!(rejection(http("tools/list", Some("v9"), Some("v9"))), error_code::UNSUPPORTED_VERSION);
        assert_eq!(rejection(http("tools/list", Some("v9"), None)), error_code::UNSUPPORTED_VERSION);
    }

    #[test]
    fn a_server_of_one_family_rejects_the_other() {
        let rejection = |declared| error_code_of(revision_family(ServedRevisions::Legacy, declared));
        assert_eq!(
            rejection(http("server/discover", Some(MODERN_REVISION), Some(MODERN_REVISION))),
            error_code::SERVER_ERROR
        );
        assert_eq!(
            rejection(DeclaredRevision {
                method: "server/discover",
                meta: Some(MODERN_REVISION),
                ..DeclaredRevision::default()
            }),
            error_code::METHOD_NOT_FOUND
        );
        assert_eq!(
            error_code_of(revision_family(ServedRevisions::Modern, http("initialize", None, None))),
            error_code::UNSUPPORTED_VERSION
        );
    }
}
