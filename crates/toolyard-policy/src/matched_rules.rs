//! Which rules apply to a call, and what follows from them.

use std::sync::Arc;

use toolyard_core::{PolicyDecision, PolicyGrounds, PolicyTool};

use crate::compile::{Rule, RuleEffect};

/// What happens to calls to which no policy and no pattern applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DefaultDecision {
    /// They are allowed; agents need an approval for tools that are not read-only.
    #[default]
    Allow,
    /// They are denied: only what a `permit` or an `allow` pattern names may be called.
    Deny,
}

/// The rules that apply to a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct MatchedRules {
    pub(crate) deny: Vec<MatchedRule>,
    ask: Vec<MatchedRule>,
    waive: Vec<MatchedRule>,
    permit: Vec<MatchedRule>,
}

/// A rule that applies, and what it says about itself.
#[derive(Debug, Clone)]
pub(crate) struct MatchedRule {
    pub(crate) id: Arc<str>,
    pub(crate) reason: Option<String>,
}

impl MatchedRules {
    pub(crate) fn add(&mut self, rule: &Rule) {
        let matched_rule = MatchedRule { id: Arc::clone(&rule.id), reason: rule.reason.clone() };
        self.add_match(rule.effect, matched_rule);
    }

    pub(crate) fn add_match(&mut self, effect: RuleEffect, matched_rule: MatchedRule) {
        match effect {
            RuleEffect::Permit => self.permit.push(matched_rule),
            RuleEffect::Waive => self.waive.push(matched_rule),
            RuleEffect::Ask => self.ask.push(matched_rule),
            RuleEffect::Deny => self.deny.push(matched_rule),
        }
    }

    /// A rule that cannot be evaluated denies the call, unless it only permits.
    pub(crate) fn add_failed(&mut self, rule: &Rule, error: &str) {
        if matches!(rule.effect, RuleEffect::Ask | RuleEffect::Deny) {
            let reason = format!("policy `{}` cannot be evaluated for this call: {error}", rule.id);
            self.deny.push(MatchedRule { id: Arc::clone(&rule.id), reason: Some(reason) });
        }
    }

    pub(crate) fn is_permitted(&self) -> bool {
        !self.permit.is_empty() || !self.waive.is_empty()
    }

    /// The strictest rule wins: deny, then ask, then allow.
    pub(crate) fn conclude(&self, tool: &PolicyTool, default: DefaultDecision) -> PolicyDecision {
        if !self.deny.is_empty() {
            return PolicyDecision::Deny(grounds(&self.deny, "denies this call").into());
        }
        if default == DefaultDecision::Deny && !self.is_permitted() {
            return PolicyDecision::Deny(default_grounds("no policy permits this call").into());
        }
        if !self.ask.is_empty() {
            return PolicyDecision::Ask(grounds(&self.ask, "requires an approval").into());
        }
        if !self.waive.is_empty() {
            let waived = PolicyGrounds { waives_approval: true, ..grounds(&self.waive, "allows this call") };
            return PolicyDecision::Allow(waived.into());
        }
        if !tool.hints.read_only {
            return PolicyDecision::Ask(default_grounds("the tool is not known to be read-only").into());
        }
        let grounds = match self.permit.as_slice() {
            [] => default_grounds("the tool is read-only"),
            permit => grounds(permit, "permits this call"),
        };
        PolicyDecision::Allow(grounds.into())
    }
}

fn grounds(all: &[MatchedRule], verb: &str) -> PolicyGrounds {
    let mut policies: Vec<Arc<str>> = all.iter().map(|matched_rule| Arc::clone(&matched_rule.id)).collect();
    policies.sort_unstable();
    policies.dedup();
    let reason = all.iter().find_map(|matched_rule| matched_rule.reason.clone()).unwrap_or_else(|| {
        let first = policies.first().map(AsRef::as_ref).unwrap_or_default();
        format!("policy `{first}` {verb}")
    });
    PolicyGrounds { policies, reason, waives_approval: false }
}

fn default_grounds(reason: &str) -> PolicyGrounds {
    PolicyGrounds { reason: reason.to_owned(), ..PolicyGrounds::default() }
}
