//! Which calls may be made without asking a person: pure rules over a tool and its effective hints.

use toolyard_core::{EffectiveHints, ToolPattern};

use crate::Permission;

/// Rules on calls. What is denied is denied, whatever else is said; then asked, then allowed; then the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    /// Tools that are never called: names, patterns with `*`, either with `@SOURCE`.
    pub deny: Vec<String>,
    /// Tools that are always asked about.
    pub ask: Vec<String>,
    /// Tools that are called without asking.
    pub allow: Vec<String>,
}

impl ApprovalRules {
    /// Whether a call may be made. Without a rule, tools that only read are allowed and all others asked about.
    pub fn permission(&self, tool: &str, source: &str, hints: EffectiveHints) -> Permission {
        let fits = |patterns: &[String]| {
            patterns.iter().any(|pattern| ToolPattern::read(pattern).fits(tool, source))
        };
        if fits(&self.deny) {
            Permission::Deny
        } else if fits(&self.ask) {
            Permission::Ask
        } else if fits(&self.allow) || hints.read_only {
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
        EffectiveHints::of(declared, true, ToolHints::default())
    }

    #[test]
    fn without_rules_reading_is_allowed_and_everything_else_asked_about() {
        let none = ApprovalRules::default();
        assert_eq!(none.permission("read", "files", hints(true)), Permission::Allow);
        assert_eq!(none.permission("write", "files", hints(false)), Permission::Ask);
    }

    #[test]
    fn the_stricter_rule_counts_whatever_the_others_say() {
        let rules = rules(&["delete_*"], &["read_mail", "*@bank"], &["*"]);
        assert_eq!(rules.permission("delete_file", "files", hints(true)), Permission::Deny);
        assert_eq!(rules.permission("read_mail", "mail", hints(true)), Permission::Ask);
        assert_eq!(rules.permission("balance", "bank", hints(true)), Permission::Ask);
        assert_eq!(rules.permission("write", "files", hints(false)), Permission::Allow);
    }

    #[test]
    fn a_rule_for_a_source_is_for_that_source_only() {
        let rules = rules(&[], &[], &["write_data_to_excel@excel"]);
        assert_eq!(rules.permission("write_data_to_excel", "excel", hints(false)), Permission::Allow);
        assert_eq!(rules.permission("write_data_to_excel", "other", hints(false)), Permission::Ask);
    }

    proptest! {
        #[test]
        fn what_is_denied_stays_denied(tool in "[a-z_]{1,9}", source in "[a-z]{1,5}", ask: bool, allow: bool, read_only: bool) {
            let named = [tool.as_str()];
            let of = |wanted: bool| if wanted { &named[..] } else { &[] };
            let rules = rules(&named, of(ask), of(allow));
            prop_assert_eq!(rules.permission(&tool, &source, hints(read_only)), Permission::Deny);
        }

        #[test]
        fn nothing_that_writes_is_allowed_without_a_word(tool in "[a-z_]{1,9}", source in "[a-z]{1,5}", other in "[A-Z]{1,9}") {
            let rules = rules(&[], &[], &[&other]);
            prop_assert_eq!(rules.permission(&tool, &source, hints(false)), Permission::Ask);
        }
    }
}
