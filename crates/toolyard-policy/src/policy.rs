//! [`Policy`]: the decision point.

use std::{collections::BTreeSet, fmt};

use cedar_policy::{Authorizer, Context, Entities, PolicySet, Request, RestrictedExpression};
use toolyard_core::{CallPolicy, PolicyDecision, PolicyRequest, PolicySubject, PolicyTool, RawJson};

use crate::{
    cache::PartialDecisionCache,
    compile::{Compiled, PolicySource, Rule, RuleEffect, compile},
    entities::{EntityTypes, RequestEntities},
    error::{PolicyError, PolicyProblem},
    matched_rules::{DefaultDecision, MatchedRule, MatchedRules},
    patterns::{PatternRules, first_match},
    values::record_of_text,
};

/// Decides about tool calls, by Cedar policies and by patterns.
///
/// What does not depend on the arguments of a call is computed once for a caller, a tool, an agent and a profile. A call
/// evaluates only the policies that read its arguments and whose other conditions are satisfied.
pub struct Policy {
    patterns: PatternRules,
    default: DefaultDecision,
    cedar: Option<CedarRules>,
    warnings: Vec<PolicyProblem>,
}

/// Rules in the language of Cedar.
struct CedarRules {
    rules: Vec<Rule>,
    /// The rules that do not read arguments.
    without_arguments: PolicySet,
    /// The preconditions of those that do.
    preconditions: PolicySet,
    claims: BTreeSet<String>,
    types: EntityTypes,
    authorizer: Authorizer,
    partial_decisions: PartialDecisionCache,
}

/// What is known about calls of a tool by a caller before their arguments are.
#[derive(Debug)]
pub(crate) struct PartialDecision {
    matched: MatchedRules,
    /// The decision, if no policy reads the arguments.
    decision: Option<PolicyDecision>,
    by_arguments: Option<ArgumentRules>,
    may_be_called: bool,
}

/// The rules that read the arguments of these calls.
#[derive(Debug)]
struct ArgumentRules {
    conditions: PolicySet,
    arguments: BTreeSet<String>,
    about: RequestEntities,
}

impl Policy {
    /// Reads and validates policies. Either all of them are used, or none.
    pub fn load(
        sources: &[PolicySource],
        patterns: PatternRules,
        default: DefaultDecision,
    ) -> Result<Self, PolicyError> {
        let Compiled { rules, warnings } = compile(sources)?;
        let cedar = if rules.is_empty() { None } else { Some(CedarRules::new(rules)?) };
        Ok(Self { patterns, default, cedar, warnings })
    }

    /// What is suspicious about the policies, such as a policy that never applies.
    pub fn warnings(&self) -> &[PolicyProblem] {
        &self.warnings
    }

    /// How many policies there are, without patterns.
    pub fn policy_count(&self) -> usize {
        self.cedar.as_ref().map_or(0, |cedar| cedar.rules.len())
    }

    /// Whether more than patterns decide: these a hub and its agents apply by themselves.
    pub fn has_more_than_patterns(&self) -> bool {
        self.cedar.is_some() || self.default == DefaultDecision::Deny
    }

    fn matched_patterns(&self, tool: &PolicyTool) -> MatchedRules {
        let PatternRules { allow, ask, deny } = &self.patterns;
        let mut matched = MatchedRules::default();
        for (list, patterns, effect) in [
            ("[approvals] deny", deny, RuleEffect::Deny),
            ("[approvals] ask", ask, RuleEffect::Ask),
            ("[approvals] allow", allow, RuleEffect::Waive),
        ] {
            if let Some(id) = first_match(list, patterns, tool) {
                matched.add_match(effect, MatchedRule { id, reason: None });
            }
        }
        matched
    }

