//! In which era a request is made: decided anew for each, from what it says itself.

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;
use toolyard_core::Viewer;

use super::{
    ServedEras,
    answer::Outcome,
    params::Meta,
    speaker::{ClientOffers, Era, LEGACY, MODERN, Speaker},
};

/// What is known about the version of a request before anything else is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Said<'a> {
    pub(super) method: &'a str,
    /// What the header `MCP-Protocol-Version` says, where there are headers.
    pub(super) header: Option<&'a str>,
    /// What the request itself says under `_meta`.
    pub(super) meta: Option<&'a str>,
    /// Whether there are headers at all.
    pub(super) over_http: bool,
}

/// The era of a request, or why it is refused.
pub(super) fn era_of(served: ServedEras, said: Said<'_>) -> Result<Era, Outcome> {
    let is_legacy = |version: &str| LEGACY.contains(&version);
    let era = match (said.meta, said.header) {
        (Some(meta), header) if !is_legacy(meta) => {
            if served == ServedEras::Legacy {
                return Err(too_new(meta, said));
            }
            if said.over_http && header != Some(meta) {
                return Err(mismatch("MCP-Protocol-Version", header, meta));
            }
            if meta != MODERN {
                return Err(unsupported(served, meta));
            }
            Era::Modern
        }
        (Some(meta), Some(MODERN)) => return Err(mismatch("MCP-Protocol-Version", Some(MODERN), meta)),
        (None, Some(MODERN)) => Era::Modern,
        (_, Some(header)) if !is_legacy(header) => return Err(unsupported_header(served, header)),
        _ if matches!(said.method, "server/discover" | "subscriptions/listen") => Era::Modern,
        _ => Era::Legacy,
    };
    match (era, served) {
        (Era::Modern, ServedEras::Legacy) => Err(too_new(said.header.unwrap_or(MODERN), said)),
        (Era::Legacy, ServedEras::Modern) => {
            Err(unsupported(served, said.header.or(said.meta).unwrap_or("a version with a handshake")))
        }
        _ => Ok(era),
    }
}

/// Whoever speaks in the modern era says it all with every request.
pub(super) fn modern_speaker(
    meta: Option<Meta>,
    conversation: Option<u64>,
) -> Result<(Speaker, Meta), Outcome> {
    let mut meta = meta.unwrap_or_default();
    let missing = |what| {
        let message = format!("params._meta is missing io.modelcontextprotocol/{what}");
        Outcome::refused(StatusCode::BAD_REQUEST, -32602, message)
    };
    if meta.version.is_none() {
        return Err(missing("protocolVersion"));
    }
    let Some(capabilities) = meta.capabilities.take() else { return Err(missing("clientCapabilities")) };
    let client = meta.client.take();
    // Where nothing but the request tells who made it, nobody can tell two clients of one name apart: what is asked during
    // the call of one must not reach the other.
    let conversation = conversation.unwrap_or_else(|| fastrand::u64(..));
    let speaker = Speaker {
        version: MODERN,
        who: client.as_deref().unwrap_or("an MCP client").into(),
        viewer: Viewer { client },
        offers: ClientOffers::read(&capabilities),
        capabilities: Some(capabilities),
        conversation,
        since: None,
    };
    Ok((speaker, meta))
}

/// Somebody of the legacy era who has not introduced itself: nothing is known about it, and nothing is asked of it.
pub(super) fn stranger(version: Option<&str>, conversation: u64) -> Arc<Speaker> {
    // The header came with 2025-06-18; whoever sends none is older.
    let known = version.and_then(|version| LEGACY.into_iter().find(|known| *known == version));
    Arc::new(Speaker {
        version: known.unwrap_or("2025-03-26"),
        who: "an MCP client".into(),
        viewer: Viewer::default(),
        offers: ClientOffers::default(),
        capabilities: None,
        conversation,
        since: None,
    })
}

