//! Reads policy files, validates each policy against the schema, and prepares it for evaluation.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use cedar_policy::{Effect, Policy as CedarPolicy, PolicyId, PolicySet, Schema, ValidationMode, Validator};
use miette::Diagnostic;
use serde_json::{Value, json};

use crate::{
    attribute_usage::{AttributeUsage, reads_arguments},
    error::{PolicyError, PolicyProblem},
    type_checks::with_type_checks,
};

/// The schema of policies; each policy completes it by the arguments and claims that it reads.
const SCHEMA: &str = include_str!("schema.cedarschema");

/// A file with policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySource {
    /// Its name in errors.
    pub name: Arc<str>,
    /// Its contents.
    pub text: String,
}

/// What a satisfied policy means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleEffect {
    /// `permit`: the caller may call the tool.
    Permit,
    /// `@approval("waived") permit`: it also needs no approval.
    Waive,
    /// `@approval("required") forbid`: it needs an approval.
    Ask,
    /// `forbid`: it must not be called.
    Deny,
}

/// A policy that passed validation.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) id: Arc<str>,
    pub(crate) effect: RuleEffect,
    pub(crate) reason: Option<String>,
    /// The conditions of the policy, as a `permit` whose id is the number of the rule: so one evaluation finds all satisfied rules.
    pub(crate) condition: CedarPolicy,
    /// The part of the conditions before the first that reads arguments; `None` if none does.
    pub(crate) precondition: Option<CedarPolicy>,
    /// The arguments that it reads.
    pub(crate) arguments: BTreeSet<String>,
    /// The claims that it reads.
    pub(crate) claims: BTreeSet<String>,
}

/// The rules of some files, and what is suspicious about them.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    pub(crate) rules: Vec<Rule>,
    pub(crate) warnings: Vec<PolicyProblem>,
}

/// Compiles all policies of all files, or finds all problems.
pub(crate) fn compile(sources: &[PolicySource]) -> Result<Compiled, PolicyError> {
    let mut compiler = Compiler::default();
    sources.iter().for_each(|source| compiler.add_source(source));
    match compiler.problems.is_empty() {
        true => Ok(compiler.compiled),
        false => Err(PolicyError { problems: compiler.problems }),
    }
}

#[derive(Default)]
struct Compiler {
    compiled: Compiled,
    problems: Vec<PolicyProblem>,
    /// File and line of each id.
    places: HashMap<Arc<str>, (Arc<str>, usize)>,
}

/// A policy in its file.
struct Located<'a> {
    source: &'a PolicySource,
    line: usize,
    id: Arc<str>,
}

impl Located<'_> {
    fn problem(&self, message: &impl ToString) -> PolicyProblem {
        PolicyProblem {
            file: Arc::clone(&self.source.name),
            line: Some(self.line),
            policy: Some(Arc::clone(&self.id)),
            message: message.to_string(),
            hint: None,
        }
    }

    /// A problem that Cedar found, at the line that it names.
    fn diagnosed(&self, diagnostic: &dyn Diagnostic) -> PolicyProblem {
        let line = diagnostic_line(diagnostic, &self.source.text).unwrap_or(self.line);
        // The message of Cedar begins with its own id of the policy.
        let message = diagnostic.to_string();
        let message = message.split_once("`, ").map_or(message.as_str(), |(_, rest)| rest);
        let hint = diagnostic.help().map(|help| help.to_string());
        PolicyProblem { line: Some(line), hint, ..self.problem(&message) }
    }
}

impl Compiler {
    fn add_source(&mut self, source: &PolicySource) {
        let whole_file = |line, message: String, hint| PolicyProblem {
            file: Arc::clone(&source.name),
            line,
            policy: None,
            message,
            hint,
        };
        let policies: PolicySet = match source.text.parse() {
            Ok(policies) => policies,
            Err(errors) => {
                let errors: &cedar_policy::ParseErrors = &errors;
                for error in errors.iter() {
                    let line = diagnostic_line(error, &source.text);
                    let hint = error.help().map(|help| help.to_string());
                    self.problems.push(whole_file(line, error.to_string(), hint));
                }
                return;
            }
        };
        if policies.templates().next().is_some() {
            let message =
                "a policy has a slot (`?principal` or `?resource`), and templates are not supported";
            self.problems.push(whole_file(None, message.to_owned(), None));
            return;
        }
        let mut from = 0;
        // Cedar numbers the policies of a text in their order.
        for number in 0..policies.num_of_policies() {
            let Some(policy) = policies.policy(&PolicyId::new(format!("policy{number}"))) else { continue };
            let text = policy.to_cedar().unwrap_or_default();
            let found = source.text.get(from..).and_then(|rest| rest.find(&text)).unwrap_or_default();
            let line = line_of(&source.text, from + found);
            from += found + text.len().max(1);
            let id = policy.annotation("id").filter(|id| !id.is_empty());
            let id = id.map_or_else(|| format!("{}:{line}", source.name), str::to_owned);
            self.add_policy(&Located { source, line, id: id.into() }, policy);
        }
    }

