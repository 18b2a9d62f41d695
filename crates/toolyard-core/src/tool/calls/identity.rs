//! [`CallerIdentity`]: who sends requests, however that was proved.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::presented_token::{PresentedToken, TokenInMemory};
use crate::ContentHash;

/// The issuer of API keys that this gateway created.
pub const API_KEY_ISSUER: &str = "toolyard:api-key";
/// The issuer of identities that a trusted proxy or a client certificate asserts.
pub const PROXY_ISSUER: &str = "toolyard:proxy";

/// Who sends a request: a principal, not one of its tokens. Everything that belongs to a caller (sessions, results,
/// conversations, runs) is bound to [`CallerIdentity::owner_hash`], which stays the same when a token is renewed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallerIdentity {
    owner: ContentHash,
    /// Who vouches for the subject: the URL of an OAuth issuer, [`API_KEY_ISSUER`] or [`PROXY_ISSUER`]; empty for the local token
    /// and for anonymous requests, which do not tell callers apart.
    pub issuer: Arc<str>,
    /// The caller, unique for its issuer.
    pub subject: Arc<str>,
    /// The name in the audit log.
    pub name: Arc<str>,
    /// The groups and roles of the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The OAuth scopes of the presented token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The claims of the presented token.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub claims: Map<String, Value>,
    /// The profiles that the caller may use, the main endpoint being the empty name; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_profiles: Option<Vec<String>>,
    /// The agents that the caller may use; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_agents: Option<Vec<String>>,
    /// Identities are stored with runs and journals; the token must not be.
    #[serde(skip)]
    presented_token: TokenInMemory,
}

impl Default for CallerIdentity {
    fn default() -> Self {
        Self::anonymous()
    }
}

impl CallerIdentity {
    /// Everybody, where no credential is needed.
    pub fn anonymous() -> Self {
        Self::with_owner([0; 32].into(), "", "")
    }

    /// Whoever has the local token of this gateway, of which this is the hash.
    pub fn local_token(hash: [u8; 32]) -> Self {
        Self::with_owner(hash.into(), "", "")
    }

    /// A caller that is told apart from others.
    pub fn principal(issuer: &str, subject: &str) -> Self {
        let hash = ContentHash::of_parts([b"caller".as_slice(), issuer.as_bytes(), subject.as_bytes()]);
        Self::with_owner(hash, issuer, subject)
    }

    fn with_owner(owner: ContentHash, issuer: &str, subject: &str) -> Self {
        Self {
            owner,
            issuer: issuer.into(),
            subject: subject.into(),
            name: subject.into(),
            groups: Vec::new(),
            scopes: Vec::new(),
            claims: Map::new(),
            allowed_profiles: None,
            allowed_agents: None,
            presented_token: TokenInMemory::default(),
        }
    }

    /// The same caller with the access token that it presented.
    #[must_use]
    pub fn with_presented_token(mut self, token: PresentedToken) -> Self {
        self.presented_token = TokenInMemory(Some(token));
        self
    }

    /// The same caller without the access token that it presented, for what outlives the request.
    #[must_use]
    pub fn without_presented_token(&self) -> Self {
        Self { presented_token: TokenInMemory::default(), ..self.clone() }
    }

    /// The access token that the caller presented; none for callers that authenticated otherwise, and none in an identity that
    /// was stored.
    pub fn presented_token(&self) -> Option<&PresentedToken> {
        self.presented_token.0.as_ref()
    }

    /// Identifies the owner of sessions, results, conversations and runs; zeros for anonymous requests.
    pub fn owner_hash(&self) -> [u8; 32] {
        *self.owner.as_bytes()
    }

    /// [`Self::owner_hash`] by reference.
    pub fn owner_hash_ref(&self) -> &[u8; 32] {
        self.owner.as_bytes()
    }

    /// Whether this is one of several callers. The local token and anonymous requests are not told apart further.
    pub fn is_distinguished(&self) -> bool {
        !self.issuer.is_empty()
    }