    fn partial_decision(
        &self,
        cedar: &CedarRules,
        subject: &PolicySubject<'_>,
        tool: &PolicyTool,
    ) -> PartialDecision {
        let mut matched = self.matched_patterns(tool);
        let by_arguments = cedar.add_without_arguments(subject, tool, &mut matched);
        let by_arguments = by_arguments.unwrap_or_else(|error| {
            matched.add_match(RuleEffect::Deny, unreadable(error));
            None
        });
        let decision = match &by_arguments {
            // Nothing overrides a denial.
            Some(_) if matched.deny.is_empty() => None,
            _ => Some(matched.conclude(tool, self.default)),
        };
        let may_be_permitted = self.default == DefaultDecision::Allow
            || matched.is_permitted()
            || by_arguments.as_ref().is_some_and(|rules| cedar.may_permit(rules));
        let may_be_called = matched.deny.is_empty() && may_be_permitted;
        let by_arguments = by_arguments.filter(|_| decision.is_none());
        PartialDecision { matched, decision, by_arguments, may_be_called }
    }
}

impl CallPolicy for Policy {
    fn decide(&self, request: &PolicyRequest<'_>) -> PolicyDecision {
        let Some(cedar) = &self.cedar else {
            return self.matched_patterns(request.tool).conclude(request.tool, self.default);
        };
        let partial = cedar.partial_decisions.get_or_insert(&request.subject, request.tool, || {
            self.partial_decision(cedar, &request.subject, request.tool)
        });
        match (&partial.decision, &partial.by_arguments) {
            (Some(decision), _) => decision.clone(),
            (None, None) => partial.matched.conclude(request.tool, self.default),
            (None, Some(rules)) => {
                let mut matched = partial.matched.clone();
                if let Err(error) = cedar.add_by_arguments(rules, request.arguments, &mut matched) {
                    matched.add_match(RuleEffect::Deny, unreadable(error));
                }
                matched.conclude(request.tool, self.default)
            }
        }
    }

    fn decide_without_arguments(
        &self,
        subject: &PolicySubject<'_>,
        tool: &PolicyTool,
    ) -> Option<PolicyDecision> {
        let Some(cedar) = &self.cedar else {
            return Some(self.matched_patterns(tool).conclude(tool, self.default));
        };
        let partial = cedar
            .partial_decisions
            .get_or_insert(subject, tool, || self.partial_decision(cedar, subject, tool));
        partial.decision.clone()
    }

    fn may_be_called(&self, subject: &PolicySubject<'_>, tool: &PolicyTool) -> bool {
        let Some(cedar) = &self.cedar else {
            return !self.matched_patterns(tool).conclude(tool, self.default).is_denied();
        };
        cedar
            .partial_decisions
            .get_or_insert(subject, tool, || self.partial_decision(cedar, subject, tool))
            .may_be_called
    }
}

impl CedarRules {
    fn new(rules: Vec<Rule>) -> Result<Self, PolicyError> {
        let unusable = |message: String| {
            let file = "policies".into();
            PolicyError {
                problems: vec![PolicyProblem { file, line: None, policy: None, message, hint: None }],
            }
        };
        let preconditions =
            PolicySet::from_policies(rules.iter().filter_map(|rule| rule.precondition.clone()));
        let without_arguments = rules.iter().filter(|rule| rule.precondition.is_none());
        let without_arguments =
            PolicySet::from_policies(without_arguments.map(|rule| rule.condition.clone()));
        Ok(Self {
            preconditions: preconditions.map_err(|error| unusable(error.to_string()))?,
            without_arguments: without_arguments.map_err(|error| unusable(error.to_string()))?,
            claims: rules.iter().flat_map(|rule| rule.claims.iter().cloned()).collect(),
            types: EntityTypes::new().ok_or_else(|| unusable("unusable schema".to_owned()))?,
            authorizer: Authorizer::new(),
            partial_decisions: PartialDecisionCache::default(),
            rules,
        })
    }

