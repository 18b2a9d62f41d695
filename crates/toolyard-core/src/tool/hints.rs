//! Declared effects of tools, and the effects that the hub assumes after trust and the operator's hints are applied.

use serde::{Deserialize, Serialize};

/// Declared effects of a tool. A tool without hints is assumed to write.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolHints {
    /// The tool changes nothing.
    #[serde(default, rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The tool may destroy something.
    #[serde(default, rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Repeating a call with the same arguments has no additional effect.
    #[serde(default, rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The tool interacts with an open world, such as the web.
    #[serde(default, rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolHints {
    /// The hints of a tool that changes nothing.
    pub const READ_ONLY: Self =
        Self { read_only: Some(true), destructive: None, idempotent: None, open_world: None };

    /// The hints of a tool whose calls can be repeated safely.
    pub const IDEMPOTENT: Self =
        Self { read_only: None, destructive: None, idempotent: Some(true), open_world: None };

    /// Whether nothing was declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These hints, overridden by those that the operator set.
    fn overridden_by(self, operator: Self) -> Self {
        Self {
            read_only: operator.read_only.or(self.read_only),
            destructive: operator.destructive.or(self.destructive),
            idempotent: operator.idempotent.or(self.idempotent),
            open_world: operator.open_world.or(self.open_world),
        }
    }
}

/// The effects that the hub acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EffectiveHints {
    /// The tool changes nothing.
    pub read_only: bool,
    /// Calls can be repeated safely.
    pub idempotent: bool,
    /// The tool may destroy something.
    pub destructive: bool,
    /// Whether the tool passes its arguments to systems outside, such as a search engine; `None` if nothing believable was
    /// declared.
    pub open_world: Option<bool>,
    /// Whether somebody who is believed declared what the tool may change; otherwise it is assumed to write.
    pub declared: bool,
}

impl EffectiveHints {
    /// Hints of an untrusted source can raise the risk but never lower it. The operator's hints count either way.
    pub fn of(declared: ToolHints, trusted: bool, operator: ToolHints) -> Self {
        let believed = if trusted { declared } else { keep_risk_raising(declared) };
        let hints = believed.overridden_by(operator);
        let destructive = hints.destructive == Some(true);
        let read_only = hints.read_only == Some(true) && !destructive;
        let idempotent = read_only || hints.idempotent == Some(true);
        let declared = hints.read_only.is_some() || destructive || idempotent;
        Self { read_only, idempotent, destructive, open_world: hints.open_world, declared }
    }

    /// Whether a call can be raced, retried or merged with others.
    pub fn repeatable(self) -> bool {
        self.read_only || self.idempotent
    }

    /// The effect in one word for display; `unverified` if nobody who is believed declared it.
    pub fn label(self) -> &'static str {
        if self.declared { self.effect() } else { "unverified" }
    }

    /// The effect that is assumed, in one word for programs. A tool whose effect is not declared is assumed to write.
    pub fn effect(self) -> &'static str {
        match self {
            Self { read_only: true, .. } => "read-only",
            Self { destructive: true, .. } => "destructive",
            Self { idempotent: true, .. } => "idempotent",
            Self { .. } => "writes",
        }
    }

    /// The effect for display within a sentence, and whether the tool is declared to pass its arguments outside.
    pub fn description(self) -> String {
        let open_world = if self.open_world == Some(true) { ", open world" } else { "" };
        let effect = if self.declared { self.effect() } else { "unverified effects" };
        format!("{effect}{open_world}")
    }
}

fn keep_risk_raising(declared: ToolHints) -> ToolHints {
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

    const TRUSTED: bool = true;
    const UNTRUSTED: bool = false;

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
    fn effects_that_nobody_vouched_for_are_assumed_to_write_and_shown_as_unverified() {
        for (declared, trusted) in [(ToolHints::default(), TRUSTED), (ToolHints::READ_ONLY, UNTRUSTED)] {
            let effective = EffectiveHints::of(declared, trusted, ToolHints::default());
            assert!(!effective.repeatable());
            assert_eq!((effective.effect(), effective.label()), ("writes", "unverified"));
            assert_eq!(effective.description(), "unverified effects");
        }
        let writes = ToolHints { read_only: Some(false), ..ToolHints::default() };
        assert_eq!(EffectiveHints::of(writes, UNTRUSTED, ToolHints::default()).label(), "writes");
        let vouched = EffectiveHints::of(ToolHints::default(), UNTRUSTED, ToolHints::READ_ONLY);
        assert_eq!((vouched.label(), vouched.declared), ("read-only", true));
    }

    #[test]
    fn a_tool_that_claims_both_read_only_and_destructive_is_not_repeatable() {
        let both = ToolHints { destructive: Some(true), ..ToolHints::READ_ONLY };
        assert!(!EffectiveHints::of(both, TRUSTED, ToolHints::default()).repeatable());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn an_untrusted_source_can_never_lower_its_risk(declared in any_hints()) {
            let effective = EffectiveHints::of(declared, UNTRUSTED, ToolHints::default());
            prop_assert!(!effective.repeatable());
            prop_assert_eq!(effective.destructive, declared.destructive == Some(true));
            // Of what an untrusted source says, only risks count as declared.
            prop_assert_eq!(effective.declared, effective.destructive || declared.read_only == Some(false));
            prop_assert_eq!(effective.open_world, declared.open_world.filter(|claim| *claim));
        }

        #[test]
        fn hints_of_the_operator_win(declared in any_hints(), trusted: bool, read_only: bool) {
            let operator = ToolHints { read_only: Some(read_only), destructive: Some(false), ..ToolHints::default() };
            prop_assert_eq!(EffectiveHints::of(declared, trusted, operator).read_only, read_only);
        }

        #[test]
        fn open_world_survives_for_trusted_sources(declared in any_hints(), open_world in proptest::option::of(any::<bool>())) {
            let operator = ToolHints { open_world, ..ToolHints::default() };
            let effective = EffectiveHints::of(declared, TRUSTED, operator);
            prop_assert_eq!(effective.open_world, open_world.or(declared.open_world));
        }
    }
}