/// That a header does not say what the request says.
pub(super) fn mismatch(header: &str, said: Option<&str>, expected: &str) -> Outcome {
    let short = |text: &str| -> String { text.chars().take(100).collect() };
    let said = said.map_or("is missing".to_owned(), |said| format!("says '{}'", short(said)));
    let message = format!("header mismatch: {header} {said}, the request says '{}'", short(expected));
    Outcome::refused(StatusCode::BAD_REQUEST, -32020, message)
}

fn unsupported(served: ServedEras, requested: &str) -> Outcome {
    let modern = (served != ServedEras::Legacy).then_some(MODERN);
    let legacy = if served == ServedEras::Modern { [].as_slice() } else { &LEGACY };
    let supported: Vec<&str> = modern.into_iter().chain(legacy.iter().copied()).collect();
    let shown: String = requested.chars().take(100).collect();
    let message = format!("protocol version {shown} is not supported; supported: {}", supported.join(", "));
    Outcome::refused(StatusCode::BAD_REQUEST, -32022, message)
        .with_data(&json!({"supported": supported, "requested": shown}))
}

/// An unknown version in the header alone. Servers before the modern era had no code for it.
fn unsupported_header(served: ServedEras, header: &str) -> Outcome {
    if served == ServedEras::Legacy { old_refusal(header) } else { unsupported(served, header) }
}

/// A request of the modern era to a server that does not speak it. It must not look like an answer of one that does, or
/// clients would not introduce themselves.
fn too_new(requested: &str, said: Said<'_>) -> Outcome {
    if said.over_http {
        old_refusal(requested)
    } else {
        super::methods::unknown_method(said.method, Era::Legacy)
    }
}

fn old_refusal(requested: &str) -> Outcome {
    let shown: String = requested.chars().take(100).collect();
    let message = format!("protocol version {shown} is not supported; supported: {}", LEGACY.join(", "));
    Outcome::refused(StatusCode::BAD_REQUEST, -32000, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http<'a>(method: &'a str, header: Option<&'a str>, meta: Option<&'a str>) -> Said<'a> {
        Said { method, header, meta, over_http: true }
    }

    fn code(refused: Result<Era, Outcome>) -> i64 {
        match refused {
            Err(Outcome::Error { error, .. }) => error.code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_says_its_era_itself() {
        let both = |said| era_of(ServedEras::Both, said);
        assert_eq!(both(http("tools/list", Some(MODERN), Some(MODERN))).unwrap(), Era::Modern);
        assert_eq!(both(http("tools/list", Some(MODERN), None)).unwrap(), Era::Modern);
        assert!(
            both(http("tools/list", Some(MODERN), Some("2025-11-25"))).is_err(),
            "header and body say different things"
        );
        assert_eq!(both(http("server/discover", None, None)).unwrap(), Era::Modern);
        assert_eq!(both(http("initialize", None, None)).unwrap(), Era::Legacy);
        assert_eq!(both(http("tools/list", Some("2025-06-18"), None)).unwrap(), Era::Legacy);
        assert_eq!(
            both(Said { method: "tools/list", meta: Some(MODERN), ..Said::default() }).unwrap(),
            Era::Modern
        );
    }

    #[test]
    fn what_does_not_match_or_is_not_known_is_refused() {
        let both = |said| code(era_of(ServedEras::Both, said));
        assert_eq!(both(http("tools/list", None, Some(MODERN))), -32020);
        assert_eq!(both(http("tools/list", Some("2025-11-25"), Some(MODERN))), -32020);
        assert_eq!(both(http("tools/list", Some("v9"), Some("v9"))), -32022);
        assert_eq!(both(http("tools/list", Some("v9"), None)), -32022);
    }

    #[test]
    fn a_server_of_one_era_says_so_in_its_own_way() {
        let legacy = |said| code(era_of(ServedEras::Legacy, said));
        assert_eq!(legacy(http("server/discover", Some(MODERN), Some(MODERN))), -32000);
        assert_eq!(legacy(Said { method: "server/discover", meta: Some(MODERN), ..Said::default() }), -32601);
        assert_eq!(code(era_of(ServedEras::Modern, http("initialize", None, None))), -32022);
    }
}
