//! Test cases for policies: a call and the expected decision.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use toolyard_core::{
    CallerIdentity, EffectiveHints, PolicyDecision, PolicyRequest, PolicySubject, PolicyTool, RawJson,
    ToolHints,
};

use crate::{ANONYMOUS_CALLER, LOCAL_CALLER, Policy};

/// A file with test cases.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyCases {
    /// Policy files, relative to this file, in place of those of the settings.
    #[serde(default)]
    pub policies: Vec<std::path::PathBuf>,
    /// The cases.
    #[serde(rename = "case")]
    pub cases: Vec<PolicyCase>,
}

/// A call and the expected decision.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyCase {
    /// What the case shows.
    pub name: String,
    /// The expected decision.
    pub expect: ExpectedDecision,
    /// A policy that must be among those that decide.
    #[serde(default)]
    pub policy: Option<String>,
    /// Who calls; the person at this machine by default.
    #[serde(default)]
    pub caller: CaseCaller,
    /// The agent that makes the call.
    #[serde(default)]
    pub agent: Option<String>,
    /// The profile of the endpoint; empty for the main one.
    #[serde(default)]
    pub profile: String,
    /// The tool.
    pub tool: CaseTool,
    /// The arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// A decision without its grounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExpectedDecision {
    /// May be called.
    Allow,
    /// Needs an approval.
    Ask,
    /// Must not be called.
    Deny,
}

/// A caller.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CaseCaller {
    /// `local` (the default), `anonymous`, or `ISSUER#SUBJECT`.
    pub id: String,
    /// The name, if it is not the subject.
    pub name: Option<String>,
    /// Groups and roles.
    pub groups: Vec<String>,
    /// OAuth scopes.
    pub scopes: Vec<String>,
    /// Claims of the token.
    pub claims: Map<String, Value>,
}

/// The id of a caller in a test case or option has no known form.
///
/// Remedy: write `local`, `anonymous` or `ISSUER#SUBJECT`, such as `toolyard:api-key#ci`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no caller: write local, anonymous or ISSUER#SUBJECT, such as toolyard:api-key#ci")]
pub struct UnknownCaller(pub String);

impl CaseCaller {
    /// The identity; `None` for the person at this machine.
    pub fn identity(&self) -> Result<Option<Arc<CallerIdentity>>, UnknownCaller> {
        let mut identity = match self.id.as_str() {
            "" | LOCAL_CALLER => return Ok(None),
            ANONYMOUS_CALLER => return Ok(Some(Arc::new(CallerIdentity::anonymous()))),
            id => match id.split_once('#') {
                Some((issuer, subject)) if !issuer.is_empty() && !subject.is_empty() => {
                    CallerIdentity::principal(issuer, subject)
                }
                _ => return Err(UnknownCaller(id.to_owned())),
            },
        };
        if let Some(name) = &self.name {
            identity.name = name.as_str().into();
        }
        identity.groups.clone_from(&self.groups);
        identity.scopes.clone_from(&self.scopes);
        identity.claims.clone_from(&self.claims);
        Ok(Some(Arc::new(identity)))
    }
}

/// A tool. What is not declared is assumed as of a tool that declares nothing.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseTool {
    /// Its name.
    pub name: String,
    /// Its source.
    #[serde(default = "native")]
    pub source: String,
    /// Whether the operator trusts the source.
    #[serde(default = "yes")]
    pub trusted: bool,
    /// It changes nothing.
    #[serde(default)]
    pub read_only: Option<bool>,
    /// It may destroy something.
    #[serde(default)]
    pub destructive: Option<bool>,
    /// Calls can be repeated safely.
    #[serde(default)]
    pub idempotent: Option<bool>,
    /// It passes its arguments outside.
    #[serde(default)]
    pub open_world: Option<bool>,
    /// What it can do.
    #[serde(default)]
    pub capabilities: Vec<String>,
}

fn native() -> String {
    toolyard_core::SourceId::NATIVE.to_owned()
}

fn yes() -> bool {
    true
}

impl CaseTool {
    fn policy_tool(&self) -> PolicyTool {
        let declared = ToolHints {
            read_only: self.read_only,
            destructive: self.destructive,
            idempotent: self.idempotent,
            open_world: self.open_world,
        };
        let hints = EffectiveHints::of(declared, self.trusted, ToolHints::default());
        let capabilities = self.capabilities.iter().map(|name| name.as_str().into()).collect();
        PolicyTool::new(
            self.name.as_str().into(),
            self.source.as_str().into(),
            self.trusted,
            hints,
            capabilities,
        )
    }
}

impl PolicyCase {
    /// The decision of a policy about the call.
    pub fn decide(&self, policy: &Policy) -> Result<PolicyDecision, UnknownCaller> {
        let identity = self.caller.identity()?;
        let subject = PolicySubject {
            identity: identity.as_ref(),
            agent: self.agent.as_deref(),
            profile: &self.profile,
        };
        let arguments = RawJson::from(Value::Object(self.arguments.clone()));
        Ok(policy.decide(&PolicyRequest { subject, tool: &self.tool.policy_tool(), arguments: &arguments }))
    }

    /// Whether a decision is the expected one, by the expected policy.
    pub fn is_met_by(&self, decision: &PolicyDecision) -> bool {
        let is_expected = matches!(
            (self.expect, decision),
            (ExpectedDecision::Allow, PolicyDecision::Allow(_))
                | (ExpectedDecision::Ask, PolicyDecision::Ask(_))
                | (ExpectedDecision::Deny, PolicyDecision::Deny(_))
        );
        let policies = &decision.grounds().policies;
        is_expected
            && self.policy.as_ref().is_none_or(|expected| policies.iter().any(|id| **id == **expected))
    }
}

impl ExpectedDecision {
    /// `allow`, `ask` or `deny`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}