    /// Whether this caller may see and use what belongs to the given owner. A caller that is not told apart from others, such
    /// as the person with the local token, has access to everything.
    pub fn may_access(&self, owner: &ContentHash) -> bool {
        !self.is_distinguished() || self.owner == *owner
    }

    /// [`Self::owner_hash`] as a hash that is compared with [`Self::may_access`].
    pub fn owner(&self) -> &ContentHash {
        &self.owner
    }

    /// Whether no credential was presented.
    pub fn is_anonymous(&self) -> bool {
        self.owner_hash() == [0; 32]
    }

    /// Whether the caller may use the endpoint of this profile; the main endpoint has an empty name.
    pub fn may_use_profile(&self, profile: &str) -> bool {
        is_allowed(self.allowed_profiles.as_deref(), profile)
    }

    /// Whether the caller may use this agent.
    pub fn may_use_agent(&self, agent: &str) -> bool {
        is_allowed(self.allowed_agents.as_deref(), agent)
    }
}

fn is_allowed(allowed: Option<&[String]>, name: &str) -> bool {
    allowed.is_none_or(|allowed| allowed.iter().any(|allowed| allowed == name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn owners_differ_unless_issuer_and_subject_are_the_same(
            one in (".{1,6}", ".{0,6}"),
            other in (".{1,6}", ".{0,6}"),
        ) {
            let owner = |(issuer, subject): &(String, String)| CallerIdentity::principal(issuer, subject).owner_hash();
            prop_assert_eq!(owner(&one) == owner(&other), one == other);
            prop_assert_ne!(owner(&one), CallerIdentity::anonymous().owner_hash());
        }
    }

    #[test]
    fn only_principals_are_told_apart() {
        assert!(!CallerIdentity::anonymous().is_distinguished());
        assert!(!CallerIdentity::local_token([1; 32]).is_distinguished());
        assert!(CallerIdentity::principal(API_KEY_ISSUER, "ci").is_distinguished());
    }

    #[test]
    fn a_caller_has_access_to_its_own_and_the_local_token_to_everything() {
        let [one, other] =
            ["one", "other"].map(|subject| CallerIdentity::principal("https://issuer", subject));
        assert!(one.may_access(one.owner()) && !one.may_access(other.owner()));
        assert!(!one.may_access(CallerIdentity::anonymous().owner()), "what nobody owns is the operator's");
        assert!(CallerIdentity::local_token([1; 32]).may_access(one.owner()));
    }

    #[test]
    fn the_token_of_a_caller_is_neither_stored_nor_shown_nor_compared() {
        let identity = CallerIdentity::principal("https://issuer", "ada");
        let with_token = identity.clone().with_presented_token(PresentedToken::new("s3cret", 100));
        assert_eq!(with_token.presented_token().map(PresentedToken::expose), Some("s3cret"));
        assert_eq!(identity, with_token);
        assert!(with_token.without_presented_token().presented_token().is_none());
        let stored = serde_json::to_string(&with_token).unwrap();
        assert_eq!(stored, serde_json::to_string(&identity).unwrap());
        assert!(serde_json::from_str::<CallerIdentity>(&stored).unwrap().presented_token().is_none());
        let shown = format!("{with_token:?} {:?}", with_token.presented_token());
        assert!(!shown.contains("s3cret"), "{shown}");
    }

    #[test]
    fn profiles_and_agents_are_limited_by_name() {
        let mut identity = CallerIdentity::principal(API_KEY_ISSUER, "ci");
        assert!(identity.may_use_profile("") && identity.may_use_agent("writer"));
        identity.allowed_profiles = Some(vec!["office".to_owned()]);
        identity.allowed_agents = Some(Vec::new());
        assert!(identity.may_use_profile("office"));
        assert!(
            !identity.may_use_profile("")
                && !identity.may_use_profile("offic")
                && !identity.may_use_agent("writer")
        );
    }
}
