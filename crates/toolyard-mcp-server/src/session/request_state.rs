//! [`RequestState`]: the sealed `requestState` of a call that awaits input. Clients store it; it is valid for that call only.

use std::time::{Duration, SystemTime};

use aws_lc_rs::digest;
use toolyard_core::RawJson;

use crate::session::{
    sealing::SessionKeys,
    session_id::{SessionScope, unix_seconds},
};

const SEAL_PURPOSE: &[u8] = b"toolyard mcp state 1";

// The kinds of sealed state.
const SUSPENDED: u8 = 0;
const UPSTREAM_WITHOUT_STATE: u8 = 1;
const UPSTREAM_WITH_STATE: u8 = 2;
const SIGN_IN: u8 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestState {
    /// The call is suspended in a server process.
    Suspended { process_instance: u64, call_id: u64 },
    /// An upstream server requested input without keeping the call; the call is made again with the responses.
    Upstream {
        source: String,
        /// The `requestState` of that server.
        state: Option<String>,
    },
    /// The caller was asked to sign in to a source; the call is made again afterwards.
    SignIn {
        source: String,
        /// The sign-in.
        id: String,
    },
}

/// Identifies a request: sealed state opens only for the request it was created for.
#[derive(Debug, Clone)]
pub(crate) struct RequestFingerprint {
    pub(crate) method: String,
    /// The name of the tool or prompt, or the URI of the resource.
    pub(crate) target: String,
    pub(crate) arguments: Option<RawJson>,
}

impl RequestFingerprint {
    pub(crate) fn hash(&self) -> [u8; 32] {
        let arguments = self.arguments.as_ref().map_or("{}", RawJson::get);
        let mut hash = digest::Context::new(&digest::SHA256);
        for part in [self.method.as_str(), &self.target, arguments] {
            // Length prefixes keep the parts distinct.
            hash.update(&part.len().to_be_bytes());
            hash.update(part.as_bytes());
        }
        hash.finish().as_ref().try_into().unwrap_or_default()
    }
}

impl RequestState {
    pub(crate) fn seal(
        &self,
        keys: &SessionKeys,
        scope: &SessionScope<'_>,
        request: &RequestFingerprint,
    ) -> Option<String> {
        let mut payload = unix_seconds(SystemTime::now()).to_be_bytes().to_vec();
        match self {
            Self::Suspended { process_instance, call_id } => {
                payload.push(SUSPENDED);
                payload.extend(process_instance.to_be_bytes());
                payload.extend(call_id.to_be_bytes());
            }
            Self::Upstream { source, state } => {
                payload.push(if state.is_some() { UPSTREAM_WITH_STATE } else { UPSTREAM_WITHOUT_STATE });
                payload.extend(u16::try_from(source.len()).ok()?.to_be_bytes());
                payload.extend(source.as_bytes());
                payload.extend(state.as_deref().unwrap_or_default().as_bytes());
            }
            Self::SignIn { source, id } => {
                payload.push(SIGN_IN);
                payload.extend(u16::try_from(source.len()).ok()?.to_be_bytes());
                payload.extend(source.as_bytes());
                payload.extend(id.as_bytes());
            }
        }
        keys.seal(&[scope.purpose(SEAL_PURPOSE).as_slice(), &request.hash()].concat(), payload)
    }

    /// None if the state was not sealed for this scope and the request with this [`RequestFingerprint::hash`], or is older than
    /// `max_age`.
    pub(crate) fn open(
        keys: &SessionKeys,
        scope: &SessionScope<'_>,
        request_hash: &[u8; 32],
        sealed: &str,
        max_age: Duration,
    ) -> Option<Self> {
        let payload = keys.open(&[scope.purpose(SEAL_PURPOSE).as_slice(), request_hash].concat(), sealed)?;
        let (issued_at, payload) = payload.split_first_chunk()?;
        if unix_seconds(SystemTime::now()) > u64::from_be_bytes(*issued_at).saturating_add(max_age.as_secs())
        {
            return None;
        }
        let (kind, payload) = payload.split_first()?;
        if *kind == SUSPENDED {
            let (process_instance, payload) = payload.split_first_chunk()?;
            let call_id = payload.first_chunk()?;
            return Some(Self::Suspended {
                process_instance: u64::from_be_bytes(*process_instance),
                call_id: u64::from_be_bytes(*call_id),
            });
        }
        let (length, payload) = payload.split_first_chunk()?;
        let (source, state) = payload.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        if *kind == SIGN_IN {
            return Some(Self::SignIn { source: text(source)?, id: text(state)? });
        }
        let state = if *kind == UPSTREAM_WITH_STATE { Some(text(state)?) } else { None };
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
        fn a_state_is_valid_for_one_request_of_one_client(
            source in "[a-z]{0,20}", state in proptest::option::of(".{0,40}"), call_id in any::<u64>()
        ) {
            let keys = SessionKeys::random().unwrap();
            let scope = SessionScope { profile: "p", owner_hash: &[1; 32] };
            let fingerprint = |method: &str, target: &str, arguments: &str| RequestFingerprint {
                method: method.to_owned(),
                target: target.to_owned(),
                arguments: Some(RawJson::parse(arguments.to_owned()).unwrap()),
            };
            let request = fingerprint("tools/call", "echo", "{}");
            let sign_in = RequestState::SignIn { source: source.clone(), id: format!("{call_id:x}") };
            for state in [sign_in, RequestState::Upstream { source, state }, RequestState::Suspended { process_instance: 1, call_id }] {
                let sealed = state.seal(&keys, &scope, &request).unwrap();
                let open = |scope: &SessionScope<'_>, request: &RequestFingerprint, max_age| RequestState::open(&keys, scope, &request.hash(), &sealed, max_age);
                prop_assert_eq!(open(&scope, &request, HOUR), Some(state));
                prop_assert_eq!(open(&scope, &fingerprint("tools/call", "echo", r#"{"a":1}"#), HOUR), None);
                prop_assert_eq!(open(&scope, &fingerprint("tools/calle", "cho", "{}"), HOUR), None);
                prop_assert_eq!(open(&SessionScope { owner_hash: &[2; 32], ..scope.clone() }, &request, HOUR), None);
                prop_assert_eq!(open(&SessionScope { profile: "", ..scope.clone() }, &request, HOUR), None);
            }
        }
    }
}
