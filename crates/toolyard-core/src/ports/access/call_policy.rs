//! [`CallPolicy`]: decides whether a caller may call a tool with certain arguments.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{CallerIdentity, Capability, EffectiveHints, RawJson, SourceId, SourceKind};

/// The decision point that every tool call passes. A hub without one allows what its own rules do not deny.
pub trait CallPolicy: Send + Sync + fmt::Debug {
    /// Decides about one call. Must be fast: it is on the path of every call.
    fn decide(&self, request: &PolicyRequest<'_>) -> PolicyDecision;

    /// The decision that holds whatever the arguments; `None` if they can change it. Planning asks, before arguments are
    /// known; every call is decided with its arguments again.
    fn decide_without_arguments(
        &self,
        subject: &PolicySubject<'_>,
        tool: &PolicyTool,
    ) -> Option<PolicyDecision>;

    /// Whether there are arguments with which the tool may be called: otherwise it is not shown.
    fn may_be_called(&self, subject: &PolicySubject<'_>, tool: &PolicyTool) -> bool;
}

/// Who calls, through what.
#[derive(Debug, Clone, Copy, Default)]
pub struct PolicySubject<'a> {
    /// The caller; `None` for the person at this machine: the command line, stdio, the library.
    pub identity: Option<&'a Arc<CallerIdentity>>,
    /// The agent that makes the call for the caller.
    pub agent: Option<&'a str>,
    /// The profile of the endpoint; empty for the main one.
    pub profile: &'a str,
}

/// A call to decide about.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRequest<'a> {
    /// Who calls.
    pub subject: PolicySubject<'a>,
    /// What is called.
    pub tool: &'a PolicyTool,
    /// With which arguments: a JSON object.
    pub arguments: &'a RawJson,
}

/// A tool as policies see it.
#[derive(Debug)]
pub struct PolicyTool {
    id: u64,
    /// Its name without the source.
    pub name: Arc<str>,
    /// Where it comes from.
    pub source: SourceId,
    /// What kind of source that is.
    pub kind: SourceKind,
    /// Whether the operator trusts the source.
    pub trusted: bool,
    /// Its effects, as far as they are believed.
    pub hints: EffectiveHints,
    /// What it can do.
    pub capabilities: Vec<Capability>,
}

impl PolicyTool {
    /// A tool as policies see it, with an id that no other has.
    pub fn new(
        name: Arc<str>,
        source: SourceId,
        trusted: bool,
        hints: EffectiveHints,
        capabilities: Vec<Capability>,
    ) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let kind = source.kind();
        Self { id, name, source, kind, trusted, hints, capabilities }
    }

    /// Differs for all tools of this process, also for the same tool after it was registered again: what was computed for one
    /// id stays true.
    pub fn id(&self) -> u64 {
        self.id
    }
}

/// What a policy decides. `Deny` overrides `Ask`, `Ask` overrides `Allow`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyDecision {
    /// The call may be made.
    Allow(Arc<PolicyGrounds>),
    /// An agent needs an approval for it. Clients that are not agents ask their own users.
    Ask(Arc<PolicyGrounds>),
    /// The call must not be made.
    Deny(Arc<PolicyGrounds>),
}

/// Why a policy decided as it did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyGrounds {
    /// The policies and patterns that decided, in alphabetical order; empty if the default did.
    pub policies: Vec<Arc<str>>,
    /// In words that may be shown to the caller.
    pub reason: String,
    /// Whether an agent that would ask by default needs no approval. A policy that merely permits the call does not say that.
    pub waives_approval: bool,
}

impl PolicyDecision {
    /// Whether the call must not be made.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Deny(_))
    }

    /// `allow`, `ask` or `deny`.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Allow(_) => "allow",
            Self::Ask(_) => "ask",
            Self::Deny(_) => "deny",
        }
    }

    /// Why.
    pub fn grounds(&self) -> &PolicyGrounds {
        let (Self::Allow(grounds) | Self::Ask(grounds) | Self::Deny(grounds)) = self;
        grounds
    }
}
