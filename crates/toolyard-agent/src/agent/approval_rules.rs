//! [`ApprovalRules`]: which tool calls need an approval.

use toolyard_core::{EffectiveHints, ToolPattern};

use crate::Permission;

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
}

impl ApprovalRules {
    /// The permission for a call. Without a matching rule, read-only tools are allowed and all others need approval.
    pub fn permission(&self, tool: &str, source: &str, hints: EffectiveHints) -> Permission {
        let matches = |patterns: &[String]| {
            patterns.iter().any(|pattern| ToolPattern::parse(pattern).matches(tool, source))
        };
        if matches(&self.deny) {
            Permission::Deny
        } else if matches(&self.ask) {
            Permission::Ask
        } else if matches(&self.allow) || hints.read_only {
            Permission::Allow
        } else {
            Permission::Ask
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use toolyard_core::ToolHints;

    use super::*;

    fn rules(deny: &[&str], ask: &[&str], allow: &[&str]) -> ApprovalRules {
        let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        ApprovalRules { deny: owned(deny), ask: owned(ask), allow: owned(allow) }
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
