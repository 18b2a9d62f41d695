//! [`CounterKey`]: whose use is counted together.

use toolyard_core::{CallerIdentity, ContentHash, QuotaLimit, QuotaSubject, QuotaTool};

use crate::rule::{CountedPer, caller_name};

/// The owner hash of callers that are not told apart.
const LOCAL_OWNER: [u8; 32] = [0; 32];
/// Longer names are truncated for people; keys have them as hashes.
const MAX_NAME_CHARS: usize = 80;

/// Whose use is counted together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CounterKey<'a> {
    owner: Option<[u8; 32]>,
    agent: Option<&'a str>,
    /// The name and the source.
    tool: Option<(&'a str, &'a str)>,
}

impl<'a> CounterKey<'a> {
    pub(crate) fn new(per: CountedPer, subject: &QuotaSubject<'a>, tool: Option<QuotaTool<'a>>) -> Self {
        let owner = subject.identity.filter(|identity| identity.is_distinguished());
        let owner = owner.map_or(LOCAL_OWNER, CallerIdentity::owner_hash);
        Self {
            owner: per.caller.then_some(owner),
            agent: subject.agent.filter(|_| per.agent),
            tool: tool.filter(|_| per.tool).map(|tool| (tool.name, tool.source.as_str())),
        }
    }

    /// Identifies a limit of a quota among those of all quotas, in every process. What a limit allows is not part of it, so that a
    /// changed limit goes on counting.
    pub(crate) fn hash_for(self, quota: &str, limit: QuotaLimit) -> ContentHash {
        let agent = self.agent.map(|agent| ["agent", agent]).unwrap_or_default();
        let tool = self.tool.map(|(name, source)| ["tool", name, source]).unwrap_or_default();
        let window = limit.per_window().map_or(0, |limit| limit.window_millis).to_le_bytes();
        let texts = [quota, limit.meter()].into_iter().chain(agent).chain(tool).map(str::as_bytes);
        let owner = self.owner.as_ref().map(<[u8; 32]>::as_slice).unwrap_or_default();
        ContentHash::of_parts(texts.chain([window.as_slice(), owner]))
    }

    /// For people, such as `caller alice, tool search@web`.
    pub(crate) fn describe(self, subject: &QuotaSubject<'_>) -> String {
        let short = |name: &str| name.chars().take(MAX_NAME_CHARS).collect::<String>();
        let parts = [
            self.owner.map(|_| format!("caller {}", short(caller_name(subject.identity)))),
            self.agent.map(|agent| format!("agent {}", short(agent))),
            self.tool.map(|(name, source)| format!("tool {}@{}", short(name), short(source))),
        ];
        match parts.into_iter().flatten().collect::<Vec<_>>().as_slice() {
            [] => "all".to_owned(),
            parts => parts.join(", "),
        }
    }
}
