//! What a tool says about its effects, and how much of that is believed.

use serde::{Deserialize, Serialize};

/// What a tool declares about itself. A missing hint says nothing, which is read as "it writes".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolHints {
    /// It changes nothing.
    #[serde(default, rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// It may destroy something.
    #[serde(default, rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Calling it twice with the same arguments is the same as calling it once.
    #[serde(default, rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// It reaches beyond a closed world, such as the web.
    #[serde(default, rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolHints {
    /// The hints of a tool that changes nothing.
    pub const READ_ONLY: Self =
        Self { read_only: Some(true), destructive: None, idempotent: None, open_world: None };

    /// The hints of a tool that may be repeated without harm.
    pub const IDEMPOTENT: Self =
        Self { read_only: None, destructive: None, idempotent: Some(true), open_world: None };

    /// Whether nothing at all was declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The operator's words laid over these: what the operator did not mention stays.
    #[must_use]
    pub fn overlaid_with(self, operator: Self) -> Self {
        Self {
            read_only: operator.read_only.or(self.read_only),
            destructive: operator.destructive.or(self.destructive),
            idempotent: operator.idempotent.or(self.idempotent),
            open_world: operator.open_world.or(self.open_world),
        }
    }
}

/// What the hub acts on: declared hints after the question of trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EffectiveHints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may be repeated without harm.
    pub idempotent: bool,
    /// It may destroy something.
    pub destructive: bool,
}

impl EffectiveHints {
    /// Hints of an untrusted source may raise the risk and never lower it; the operator's word counts either way.
    pub fn of(declared: ToolHints, trusted: bool, operator: ToolHints) -> Self {
        let believed = if trusted { declared } else { only_what_raises_risk(declared) };
        let hints = believed.overlaid_with(operator);
        let destructive = hints.destructive == Some(true);
        let read_only = hints.read_only == Some(true) && !destructive;
        Self { read_only, idempotent: read_only || hints.idempotent == Some(true), destructive }
    }

    /// Whether a call may be raced, retried, hedged or merged with others.
    pub fn repeatable(self) -> bool {
        self.read_only || self.idempotent
    }

    /// One word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self { read_only: true, .. } => "read-only",
            Self { destructive: true, .. } => "destructive",
            Self { idempotent: true, .. } => "idempotent",
            Self { .. } => "writes",
        }
    }
}

fn only_what_raises_risk(declared: ToolHints) -> ToolHints {
    ToolHints {
        read_only: declared.read_only.filter(|claim| !claim),
        destructive: declared.destructive.filter(|claim| *claim),
        idempotent: declared.idempotent.filter(|claim| !claim),
        open_world: declared.open_world.filter(|claim| *claim),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_hints() -> impl Strategy<Value = ToolHints> {
        let hint = proptest::option::of(any::<bool>());
        (hint.clone(), hint.clone(), hint.clone(), hint).prop_map(
            |(read_only, destructive, idempotent, open_world)| ToolHints {
                read_only,
                destructive,
                idempotent,
                open_world,
            },
        )
    }

    #[test]
    fn missing_hints_mean_writes() {
        let effective = EffectiveHints::of(ToolHints::default(), true, ToolHints::default());
        assert!(!effective.repeatable());
        assert_eq!(effective.word(), "writes");
    }

    #[test]
    fn a_tool_that_claims_both_read_only_and_destructive_is_not_repeatable() {
        let both = ToolHints { destructive: Some(true), ..ToolHints::READ_ONLY };
        assert!(!EffectiveHints::of(both, true, ToolHints::default()).repeatable());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn an_untrusted_source_can_never_lower_its_risk(declared in any_hints()) {
            let effective = EffectiveHints::of(declared, false, ToolHints::default());
            prop_assert!(!effective.repeatable());
            prop_assert_eq!(effective.destructive, declared.destructive == Some(true));
        }

        #[test]
        fn the_operator_has_the_last_word(declared in any_hints(), trusted: bool, read_only: bool) {
            let operator = ToolHints { read_only: Some(read_only), destructive: Some(false), ..ToolHints::default() };
            prop_assert_eq!(EffectiveHints::of(declared, trusted, operator).read_only, read_only);
        }
    }
}
