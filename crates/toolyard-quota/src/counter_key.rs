//! [`CounterKey`]: whose use is counted together, for lookup without allocation.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use hashbrown::Equivalent;
use toolyard_core::{CallerIdentity, ContentHash, QuotaSubject, QuotaTool};

use crate::rule::{CountedPer, caller_name};

/// The owner hash of callers that are not told apart.
const LOCAL_OWNER: [u8; 32] = [0; 32];
/// Longer names are truncated for people; keys have them as hashes.
const MAX_NAME_CHARS: usize = 80;

/// Whose use is counted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CounterKey {
    owner: Option<[u8; 32]>,
    agent: Option<Arc<str>>,
    /// The name and the source.
    tool: Option<(Arc<str>, Arc<str>)>,
}

/// The same, borrowed from a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CounterKeyRef<'a> {
    owner: Option<[u8; 32]>,
    agent: Option<&'a str>,
    tool: Option<(&'a str, &'a str)>,
}

impl<'a> CounterKeyRef<'a> {
    pub(crate) fn new(per: CountedPer, subject: &QuotaSubject<'a>, tool: Option<QuotaTool<'a>>) -> Self {
        let owner = subject.identity.filter(|identity| identity.is_distinguished());
        let owner = owner.map_or(LOCAL_OWNER, CallerIdentity::owner_hash);
        Self {
            owner: per.caller.then_some(owner),
            agent: subject.agent.filter(|_| per.agent),
            tool: tool.filter(|_| per.tool).map(|tool| (tool.name, tool.source.as_str())),
        }
    }

    pub(crate) fn to_key(self) -> CounterKey {
        CounterKey {
            owner: self.owner,
            agent: self.agent.map(Arc::from),
            tool: self.tool.map(|(name, source)| (name.into(), source.into())),
        }
    }

    /// Identifies a meter of a quota among those of all quotas, in every process.
    pub(crate) fn hash_for(self, quota: &str, meter: &str, window_millis: u64) -> ContentHash {
        let agent = self.agent.map(|agent| ["agent", agent]).unwrap_or_default();
        let tool = self.tool.map(|(name, source)| ["tool", name, source]).unwrap_or_default();
        let window = window_millis.to_le_bytes();
        let texts = [quota, meter].into_iter().chain(agent).chain(tool).map(str::as_bytes);
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

impl CounterKey {
    fn borrowed(&self) -> CounterKeyRef<'_> {
        CounterKeyRef {
            owner: self.owner,
            agent: self.agent.as_deref(),
            tool: self.tool.as_ref().map(|(name, source)| (&**name, &**source)),
        }
    }
}

impl Hash for CounterKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.borrowed().hash(state);
    }
}

impl Equivalent<CounterKey> for CounterKeyRef<'_> {
    fn equivalent(&self, key: &CounterKey) -> bool {
        *self == key.borrowed()
    }
}
