//! Session ids of legacy clients. They contain the sealed session state, so sessions need no store and work on any replica.

use std::time::{Duration, SystemTime};

use toolyard_mcp::versions::LEGACY_REVISIONS;

use crate::session::{
    client_capabilities::ClientCapabilities,
    peer::{Peer, truncate_client_name},
    sealing::SessionKeys,
};

const SEAL_PURPOSE: &[u8] = b"toolyard mcp session 1";
/// Older session ids are rejected; their clients initialize again.
const MAX_SESSION_AGE: Duration = Duration::from_hours(24 * 30);
/// Tolerated difference between the clocks of replicas.
const MAX_CLOCK_SKEW: Duration = Duration::from_mins(5);
const FORMAT_VERSION: u8 = 1;

/// The endpoint and the caller that a session or request state is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionScope<'a> {
    /// The profile; empty for the main endpoint.
    pub(crate) profile: &'a str,
    /// Who owns it ([`toolyard_core::CallerIdentity::owner_hash`]).
    pub(crate) owner_hash: &'a [u8; 32],
}

impl SessionScope<'_> {
    pub(crate) fn purpose(&self, purpose: &[u8]) -> Vec<u8> {
        [purpose, b"\0", self.owner_hash.as_slice(), self.profile.as_bytes()].concat()
    }
}

pub(crate) fn seal_session_id(keys: &SessionKeys, scope: &SessionScope<'_>, peer: &Peer) -> Option<String> {
    let version = LEGACY_REVISIONS.iter().position(|version| *version == peer.revision)?;
    let mut payload = vec![FORMAT_VERSION, u8::try_from(version).ok()?, peer.capabilities.to_bits()];
    payload.extend(peer.initialized_at?.to_be_bytes());
    payload.extend(peer.session_number.to_be_bytes());
    payload.extend(peer.client.name.as_deref().unwrap_or_default().as_bytes());
    keys.seal(&scope.purpose(SEAL_PURPOSE), payload)
}

/// The client of a session id; none if the id is forged, belongs to another scope, or is too old.
pub(crate) fn open_session_id(keys: &SessionKeys, scope: &SessionScope<'_>, id: &str) -> Option<Peer> {
    let payload = keys.open(&scope.purpose(SEAL_PURPOSE), id)?;
    let ([FORMAT_VERSION, version, capabilities], rest) = payload.split_first_chunk()? else { return None };
    let (initialized_at, rest) = rest.split_first_chunk()?;
    let (session_number, client) = rest.split_first_chunk()?;
    let (initialized_at, now) = (u64::from_be_bytes(*initialized_at), unix_seconds(SystemTime::now()));
    if initialized_at > now + MAX_CLOCK_SKEW.as_secs() || now > initialized_at + MAX_SESSION_AGE.as_secs() {
        return None;
    }
    let client = std::str::from_utf8(client).ok().and_then(truncate_client_name);
    let capabilities = ClientCapabilities::from_bits(*capabilities);
    let revision = LEGACY_REVISIONS.get(usize::from(*version))?;
    Some(Peer {
        // Encoded once: every call of the session forwards it.
        raw_capabilities: Some(capabilities.to_json()),
        initialized_at: Some(initialized_at),
        ..Peer::new(revision, client, capabilities, u64::from_be_bytes(*session_number))
    })
}

pub(crate) fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer() -> Peer {
        let capabilities =
            ClientCapabilities { elicitation_form: true, roots: true, ..ClientCapabilities::default() };
        Peer {
            initialized_at: Some(unix_seconds(SystemTime::now())),
            ..Peer::new("2025-06-18", Some("claude-code".to_owned()), capabilities, 0xfeed)
        }
    }

    #[test]
    fn a_session_id_opens_in_its_own_scope_only() {
        let keys = SessionKeys::random().unwrap();
        let scope = SessionScope { profile: "", owner_hash: &[1; 32] };
        let id = seal_session_id(&keys, &scope, &peer()).unwrap();
        let opened = open_session_id(&keys, &scope, &id).unwrap();
        assert_eq!(opened.revision, "2025-06-18");
        assert_eq!(opened.client.name.as_deref(), Some("claude-code"));
        assert_eq!(opened.capabilities, peer().capabilities);
        assert_eq!(opened.session_number, 0xfeed);
        assert!(open_session_id(&keys, &SessionScope { profile: "other", ..scope.clone() }, &id).is_none());
        assert!(
            open_session_id(&keys, &SessionScope { owner_hash: &[2; 32], ..scope.clone() }, &id).is_none()
        );
        assert!(open_session_id(&SessionKeys::random().unwrap(), &scope, &id).is_none());
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()));
    }
}
