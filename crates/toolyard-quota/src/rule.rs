//! [`QuotaRule`]: whom a quota is for, whose use it counts together, and its limits.

use std::sync::Arc;

use toolyard_core::{
    CallerIdentity, QuotaLimit, QuotaSubject, QuotaTool, ToolPattern, WindowLimit, matches_wildcards,
};

/// The name of callers that are not told apart: the command line, stdio, the gateway's own token.
pub const LOCAL_CALLER: &str = "local";

/// The shortest and the longest window, in milliseconds.
const WINDOW_MILLIS: std::ops::RangeInclusive<u64> = 1_000..=31 * 24 * 3_600_000;

/// A quota as the operator wrote it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuotaRule {
    /// Its name in errors, metrics and lists.
    pub name: Arc<str>,
    /// Patterns of the names of callers that it is for. With neither callers nor groups it is for all.
    pub callers: Vec<String>,
    /// Patterns of groups whose callers it is for.
    pub groups: Vec<String>,
    /// Patterns of agents that it is for; empty for calls with and without an agent.
    pub agents: Vec<String>,
    /// Patterns of tools that it is for; empty for all.
    pub tools: Vec<String>,
    /// What has a counter of its own.
    pub per: CountedPer,
    /// Tool calls per window.
    pub calls: Option<WindowLimit>,
    /// Tool calls at the same time.
    pub concurrent_calls: Option<u64>,
    /// Tokens of language models per window.
    pub tokens: Option<WindowLimit>,
    /// Millionths of the operator's currency per window.
    pub money: Option<WindowLimit>,
}

/// What has a counter of its own; with nothing, all share one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountedPer {
    /// Each caller.
    pub caller: bool,
    /// Each agent.
    pub agent: bool,
    /// Each tool of each source.
    pub tool: bool,
}

/// Why a quota cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidQuota {
    /// A table of `[[quotas]]` has no `name`.
    ///
    /// Remedy: add `name = "…"`.
    #[error("a quota needs a `name`")]
    NoName,
    /// Two tables of `[[quotas]]` have the same `name`.
    ///
    /// Remedy: rename one of them.
    #[error("quota `{0}` is defined twice")]
    DuplicateName(Arc<str>),
    /// A table of `[[quotas]]` limits nothing.
    ///
    /// Remedy: set one of the four limits, such as `calls = { limit = 100, window = "1m" }`.
    #[error("quota `{0}` has no limit: set `calls`, `concurrent_calls`, `tokens` or `money`")]
    NoLimit(Arc<str>),
    /// Models are not called for a tool, so a quota of a tool cannot count tokens or money.
    ///
    /// Remedy: remove `tools` and `per = ["tool"]`, or limit `calls` instead.
    #[error(
        "quota `{0}`: `tokens` and `money` are used by agents, not by tools; remove `tools` and `per = [\"tool\"]`"
    )]
    ModelUseOfTool(Arc<str>),
    /// The limit of money is negative or not a number.
    ///
    /// Remedy: write for example `money = { limit = 5.0, window = "24h" }`.
    #[error("quota `{0}`: the limit of `money` must not be negative")]
    MoneyLimit(Arc<str>),
    /// The window of a quota is too short or too long.
    ///
    /// Remedy: set `window` to a duration from `1s` to `744h`.
    #[error("quota `{0}`: a window lasts from 1 s to 31 days")]
    WindowLength(Arc<str>),
}