    fn add_policy(&mut self, located: &Located<'_>, policy: &CedarPolicy) {
        let place = (Arc::clone(&located.source.name), located.line);
        if let Some((file, line)) = self.places.insert(Arc::clone(&located.id), place) {
            self.problems.push(located.problem(&format!("another policy has this id, at {file}:{line}")));
        }
        match self.compile_policy(located, policy) {
            Ok(rule) => self.compiled.rules.push(rule),
            Err(problems) => self.problems.extend(problems),
        }
    }

    fn compile_policy(
        &mut self,
        located: &Located<'_>,
        policy: &CedarPolicy,
    ) -> Result<Rule, Vec<PolicyProblem>> {
        let one = |message: String| vec![located.problem(&message)];
        let effect = rule_effect(policy).map_err(|message| one(message.to_owned()))?;
        let json = policy.to_json().map_err(|error| one(error.to_string()))?;
        let conditions = json.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let bodies = || conditions.iter().filter_map(|condition| condition.get("body"));
        let mut usage = AttributeUsage::default();
        for body in bodies() {
            usage.extend(body).map_err(|error| one(error.to_string()))?;
        }
        let schema = format!("{SCHEMA}{}", usage.declarations());
        let (schema, _) = Schema::from_cedarschema_str(&schema).map_err(|error| one(error.to_string()))?;
        let set = PolicySet::from_policies([policy.clone()]).map_err(|error| one(error.to_string()))?;
        let result = Validator::new(schema).validate(&set, ValidationMode::Strict);
        let errors: Vec<_> = result.validation_errors().map(|error| located.diagnosed(error)).collect();
        if !errors.is_empty() {
            return Err(errors);
        }
        self.compiled.warnings.extend(result.validation_warnings().map(|warning| located.diagnosed(warning)));
        let conditions =
            conditions.iter().map(|condition| with_type_checks(condition, &usage)).collect::<Vec<_>>();
        let bodies = || conditions.iter().filter_map(|condition| condition.get("body"));
        let number = self.compiled.rules.len();
        let with_conditions = |conditions: &[Value]| {
            let mut json = json.clone();
            if let Some(members) = json.as_object_mut() {
                members.insert("effect".to_owned(), json!("permit"));
                members.insert("conditions".to_owned(), json!(conditions));
                members.remove("annotations");
            }
            CedarPolicy::from_json(Some(PolicyId::new(number.to_string())), json)
                .map_err(|error| one(error.to_string()))
        };
        let precondition = match bodies().any(reads_arguments) {
            true => Some(with_conditions(&conditions_before_arguments(&conditions))?),
            false => None,
        };
        Ok(Rule {
            id: Arc::clone(&located.id),
            effect,
            reason: policy.annotation("reason").filter(|reason| !reason.is_empty()).map(str::to_owned),
            condition: with_conditions(&conditions)?,
            precondition,
            arguments: usage.arguments.0.into_keys().collect(),
            claims: usage.claims.0.into_keys().collect(),
        })
    }
}

fn rule_effect(policy: &CedarPolicy) -> Result<RuleEffect, &'static str> {
    match (policy.effect(), policy.annotation("approval")) {
        (Effect::Permit, None) => Ok(RuleEffect::Permit),
        (Effect::Permit, Some("waived")) => Ok(RuleEffect::Waive),
        (Effect::Forbid, Some("required")) => Ok(RuleEffect::Ask),
        (Effect::Forbid, None) => Ok(RuleEffect::Deny),
        (Effect::Permit, Some(_)) => Err("on `permit`, the only value of @approval is \"waived\""),
        (Effect::Forbid, Some(_)) => Err("on `forbid`, the only value of @approval is \"required\""),
    }
}

/// The conditions that are evaluated before any that reads arguments. If one of them is not satisfied, neither is the
/// policy, whatever the arguments.
fn conditions_before_arguments(conditions: &[Value]) -> Vec<Value> {
    let mut before = Vec::new();
    for condition in conditions {
        let Some(body) = condition.get("body") else { break };
        if !reads_arguments(body) {
            before.push(condition.clone());
            continue;
        }
        // `when { a && b }` is `when { a } when { b }`; `unless { a || b }` is `unless { a } unless { b }`.
        let kind = condition.get("kind").and_then(Value::as_str).unwrap_or_default();
        let operator = if kind == "unless" { "||" } else { "&&" };
        let mut parts = Vec::new();
        split(body, operator, &mut parts);
        let parts = parts.into_iter().take_while(|part| !reads_arguments(part));
        before.extend(parts.map(|part| json!({"kind": kind, "body": part})));
        break;
    }
    before
}

/// The operands of a chain of one operator, in the order of their evaluation.
fn split<'a>(expression: &'a Value, operator: &str, parts: &mut Vec<&'a Value>) {
    match expression.get(operator) {
        Some(operands) => {
            for side in ["left", "right"] {
                if let Some(operand) = operands.get(side) {
                    split(operand, operator, parts);
                }
            }
        }
        None => parts.push(expression),
    }
}

fn diagnostic_line(diagnostic: &dyn Diagnostic, text: &str) -> Option<usize> {
    let offset = diagnostic.labels()?.map(|label| label.offset()).next()?;
    Some(line_of(text, offset))
}

fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}
