//! [`SessionKeys`]: session cookies that need no storage, and the CSRF tokens that belong to them.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use toolyard_core::unix_millis;

use super::Role;

/// The name of the session cookie.
pub(crate) const SESSION_COOKIE: &str = "toolyard_console";
/// How long a session lasts.
pub(crate) const SESSION_SECONDS: u64 = 12 * 3_600;

const ID_BYTES: usize = 16;
const MAC_BYTES: usize = 32;
/// Role, expiry and id.
const PAYLOAD_BYTES: usize = 1 + 8 + ID_BYTES;

/// A session of a signed-in visitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) role: Role,
    /// Unix seconds.
    expires_at: u64,
    id: [u8; ID_BYTES],
}

/// Signs and checks sessions. The key depends on the gateway's access token, so that changing the token ends all sessions.
pub(crate) struct SessionKeys {
    key: [u8; 32],
    /// Ids of sessions that ended by signing out, with their expiry.
    revoked: Mutex<HashMap<[u8; ID_BYTES], u64>>,
}

impl SessionKeys {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self {
            key: blake3::derive_key("Toolyard 2026-11-17 session keys of the console", &key),
            revoked: Mutex::default(),
        }
    }

    /// A new session and the value of its cookie.
    pub(crate) fn create(
        &self,
        credential: &[u8; 32],
        role: Role,
    ) -> Result<(Session, String), getrandom::Error> {
        let mut id = [0; ID_BYTES];
        getrandom::fill(&mut id)?;
        let session = Session { role, expires_at: now() + SESSION_SECONDS, id };
        let value = self.seal(credential, &session);
        Ok((session, value))
    }

    fn seal(&self, credential: &[u8; 32], session: &Session) -> String {
        let mut bytes = session.payload().to_vec();
        bytes.extend_from_slice(self.mac(credential, b"session", &session.payload()).as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The session of a cookie, unless it is forged, for another token, expired or ended.
    pub(crate) fn open(&self, credential: &[u8; 32], value: &str) -> Option<Session> {
        self.open_at(credential, value, now())
    }

    fn open_at(&self, credential: &[u8; 32], value: &str, now: u64) -> Option<Session> {
        let bytes = URL_SAFE_NO_PAD.decode(value).ok()?;
        let (payload, mac) = bytes.split_at_checked(PAYLOAD_BYTES)?;
        let mac =
            blake3::Hash::from_bytes(mac.try_into().ok().filter(|mac: &[u8; MAC_BYTES]| !mac.is_empty())?);
        // Compared in constant time.
        if self.mac(credential, b"session", payload) != mac {
            return None;
        }
        let (role, rest) = payload.split_first()?;
        let (expires_at, id) = rest.split_at_checked(8)?;
        let session = Session {
            role: if *role == 1 { Role::Operator } else { Role::Caller },
            expires_at: u64::from_be_bytes(expires_at.try_into().ok()?),
            id: id.try_into().ok()?,
        };
        let is_revoked = self.revoked.lock().contains_key(&session.id);
        (session.expires_at > now && !is_revoked).then_some(session)
    }

    /// Ends a session before it expires.
    ///
    /// The revocation is kept in the memory of this process. The key may survive a restart and be shared with other replicas,
    /// which then accept a copied cookie of the session until it expires. Changing the access token ends all sessions everywhere.
    pub(crate) fn revoke(&self, session: &Session) {
        let now = now();
        let mut revoked = self.revoked.lock();
        revoked.retain(|_, expires_at| *expires_at > now);
        revoked.insert(session.id, session.expires_at);
    }

    /// The hidden field of the forms of a session.
    pub(crate) fn csrf_token(&self, credential: &[u8; 32], session: &Session) -> String {
        URL_SAFE_NO_PAD.encode(self.mac(credential, b"csrf", &session.id).as_bytes())
    }

    fn mac(&self, credential: &[u8; 32], purpose: &[u8], data: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(credential).update(purpose).update(&[0]).update(data);
        hasher.finalize()
    }
}

impl Session {
    fn payload(&self) -> [u8; PAYLOAD_BYTES] {
        let mut payload = [0; PAYLOAD_BYTES];
        let fields = [u8::from(self.role == Role::Operator)].into_iter();
        let fields = fields.chain(self.expires_at.to_be_bytes()).chain(self.id);
        payload.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
        payload
    }
}

fn now() -> u64 {
    u64::try_from(unix_millis() / 1_000).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CREDENTIAL: [u8; 32] = [1; 32];

    #[test]
    fn a_session_lasts_until_it_expires_or_ends() {
        let keys = SessionKeys::new([9; 32]);
        for role in [Role::Caller, Role::Operator] {
            let (session, value) = keys.create(&CREDENTIAL, role).unwrap();
            assert_eq!(keys.open(&CREDENTIAL, &value), Some(session.clone()));
            assert_eq!(session.role, role);
            assert_eq!(keys.open_at(&CREDENTIAL, &value, now() + SESSION_SECONDS), None, "expired");
            assert_eq!(keys.open(&[2; 32], &value), None, "the access token changed");
            assert_eq!(SessionKeys::new([8; 32]).open(&CREDENTIAL, &value), None, "another key");
            keys.revoke(&session);
            assert_eq!(keys.open(&CREDENTIAL, &value), None, "signed out");
        }
    }

    #[test]
    fn csrf_tokens_belong_to_one_session() {
        let keys = SessionKeys::new([9; 32]);
        let (one, value) = keys.create(&CREDENTIAL, Role::Caller).unwrap();
        let (other, _) = keys.create(&CREDENTIAL, Role::Caller).unwrap();
        let token = keys.csrf_token(&CREDENTIAL, &one);
        assert_eq!(token, keys.csrf_token(&CREDENTIAL, &one));
        assert_ne!(token, keys.csrf_token(&CREDENTIAL, &other));
        assert!(!value.contains(&token));
    }

    proptest! {
        #[test]
        fn a_changed_cookie_opens_no_session(position in 0_usize..76, letter in "[A-Za-z0-9_-]", junk in "\\PC{0,100}") {
            let keys = SessionKeys::new([9; 32]);
            let (_, value) = keys.create(&CREDENTIAL, Role::Caller).unwrap();
            let mut changed = value.clone();
            changed.replace_range(position..=position, &letter);
            prop_assert!(changed == value || keys.open(&CREDENTIAL, &changed).is_none());
            prop_assert_eq!(keys.open(&CREDENTIAL, &junk), None);
        }
    }
}