    /// Adds the rules that apply whatever the arguments; returns those that may apply depending on them.
    fn add_without_arguments(
        &self,
        subject: &PolicySubject<'_>,
        tool: &PolicyTool,
        matched: &mut MatchedRules,
    ) -> Result<Option<ArgumentRules>, String> {
        let about =
            self.types.request_entities(subject, tool, &self.claims).map_err(|error| error.to_string())?;
        let empty = RestrictedExpression::new_record([]).map_err(|error| error.to_string())?;
        let request = self.request(&about, empty)?;
        self.add_satisfied(&request, &self.without_arguments, &about.entities, matched);
        let mut conditions = PolicySet::new();
        let mut arguments = BTreeSet::new();
        for rule in
            self.evaluate(&request, &self.preconditions, &about.entities).map(|evaluated| evaluated.rule)
        {
            conditions.add(rule.condition.clone()).map_err(|error| error.to_string())?;
            arguments.extend(rule.arguments.iter().cloned());
        }
        Ok((!conditions.is_empty()).then_some(ArgumentRules { conditions, arguments, about }))
    }

    fn add_by_arguments(
        &self,
        rules: &ArgumentRules,
        arguments: &RawJson,
        matched: &mut MatchedRules,
    ) -> Result<(), String> {
        let record = record_of_text(arguments.get(), &rules.arguments).map_err(|error| error.to_string())?;
        let request = self.request(&rules.about, record)?;
        self.add_satisfied(&request, &rules.conditions, &rules.about.entities, matched);
        Ok(())
    }

    fn may_permit(&self, rules: &ArgumentRules) -> bool {
        let ids = rules.conditions.policies().filter_map(|policy| self.rule(policy.id()));
        ids.into_iter().any(|rule| matches!(rule.effect, RuleEffect::Permit | RuleEffect::Waive))
    }

    fn request(&self, about: &RequestEntities, arguments: RestrictedExpression) -> Result<Request, String> {
        let uid = |id: &cedar_policy::EntityUid| RestrictedExpression::new_entity_uid(id.clone());
        let agent = about.agent.as_ref().map(|agent| ("agent".to_owned(), uid(agent)));
        let fixed = [("arguments".to_owned(), arguments), ("profile".to_owned(), uid(&about.profile))];
        let context =
            Context::from_pairs(fixed.into_iter().chain(agent)).map_err(|error| error.to_string())?;
        let (principal, resource) = (about.principal.clone(), about.resource.clone());
        Request::new(principal, self.types.action.clone(), resource, context, None)
            .map_err(|error| error.to_string())
    }

    fn add_satisfied(
        &self,
        request: &Request,
        set: &PolicySet,
        entities: &Entities,
        matched: &mut MatchedRules,
    ) {
        for Evaluated { rule, error } in self.evaluate(request, set, entities) {
            match error {
                None => matched.add(rule),
                Some(error) => matched.add_failed(rule, &error),
            }
        }
    }

    /// The rules of a set that are satisfied or that fail.
    fn evaluate(
        &self,
        request: &Request,
        set: &PolicySet,
        entities: &Entities,
    ) -> impl Iterator<Item = Evaluated<'_>> {
        let mut evaluated = Vec::new();
        if !set.is_empty() {
            let response = self.authorizer.is_authorized(request, set, entities);
            let diagnostics = response.diagnostics();
            let satisfied = diagnostics.reason().filter_map(|id| self.rule(id));
            evaluated.extend(satisfied.map(|rule| Evaluated { rule, error: None }));
            for error in diagnostics.errors() {
                let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
                let rule = self.rule(error.policy_id());
                evaluated.extend(rule.map(|rule| Evaluated { rule, error: Some(error.inner().to_string()) }));
            }
            evaluated.sort_by(|one, other| one.rule.id.cmp(&other.rule.id));
        }
        evaluated.into_iter()
    }

    fn rule(&self, id: &cedar_policy::PolicyId) -> Option<&Rule> {
        let id: &str = id.as_ref();
        self.rules.get(id.parse::<usize>().ok()?)
    }
}

struct Evaluated<'a> {
    rule: &'a Rule,
    error: Option<String>,
}

fn unreadable(reason: String) -> MatchedRule {
    MatchedRule { id: "unreadable-request".into(), reason: Some(reason) }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("policies", &self.policy_count())
            .field("patterns", &self.patterns)
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}