impl QuotaRule {
    /// Checks all quotas of a configuration.
    pub fn check_all(rules: &[Self]) -> Result<(), InvalidQuota> {
        for (index, rule) in rules.iter().enumerate() {
            rule.check()?;
            if rules.iter().take(index).any(|other| other.name == rule.name) {
                return Err(InvalidQuota::DuplicateName(Arc::clone(&rule.name)));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), InvalidQuota> {
        let name = || Arc::clone(&self.name);
        let windows = [self.calls, self.tokens, self.money];
        if self.name.is_empty() {
            Err(InvalidQuota::NoName)
        } else if windows.iter().all(Option::is_none) && self.concurrent_calls.is_none() {
            Err(InvalidQuota::NoLimit(name()))
        } else if self.model_limits().next().is_some() && (self.per.tool || !self.tools.is_empty()) {
            Err(InvalidQuota::ModelUseOfTool(name()))
        } else if windows.iter().flatten().any(|limit| !WINDOW_MILLIS.contains(&limit.window_millis)) {
            Err(InvalidQuota::WindowLength(name()))
        } else {
            Ok(())
        }
    }

    /// The limits of tool calls.
    pub(crate) fn call_limits(&self) -> impl Iterator<Item = QuotaLimit> {
        [self.concurrent_calls.map(QuotaLimit::ConcurrentCalls), self.calls.map(QuotaLimit::Calls)]
            .into_iter()
            .flatten()
    }

    /// The limits of language models.
    pub(crate) fn model_limits(&self) -> impl Iterator<Item = QuotaLimit> {
        [self.tokens.map(QuotaLimit::Tokens), self.money.map(QuotaLimit::Money)].into_iter().flatten()
    }

    /// Whether the quota is for this caller and agent. A quota that counts each agent is for agents only.
    pub(crate) fn is_for(&self, subject: &QuotaSubject<'_>) -> bool {
        self.is_for_caller(subject.identity) && self.is_for_agent(subject.agent)
    }

    fn is_for_caller(&self, identity: Option<&CallerIdentity>) -> bool {
        if self.callers.is_empty() && self.groups.is_empty() {
            return true;
        }
        let groups = identity.map(|identity| identity.groups.as_slice()).unwrap_or_default();
        matches_any(&self.callers, caller_name(identity))
            || groups.iter().any(|group| matches_any(&self.groups, group))
    }

    fn is_for_agent(&self, agent: Option<&str>) -> bool {
        match agent {
            Some(agent) => self.agents.is_empty() || matches_any(&self.agents, agent),
            None => self.agents.is_empty() && !self.per.agent,
        }
    }

    pub(crate) fn is_for_tool(&self, tool: QuotaTool<'_>) -> bool {
        let matches = |pattern: &String| ToolPattern::parse(pattern).matches(tool.name, tool.source.as_str());
        self.tools.is_empty() || self.tools.iter().any(matches)
    }
}

/// The name of a caller, or that of those who are not told apart.
pub(crate) fn caller_name(identity: Option<&CallerIdentity>) -> &str {
    match identity.filter(|identity| identity.is_distinguished()) {
        Some(identity) => &identity.name,
        None => LOCAL_CALLER,
    }
}

fn matches_any(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| matches_wildcards(pattern, text))
}

#[cfg(test)]
mod tests {
    use toolyard_core::API_KEY_ISSUER;

    use super::*;

    fn named(name: &str) -> QuotaRule {
        QuotaRule { name: name.into(), concurrent_calls: Some(1), ..QuotaRule::default() }
    }

    #[test]
    fn a_quota_is_for_the_callers_groups_and_agents_it_names() {
        let mut alice = CallerIdentity::principal(API_KEY_ISSUER, "alice");
        alice.groups = vec!["ops".to_owned()];
        let is_for = |rule: &QuotaRule, identity, agent| rule.is_for(&QuotaSubject { identity, agent });
        assert!(is_for(&named("all"), Some(&alice), None) && is_for(&named("all"), None, Some("writer")));
        let by_name = QuotaRule { callers: vec!["al*".to_owned()], ..named("a") };
        assert!(is_for(&by_name, Some(&alice), None) && !is_for(&by_name, None, None));
        let by_group = QuotaRule { groups: vec!["ops".to_owned()], ..named("g") };
        assert!(is_for(&by_group, Some(&alice), None) && !is_for(&by_group, None, None));
        let local = QuotaRule { callers: vec![LOCAL_CALLER.to_owned()], ..named("l") };
        let token = CallerIdentity::local_token([1; 32]);
        assert!(is_for(&local, None, None) && is_for(&local, Some(&token), None));
        assert!(!is_for(&local, Some(&alice), None));
        let agents = QuotaRule { agents: vec!["*".to_owned()], ..named("agents") };
        assert!(is_for(&agents, None, Some("writer")) && !is_for(&agents, None, None));
        let each_agent = QuotaRule { per: CountedPer { agent: true, ..CountedPer::default() }, ..named("e") };
        assert!(is_for(&each_agent, None, Some("writer")) && !is_for(&each_agent, None, None));
    }

    #[test]
    fn quotas_that_cannot_work_are_rejected() {
        let limit = WindowLimit { limit: 1, window_millis: 60_000 };
        let check = |rules: &[QuotaRule]| QuotaRule::check_all(rules).map_err(|error| error.to_string());
        assert_eq!(check(&[named("a"), named("b")]), Ok(()));
        for (rules, part) in [
            (vec![named("")], "needs a `name`"),
            (vec![named("a"), named("a")], "defined twice"),
            (vec![QuotaRule { concurrent_calls: None, ..named("a") }], "has no limit"),
            (
                vec![QuotaRule { tokens: Some(limit), tools: vec!["*".to_owned()], ..named("a") }],
                "not by tools",
            ),
            (
                vec![QuotaRule { calls: Some(WindowLimit { window_millis: 10, ..limit }), ..named("a") }],
                "1 s",
            ),
        ] {
            assert!(check(&rules).unwrap_err().contains(part), "{part}");
        }
    }
}
