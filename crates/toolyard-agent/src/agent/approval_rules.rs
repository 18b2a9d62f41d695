//! [`ApprovalRules`]: which tool calls need an approval.

use toolyard_core::{EffectiveHints, SourceId, SourceKind, ToolPattern};

use super::open_world::{Destination, OpenWorldRule};
use crate::Permission;

/// Native tools whose results contain nothing but what their arguments contain.
const PURE_NATIVE_TOOLS: [&str; 2] = ["calculate", "get_time"];

/// Rules on tool calls, by precedence: `deny`, `ask`, `allow`. Entries are names or patterns with `*`, optionally
/// followed by `@SOURCE`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    /// Tools that are never called.
    pub deny: Vec<String>,
    /// Tools that always need an approval.
    pub ask: Vec<String>,
    /// Tools that need no approval.
    pub allow: Vec<String>,
    /// Whether calls that may pass non-public data outside need an approval, unless `allow` matches.
    pub open_world: OpenWorldRule,
    /// Tools whose results are public, besides native open-world tools such as `search_web`.
    pub public: Vec<String>,
}

impl ApprovalRules {
    /// The permission for a call. Without a matching rule, read-only tools are allowed and all others need approval.
    pub fn permission(&self, tool: &str, source: &str, hints: EffectiveHints) -> Permission {
        if matches(&self.deny, tool, source) {
            Permission::Deny
        } else if matches(&self.ask, tool, source) {
            Permission::Ask
        } else if matches(&self.allow, tool, source) || hints.read_only {
            Permission::Allow
        } else {
            Permission::Ask
        }
    }

    /// Whether `ask` names the tool.
    pub(crate) fn always_asks(&self, tool: &str, source: &str) -> bool {
        matches(&self.ask, tool, source)
    }

    /// The source, if calls of its tool may pass arguments outside and no rule allows that. A server or skill that declares
    /// nothing is assumed to; native functions are not.
    pub(crate) fn destination(
        &self,
        tool: &str,
        source: &SourceId,
        kind: SourceKind,
        hints: EffectiveHints,
    ) -> Option<Destination> {
        let is_allowed =
            self.open_world == OpenWorldRule::Allow || matches(&self.allow, tool, source.as_str());
        (may_send_outside(kind, hints) && !is_allowed)
            .then(|| Destination { source: source.clone(), is_declared: hints.open_world.is_some() })
    }

    /// Whether results and errors of a tool may contain non-public data that is not in its arguments.
    pub(crate) fn reads_private(
        &self,
        tool: &str,
        source: &str,
        kind: SourceKind,
        hints: EffectiveHints,
    ) -> bool {
        let is_web = hints.read_only && hints.open_world == Some(true);
        let is_public_native = kind == SourceKind::Native && (is_web || PURE_NATIVE_TOOLS.contains(&tool));
        !is_public_native && !matches(&self.public, tool, source)
    }
}

/// Whether a tool may pass its arguments to systems outside.
pub(crate) fn may_send_outside(kind: SourceKind, hints: EffectiveHints) -> bool {
    hints.open_world.unwrap_or(kind != SourceKind::Native)
}

