//! Negotiates the revision with a server: `server/discover` in modern revisions, `initialize` in legacy ones.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::sleep;
use toolyard_core::RevisionFamily;
use toolyard_mcp::{
    DiscoverResult, InitializeResult, JsonObject, ServerDescription, WireError,
    versions::{LEGACY_REVISIONS, MODERN_REVISION},
};

use crate::{
    lifecycle::{
        connect_error::ConnectError,
        negotiation::{
            AfterDiscover, AfterInitialize, after_discover_error, after_discover_failure,
            after_initialize_failure, legacy_revision,
        },
    },
    session::{
        error::RequestError,
        inner::{OutgoingRequest, SessionInner},
        protocol_context::ProtocolContext,
    },
};

/// How long a process may ignore `server/discover` before `initialize` is sent as well. A server that is merely slow
/// responds to the first request first, so the length of the delay does not affect the result.
const INITIALIZE_DELAY: Duration = Duration::from_secs(10);

pub(super) struct Handshake {
    pub(super) protocol: ProtocolContext,
    pub(super) about: ServerDescription,
}

enum Discovery {
    Modern(Handshake),
    Legacy,
}

/// The handshake with a server at a URL; none if it does not seem to support Streamable HTTP.
pub(super) async fn http_handshake(
    session: &Arc<SessionInner>,
    known_family: Option<RevisionFamily>,
) -> Result<Option<Handshake>, ConnectError> {
    let was_legacy = known_family == Some(RevisionFamily::Legacy);
    if !was_legacy && let Discovery::Modern(handshake) = discover(session).await? {
        return Ok(Some(handshake));
    }
    let refusal = match initialize(session).await {
        Err(ConnectError::Transport(failure)) => match after_initialize_failure(failure) {
            AfterInitialize::TrySse => None,
            AfterInitialize::Failed(failure) => return Err(failure.into()),
        },
        Err(ConnectError::Refused(error)) => Some(error),
        outcome => return outcome.map(Some),
    };
    // The server may have been upgraded to a modern revision.
    if was_legacy && let Ok(Discovery::Modern(handshake)) = discover(session).await {
        return Ok(Some(handshake));
    }
    refusal.map_or(Ok(None), |error| Err(ConnectError::Refused(error)))
}

/// The handshake on a connection that stays open, such as a process. A server that does not respond to `server/discover`
/// gets `initialize` as well; its responses decide, not the time they take.
pub(super) async fn handshake(
    session: &Arc<SessionInner>,
    known_family: Option<RevisionFamily>,
) -> Result<Handshake, ConnectError> {
    if known_family == Some(RevisionFamily::Legacy) {
        match initialize(session).await {
            // The server may have been upgraded to a modern revision.
            Err(ConnectError::Refused(_)) => {}
            outcome => return outcome,
        }
    }
    let mut discovering = pin!(discover(session));
    tokio::select! {
        discovery = &mut discovering => return complete(discovery?, session).await,
        () = sleep(INITIALIZE_DELAY) => {}
    }
    let mut initializing = pin!(initialize(session));
    let mut is_legacy = false;
    loop {
        tokio::select! {
            biased;
            discovery = &mut discovering, if !is_legacy => match discovery? {
                Discovery::Modern(handshake) => return Ok(handshake),
                Discovery::Legacy => is_legacy = true,
            },
            outcome = &mut initializing => match outcome {
                // A modern server refuses `initialize`.
                Err(ConnectError::Refused(_)) if !is_legacy => {
                    return complete(discovering.await?, session).await;
                }
                outcome => return outcome,
            },
        }
    }
}

async fn complete(discovery: Discovery, session: &Arc<SessionInner>) -> Result<Handshake, ConnectError> {
    match discovery {
        Discovery::Modern(handshake) => Ok(handshake),
        Discovery::Legacy => initialize(session).await,
    }
}

async fn discover(session: &Arc<SessionInner>) -> Result<Discovery, ConnectError> {
    let protocol = ProtocolContext::modern();
    session.transport.set_protocol_version(Some(protocol.revision));
    let mut outcome = discover_once(session, &protocol).await?;
    if let Err(AfterDiscover::Retry(_)) = outcome {
        outcome = discover_once(session, &protocol).await?;
    }
    match outcome {
        Ok(about) => Ok(Discovery::Modern(Handshake { protocol, about })),
        Err(AfterDiscover::Initialize) => Ok(Discovery::Legacy),
        Err(AfterDiscover::Refused(error) | AfterDiscover::Retry(error)) => Err(ConnectError::Refused(error)),
        Err(AfterDiscover::Failed(failure)) => Err(failure.into()),
    }
}

async fn discover_once(
    session: &Arc<SessionInner>,
    protocol: &ProtocolContext,
) -> Result<Result<ServerDescription, AfterDiscover>, ConnectError> {
    let request = OutgoingRequest::new("server/discover", JsonObject::new());
    let result = match session.request_with(protocol, request).await {
        Ok(raw) => DiscoverResult::read(&raw),
        Err(RequestError::Rpc(error)) => return Ok(Err(after_discover_error(error))),
        Err(RequestError::Transport(failure)) => return Ok(Err(after_discover_failure(failure))),
        Err(other) => return Err(other.into()),
    };
    let revisions = match result {
        Ok(result) if result.supported_versions.iter().any(|revision| revision == MODERN_REVISION) => {
            return Ok(Ok(result.about));
        }
        Ok(result) => result.supported_versions,
        // Some legacy servers respond to unknown methods with an empty result.
        Err(WireError::InvalidResult { .. }) => return Ok(Err(AfterDiscover::Initialize)),
        Err(error) => return Err(error.into()),
    };
    if revisions.iter().any(|revision| legacy_revision(revision).is_some()) {
        Ok(Err(AfterDiscover::Initialize))
    } else {
        Err(ConnectError::UnsupportedRevision(revisions.join(", ")))
    }
}

pub(super) async fn initialize(session: &Arc<SessionInner>) -> Result<Handshake, ConnectError> {
    let [newest, ..] = LEGACY_REVISIONS;
    let offered = ProtocolContext::legacy(newest);
    session.transport.set_protocol_version(None);
    let request = OutgoingRequest::new("initialize", offered.initialize_params());
    let result = InitializeResult::read(&session.request_with(&offered, request).await?)?;
    let revision = legacy_revision(&result.protocol_version)
        .ok_or_else(|| ConnectError::UnsupportedRevision(result.protocol_version.clone()))?;
    Ok(Handshake { protocol: ProtocolContext::legacy(revision), about: result.about })
}
