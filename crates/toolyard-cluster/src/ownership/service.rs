//! [`OwnedCallService`]: answers the calls of sessions that other processes forward to their owner.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolyard_core::{BoxFuture, Exchange, PeerService};

use super::{
    owners::{Admission, Location, SessionOwners, SessionUse},
    tool::OwnedTools,
};
use crate::remote_call::ToolCallService;

/// The name of the service.
pub const OWNED_CALL_SERVICE: &str = "owned-call";

/// Begins a message that is not one of the call: those are JSON.
const REFUSAL: u8 = 0;

/// What precedes a forwarded call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Envelope {
    pub(super) session: String,
    pub(super) user: String,
    /// Whether the tool says that its calls change nothing.
    pub(super) is_read_only: bool,
}

/// Why a forwarded call was not made.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Refusal {
    /// Another process owns the session.
    Elsewhere { owner: u64 },
    /// The session that the caller has used is gone.
    SessionLost { fence: i64 },
    /// This process does not have the server, or is shutting down. Another one should take the session.
    NotServed,
    /// The store does not say who owns the session.
    StoreUnavailable { reason: String },
}

impl Envelope {
    /// The envelope, followed by the call.
    pub(super) fn encode(&self, call: &[u8]) -> Vec<u8> {
        let head = serde_json::to_vec(self).unwrap_or_default();
        let length = u32::try_from(head.len()).unwrap_or(0);
        [length.to_be_bytes().as_slice(), &head, call].concat()
    }

    fn decode(message: &[u8]) -> Option<(Self, &[u8])> {
        let (length, rest) = message.split_first_chunk()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (head, call) = rest.split_at_checked(length)?;
        Some((serde_json::from_slice(head).ok()?, call))
    }
}

impl Refusal {
    fn encode(&self) -> Vec<u8> {
        let mut message = vec![REFUSAL];
        message.extend(serde_json::to_vec(self).unwrap_or_default());
        message
    }

    /// None if the message is one of the call.
    pub(super) fn decode(message: &[u8]) -> Option<Self> {
        match message.split_first() {
            Some((&REFUSAL, refusal)) => serde_json::from_slice(refusal).ok(),
            _ => None,
        }
    }
}

/// Makes the calls that other processes forward to this one as the owner of a session.
pub struct OwnedCallService {
    owners: Arc<SessionOwners>,
    tools: Arc<OwnedTools>,
    calls: Arc<dyn PeerService>,
}

impl OwnedCallService {
    /// A service that calls these tools in sessions that this process owns.
    pub fn new(owners: Arc<SessionOwners>, tools: Arc<OwnedTools>) -> Self {
        let calls = Arc::new(ToolCallService::new(Arc::clone(&tools)));
        Self { owners, tools, calls }
    }

    async fn check(&self, envelope: &Envelope) -> Result<Option<SessionUse>, Refusal> {
        let Envelope { session, user, is_read_only } = envelope;
        if self.owners.is_closing() || !self.tools.has_session(session) {
            return Err(Refusal::NotServed);
        }
        loop {
            let admission = match self.owners.take(session).await {
                Ok(Location::Here(fence)) => self.owners.admit(session, fence, user).await,
                Ok(Location::There(owner)) => return Err(Refusal::Elsewhere { owner }),
                Err(error) => Err(error),
            };
            return match admission {
                Ok(Admission::Admitted(session_use)) => Ok(Some(session_use)),
                Ok(Admission::Expired) => continue,
                Ok(Admission::SessionLost(fence)) => Err(Refusal::SessionLost { fence }),
                Err(_) if *is_read_only && self.owners.was_used_here(session, user) => Ok(None),
                Err(error) => Err(Refusal::StoreUnavailable { reason: error.to_string() }),
            };
        }
    }
}

impl std::fmt::Debug for OwnedCallService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnedCallService").finish_non_exhaustive()
    }
}

impl PeerService for OwnedCallService {
    fn serve(self: Arc<Self>, request: Vec<u8>, mut exchange: Box<dyn Exchange>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            // A process of another version: the exchange ends without an answer.
            let Some((envelope, call)) = Envelope::decode(&request) else {
                return tracing::warn!("a malformed call of another process was refused");
            };
            match self.check(&envelope).await {
                Ok(_session_use) => Arc::clone(&self.calls).serve(call.to_vec(), exchange).await,
                // A caller that is gone needs no answer.
                Err(refusal) => drop(exchange.send_last(refusal.encode()).await),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_envelope_is_read_back_and_nothing_else_is(session in ".{0,30}", call: Vec<u8>, garbage: Vec<u8>) {
            let envelope = Envelope { session: session.clone(), user: "u".to_owned(), is_read_only: true };
            let message = envelope.encode(&call);
            let (read, rest) = Envelope::decode(&message).unwrap();
            prop_assert_eq!((read.session, rest), (session, call.as_slice()));
            prop_assert!(Envelope::decode(&garbage).is_none());
        }
    }

    #[test]
    fn a_refusal_is_no_message_of_a_call() {
        for refusal in [Refusal::SessionLost { fence: 7 }, Refusal::Elsewhere { owner: u64::MAX }] {
            assert_eq!(Refusal::decode(&refusal.encode()), Some(refusal));
        }
        assert_eq!(Refusal::decode(br#"{"session_lost":null}"#), None);
    }
}