fn matches(patterns: &[String], tool: &str, source: &str) -> bool {
    patterns.iter().any(|pattern| ToolPattern::parse(pattern).matches(tool, source))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolyard_core::ToolHints;

    use super::*;

    fn rules(deny: &[&str], ask: &[&str], allow: &[&str]) -> ApprovalRules {
        let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        ApprovalRules { deny: owned(deny), ask: owned(ask), allow: owned(allow), ..ApprovalRules::default() }
    }

    fn hints(read_only: bool) -> EffectiveHints {
        let declared = ToolHints { read_only: Some(read_only), ..ToolHints::default() };
        let trusted = true;
        EffectiveHints::of(declared, trusted, ToolHints::default())
    }

    #[test]
    fn without_rules_only_read_only_tools_need_no_approval() {
        let none = ApprovalRules::default();
        assert_eq!(none.permission("read", "files", hints(true)), Permission::Allow);
        assert_eq!(none.permission("write", "files", hints(false)), Permission::Ask);
    }

    #[test]
    fn the_strictest_matching_rule_wins() {
        let rules = rules(&["delete_*"], &["read_mail", "*@bank"], &["*"]);
        assert_eq!(rules.permission("delete_file", "files", hints(true)), Permission::Deny);
        assert_eq!(rules.permission("read_mail", "mail", hints(true)), Permission::Ask);
        assert_eq!(rules.permission("balance", "bank", hints(true)), Permission::Ask);
        assert_eq!(rules.permission("write", "files", hints(false)), Permission::Allow);
    }

    #[test]
    fn a_rule_with_a_source_applies_to_that_source_only() {
        let rules = rules(&[], &[], &["write_data_to_excel@excel"]);
        assert_eq!(rules.permission("write_data_to_excel", "excel", hints(false)), Permission::Allow);
        assert_eq!(rules.permission("write_data_to_excel", "other", hints(false)), Permission::Ask);
    }

    #[test]
    fn a_name_with_an_at_sign_does_not_borrow_the_rule_of_another_source() {
        let rules = rules(&[], &[], &["*@excel"]);
        assert_eq!(rules.permission("upload", "excel", hints(false)), Permission::Allow);
        assert_eq!(rules.permission("upload@excel", "evil", hints(false)), Permission::Ask);
    }

    #[test]
    fn the_destinations_of_data_follow_hints_and_rules() {
        let hints = |open_world| EffectiveHints { open_world, ..hints(true) };
        let (mcp, native) = (SourceKind::Mcp, SourceKind::Native);
        let declared = |rules: &ApprovalRules, kind, open_world| {
            rules.destination("find", &"s".into(), kind, hints(open_world)).map(|found| found.is_declared)
        };
        let none = ApprovalRules::default();
        assert_eq!(declared(&none, mcp, Some(true)), Some(true));
        assert_eq!(declared(&none, mcp, None), Some(false), "the specification's default is open world");
        assert_eq!(declared(&none, mcp, Some(false)), None);
        assert_eq!(declared(&none, native, None), None);
        assert_eq!(declared(&none, native, Some(true)), Some(true));
        assert_eq!(declared(&rules(&[], &[], &["find@s"]), mcp, Some(true)), None);
        let off = ApprovalRules { open_world: OpenWorldRule::Allow, ..ApprovalRules::default() };
        assert_eq!(declared(&off, mcp, Some(true)), None);
    }

    #[test]
    fn only_the_web_pure_functions_and_listed_tools_are_public() {
        let (mcp, native) = (SourceKind::Mcp, SourceKind::Native);
        let web = EffectiveHints { open_world: Some(true), ..hints(true) };
        let none = ApprovalRules::default();
        assert!(!none.reads_private("search_web", "native", native, web));
        assert!(!none.reads_private("calculate", "native", native, hints(true)));
        assert!(none.reads_private("read_result", "native", native, hints(true)));
        assert!(none.reads_private("search_mail", "mail", mcp, web), "mail is open-world and private");
        assert!(none.reads_private("calculate", "other", mcp, hints(true)));
        let listed = ApprovalRules { public: vec!["*@wikipedia".to_owned()], ..ApprovalRules::default() };
        assert!(!listed.reads_private("article", "wikipedia", mcp, web));
        assert!(listed.reads_private("article", "mail", mcp, web));
    }

    proptest! {
        #[test]
        fn deny_overrides_ask_and_allow(tool in "[a-z_]{1,9}", source in "[a-z]{1,5}", ask: bool, allow: bool, read_only: bool) {
            let tool_rule = [tool.as_str()];
            let rule_if = |is_set: bool| if is_set { &tool_rule[..] } else { &[] };
            let rules = rules(&tool_rule, rule_if(ask), rule_if(allow));
            prop_assert_eq!(rules.permission(&tool, &source, hints(read_only)), Permission::Deny);
        }

        #[test]
        fn writing_tools_need_approval_unless_a_rule_matches(tool in "[a-z_]{1,9}", source in "[a-z]{1,5}", other in "[A-Z]{1,9}") {
            let rules = rules(&[], &[], &[&other]);
            prop_assert_eq!(rules.permission(&tool, &source, hints(false)), Permission::Ask);
        }
    }
}
