//! Sessions of the legacy era without a store: all that must be known stands, sealed, in the session id itself.

use std::time::{Duration, SystemTime};

use toolyard_core::Viewer;

use super::{
    SessionKeys,
    speaker::{ClientOffers, LEGACY, Speaker, client_name},
};

const PURPOSE: &[u8] = b"toolyard mcp session 1";
/// A session id is good for this long; clients that keep one longer introduce themselves again.
const AGE: Duration = Duration::from_hours(24 * 30);
/// Clocks of replicas may differ by this much.
const SKEW: Duration = Duration::from_mins(5);
const FORMAT: u8 = 1;

/// For whom a session is: it opens for nobody else and at no other door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seat<'a> {
    /// The profile; empty for the main door.
    pub(super) profile: &'a str,
    /// A hash of what the client showed to be let in.
    pub(super) principal: &'a [u8; 32],
}

impl Seat<'_> {
    /// What something sealed for this seat is bound to.
    pub(super) fn purpose(&self, purpose: &[u8]) -> Vec<u8> {
        [purpose, b"\0", self.principal.as_slice(), self.profile.as_bytes()].concat()
    }
}

/// A session id for a client that has introduced itself.
pub(super) fn session_id(keys: &SessionKeys, seat: &Seat<'_>, speaker: &Speaker) -> Option<String> {
    let version = LEGACY.iter().position(|version| *version == speaker.version)?;
    let mut facts = vec![FORMAT, u8::try_from(version).ok()?, speaker.offers.to_bits()];
    facts.extend(speaker.since?.to_be_bytes());
    facts.extend(speaker.conversation.to_be_bytes());
    facts.extend(speaker.viewer.client.as_deref().unwrap_or_default().as_bytes());
    keys.seal(&seat.purpose(PURPOSE), facts)
}

/// Whose session it is; none if the id is not ours, not for this seat, or too old.
pub(super) fn open_session(keys: &SessionKeys, seat: &Seat<'_>, id: &str) -> Option<Speaker> {
    let facts = keys.open(&seat.purpose(PURPOSE), id)?;
    let ([FORMAT, version, offers], rest) = facts.split_first_chunk()? else { return None };
    let (issued, rest) = rest.split_first_chunk()?;
    let (conversation, client) = rest.split_first_chunk()?;
    let (issued, now) = (u64::from_be_bytes(*issued), seconds(SystemTime::now()));
    if issued > now + SKEW.as_secs() || now > issued + AGE.as_secs() {
        return None;
    }
    let client = std::str::from_utf8(client).ok().and_then(client_name);
    let offers = ClientOffers::from_bits(*offers);
    Some(Speaker {
        version: LEGACY.get(usize::from(*version))?,
        who: client.as_deref().unwrap_or("an MCP client").into(),
        viewer: Viewer { client },
        offers,
        // Written once: every call of the session says it to its server.
        capabilities: Some(offers.to_json()),
        conversation: u64::from_be_bytes(*conversation),
        since: Some(issued),
    })
}

pub(super) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaker() -> Speaker {
        Speaker {
            version: "2025-06-18",
            who: "claude-code".into(),
            viewer: Viewer { client: Some("claude-code".to_owned()) },
            offers: ClientOffers { elicitation_form: true, roots: true, ..ClientOffers::default() },
            capabilities: None,
            conversation: 0xfeed,
            since: Some(seconds(SystemTime::now())),
        }
    }

    #[test]
    fn a_session_opens_at_its_own_seat_only() {
        let keys = SessionKeys::random().unwrap();
        let seat = Seat { profile: "", principal: &[1; 32] };
        let id = session_id(&keys, &seat, &speaker()).unwrap();
        let opened = open_session(&keys, &seat, &id).unwrap();
        assert_eq!(opened.version, "2025-06-18");
        assert_eq!(opened.viewer.client.as_deref(), Some("claude-code"));
        assert_eq!(opened.offers, speaker().offers);
        assert_eq!(opened.conversation, 0xfeed);
        assert!(open_session(&keys, &Seat { profile: "other", ..seat.clone() }, &id).is_none());
        assert!(open_session(&keys, &Seat { principal: &[2; 32], ..seat.clone() }, &id).is_none());
        assert!(open_session(&SessionKeys::random().unwrap(), &seat, &id).is_none());
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()));
    }
}
