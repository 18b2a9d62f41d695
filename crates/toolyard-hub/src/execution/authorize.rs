//! Whether calls of a candidate are allowed. All calls pass here, on whichever path they arrive.

use std::sync::Arc;

use toolyard_core::{
    CallPolicy, ErrorKind, PolicyDecision, PolicyGrounds, PolicyRequest, PolicySubject, ToolError,
};

use crate::{execution::attempt::Call, registry::candidate::ToolCandidate};

/// Removes the candidates that must not be called; an error if there were some and no other is left. An approval is the
/// agent's affair: a decision to ask removes nothing.
pub(crate) fn remove_denied(
    policy: Option<&dyn CallPolicy>,
    call: &Call<'_>,
    candidates: &mut Vec<Arc<ToolCandidate>>,
) -> Result<(), ToolError> {
    let mut first_error = None;
    candidates.retain(|candidate| match denial(policy, call, candidate) {
        None => true,
        Some(denial) => {
            first_error.get_or_insert_with(|| denial.into_error(candidate));
            false
        }
    });
    match first_error {
        Some(error) if candidates.is_empty() => Err(error),
        _ => Ok(()),
    }
}

/// Why a candidate must not be called.
enum Denial {
    /// By a pattern, for everybody.
    Pattern,
    Policy(Arc<PolicyGrounds>),
}

fn denial(policy: Option<&dyn CallPolicy>, call: &Call<'_>, candidate: &ToolCandidate) -> Option<Denial> {
    if candidate.denied {
        return Some(Denial::Pattern);
    }
    let policy = policy?;
    let subject = PolicySubject {
        identity: call.identity,
        agent: call.agent,
        profile: call.profile.map_or("", |profile| &profile.name),
    };
    let (tool, arguments) = (candidate.policy_tool(), &call.request.arguments);
    match policy.decide(&PolicyRequest { subject, tool, arguments }) {
        PolicyDecision::Deny(grounds) => Some(Denial::Policy(grounds)),
        PolicyDecision::Allow(_) | PolicyDecision::Ask(_) => None,
    }
}

impl Denial {
    fn into_error(self, candidate: &ToolCandidate) -> ToolError {
        let (message, hint) = match self {
            Self::Pattern => (
                "the operator's rules deny calls of this tool".to_owned(),
                "the rule is in `[approvals] deny` of toolyard.toml".to_owned(),
            ),
            Self::Policy(grounds) => {
                let hint = match grounds.policies.as_slice() {
                    [] => "add a policy that permits the call to a file of `[policy] files`".to_owned(),
                    policies => format!("decided by {}", policies.join(", ")),
                };
                (format!("not permitted: {}", grounds.reason), hint)
            }
        };
        let error = ToolError::new(ErrorKind::Refused, message);
        error.on_tool(&candidate.name).on_source(candidate.source_id()).with_operator_hint(hint)
    }
}
