//! What an unfinished call wants to be reminded of: kept by the client, sealed, and good for that call alone.

use std::time::{Duration, SystemTime};

use aws_lc_rs::digest;
use toolyard_core::RawJson;

use super::{
    SessionKeys,
    session::{Seat, seconds},
};

const PURPOSE: &[u8] = b"toolyard mcp state 1";

/// What stands in the state of an unfinished request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestState {
    /// The call waits here.
    Parked {
        /// In which process.
        instance: u64,
        /// Under which number.
        number: u64,
    },
    /// A server asked and waits for nothing; it is asked again.
    Upstream {
        /// Which.
        source: String,
        /// What it wants to be reminded of.
        state: Option<String>,
    },
}

/// What tells one request from others: a state that was given for it is good for no other.
#[derive(Debug, Clone)]
pub(super) struct Marked {
    pub(super) method: String,
    /// A tool, a prompt, a resource.
    pub(super) about: String,
    pub(super) arguments: Option<RawJson>,
}

impl Marked {
    pub(super) fn hash(&self) -> [u8; 32] {
        let arguments = self.arguments.as_ref().map_or("{}", RawJson::get);
        let mut hash = digest::Context::new(&digest::SHA256);
        for part in [self.method.as_str(), &self.about, arguments] {
            // Lengths keep the parts apart.
            hash.update(&part.len().to_be_bytes());
            hash.update(part.as_bytes());
        }
        hash.finish().as_ref().try_into().unwrap_or_default()
    }
}

impl RequestState {
    pub(super) fn seal(&self, keys: &SessionKeys, seat: &Seat<'_>, request: &Marked) -> Option<String> {
        let mut facts = seconds(SystemTime::now()).to_be_bytes().to_vec();
        match self {
            Self::Parked { instance, number } => {
                facts.push(0);
                facts.extend(instance.to_be_bytes());
                facts.extend(number.to_be_bytes());
            }
            Self::Upstream { source, state } => {
                facts.push(if state.is_some() { 2 } else { 1 });
                facts.extend(u16::try_from(source.len()).ok()?.to_be_bytes());
                facts.extend(source.as_bytes());
                facts.extend(state.as_deref().unwrap_or_default().as_bytes());
            }
        }
        keys.seal(&[seat.purpose(PURPOSE).as_slice(), &request.hash()].concat(), facts)
    }

    /// None if it was not sealed here, for this seat and this request, or too long ago.
    pub(super) fn open(
        keys: &SessionKeys,
        seat: &Seat<'_>,
        request: &Marked,
        sealed: &str,
        age: Duration,
    ) -> Option<Self> {
        let facts = keys.open(&[seat.purpose(PURPOSE).as_slice(), &request.hash()].concat(), sealed)?;
        let (issued, facts) = facts.split_first_chunk()?;
        if seconds(SystemTime::now()) > u64::from_be_bytes(*issued).saturating_add(age.as_secs()) {
            return None;
        }
        let (kind, facts) = facts.split_first()?;
        if *kind == 0 {
            let (instance, facts) = facts.split_first_chunk()?;
            let number = facts.first_chunk()?;
            return Some(Self::Parked {
                instance: u64::from_be_bytes(*instance),
                number: u64::from_be_bytes(*number),
            });
        }
        let (length, facts) = facts.split_first_chunk()?;
        let (source, state) = facts.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let state = if *kind == 2 { Some(text(state)?) } else { None };
        Some(Self::Upstream { source: text(source)?, state })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    proptest! {
        #[test]
        fn a_state_is_good_for_one_request_of_one_client(
            source in "[a-z]{0,20}", state in proptest::option::of(".{0,40}"), number in any::<u64>()
        ) {
            let keys = SessionKeys::random().unwrap();
            let seat = Seat { profile: "p", principal: &[1; 32] };
            let mark = |method: &str, about: &str, arguments: &str| Marked {
                method: method.to_owned(),
                about: about.to_owned(),
                arguments: Some(RawJson::parse(arguments.to_owned()).unwrap()),
            };
            let request = mark("tools/call", "echo", "{}");
            for state in [RequestState::Upstream { source, state }, RequestState::Parked { instance: 1, number }] {
                let sealed = state.seal(&keys, &seat, &request).unwrap();
                let open = |seat: &Seat<'_>, request: &Marked, age| RequestState::open(&keys, seat, request, &sealed, age);
                prop_assert_eq!(open(&seat, &request, HOUR), Some(state));
                prop_assert_eq!(open(&seat, &mark("tools/call", "echo", r#"{"a":1}"#), HOUR), None);
                prop_assert_eq!(open(&seat, &mark("tools/calle", "cho", "{}"), HOUR), None);
                prop_assert_eq!(open(&Seat { principal: &[2; 32], ..seat.clone() }, &request, HOUR), None);
                prop_assert_eq!(open(&Seat { profile: "", ..seat.clone() }, &request, HOUR), None);
            }
        }
    }
}
