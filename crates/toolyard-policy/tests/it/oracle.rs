//! Compares decisions with those of a second evaluator, which knows neither Cedar nor caches: it walks the rules one by one
//! as they were generated.

#![expect(clippy::indexing_slicing, reason = "a panic in a test helper fails the test, as intended")]

use std::{fmt::Write as _, sync::Arc};

use serde_json::{Map, Value, json};
use toolyard_core::{
    CallPolicy as _, CallerIdentity, EffectiveHints, PolicyRequest, PolicySubject, PolicyTool, RawJson,
    ToolHints, ToolPattern,
};
use toolyard_policy::{DefaultDecision, PatternRules, Policy, PolicySource};

const POLICY_SETS: usize = 300;
const REQUESTS_PER_SET: usize = 40;

const CALLERS: [&str; 3] = ["ann", "bob", "ci"];
const GROUPS: [&str; 3] = ["staff", "guests", "ops"];
const TOOLS: [&str; 4] = ["read", "write", "delete", "send"];
const SOURCES: [&str; 3] = ["files", "mail", "native"];
const AGENTS: [&str; 2] = ["writer", "reader"];
const PATHS: [&str; 4] = ["/etc/passwd", "/home/ann/a", "/home/bob", ""];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Permit,
    Waive,
    Ask,
    Deny,
}

#[derive(Debug, Clone)]
enum Principal {
    Any,
    Is(&'static str),
    In(&'static str),
}

#[derive(Debug, Clone)]
enum Resource {
    Any,
    Is(&'static str, &'static str),
    In(&'static str),
}

#[derive(Debug, Clone)]
enum Condition {
    NameLike(&'static str),
    ReadOnly,
    Capability(&'static str),
    Scope(&'static str),
    Department(&'static str),
    Level(i64),
    Agent(&'static str),
    Profile(&'static str),
    HasAgent,
    PathLike(&'static str),
    AmountAbove(i64),
    Flag,
    Recipient(&'static str),
    NestedIs(&'static str),
    AmountIs(i64),
    PathIn(&'static str, &'static str),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
}

#[derive(Debug, Clone)]
struct Rule {
    effect: Effect,
    principal: Principal,
    resource: Resource,
    when: Vec<Condition>,
    unless: Option<Condition>,
}

#[derive(Debug)]
struct Call {
    identity: Option<Arc<CallerIdentity>>,
    agent: Option<&'static str>,
    profile: &'static str,
    arguments: Value,
}

/// Why a condition has no value.
struct Failed;

fn pick<T: Clone>(rng: &mut fastrand::Rng, all: &[T]) -> T {
    all[rng.usize(..all.len())].clone()
}

fn any_condition(rng: &mut fastrand::Rng, depth: usize) -> Condition {
    let leaves = 16;
    match rng.usize(..if depth == 0 { leaves } else { leaves + 6 }) {
        0 => Condition::NameLike(pick(rng, &["re*", "*e*", "send", "*"])),
        1 => Condition::ReadOnly,
        2 => Condition::Capability(pick(rng, &["email", "web"])),
        3 => Condition::Scope(pick(rng, &["tools:read", "tools:write"])),
        4 => Condition::Department(pick(rng, &["sales", "it"])),
        5 => Condition::Level(rng.i64(0..4)),
        6 => Condition::Agent(pick(rng, &AGENTS)),
        7 => Condition::Profile(pick(rng, &["", "office"])),
        8 => Condition::HasAgent,
        9 => Condition::PathLike(pick(rng, &["/etc/*", "/home/*", "*a*"])),
        10 => Condition::AmountAbove(rng.i64(-2..3)),
        11 => Condition::Flag,
        12 => Condition::Recipient(pick(rng, &CALLERS)),
        13 => Condition::NestedIs(pick(rng, &["x", "y"])),
        14 => Condition::AmountIs(rng.i64(-2..3)),
        15 => Condition::PathIn(pick(rng, &PATHS), pick(rng, &PATHS)),
        16 | 17 => Condition::Not(Box::new(any_condition(rng, depth - 1))),
        18 | 19 => {
            Condition::Or(Box::new(any_condition(rng, depth - 1)), Box::new(any_condition(rng, depth - 1)))
        }
        _ => Condition::And(Box::new(any_condition(rng, depth - 1)), Box::new(any_condition(rng, depth - 1))),
    }
}

fn any_rule(rng: &mut fastrand::Rng) -> Rule {
    let principal = match rng.u8(..4) {
        0 => Principal::Is(pick(rng, &CALLERS)),
        1 => Principal::In(pick(rng, &GROUPS)),
        _ => Principal::Any,
    };
    let resource = match rng.u8(..4) {
        0 => Resource::Is(pick(rng, &TOOLS), pick(rng, &SOURCES)),
        1 => Resource::In(pick(rng, &SOURCES)),
        _ => Resource::Any,
    };
    Rule {
        effect: pick(rng, &[Effect::Permit, Effect::Waive, Effect::Ask, Effect::Deny]),
        principal,
        resource,
        when: (0..rng.usize(..3)).map(|_| any_condition(rng, 2)).collect(),
        unless: rng.bool().then(|| any_condition(rng, 1)),
    }
}

impl Condition {
    fn cedar(&self) -> String {
        let arguments = "context.arguments";
        match self {
            Self::NameLike(pattern) => format!("resource.name like \"{pattern}\""),
            Self::ReadOnly => "resource.read_only".to_owned(),
            Self::Capability(name) => format!("resource.capabilities.contains(\"{name}\")"),
            Self::Scope(name) => format!("principal.scopes.contains(\"{name}\")"),
            Self::Department(name) => {
                format!("(principal.claims has dept && principal.claims.dept == \"{name}\")")
            }
            Self::Level(level) => {
                format!("(principal.claims has level && principal.claims.level >= {level})")
            }
            Self::Agent(name) => format!("(context has agent && context.agent == Agent::\"{name}\")"),
            Self::Profile(name) => format!("context.profile == Profile::\"{name}\""),
            Self::HasAgent => "context has agent".to_owned(),
            Self::PathLike(pattern) => {
                format!("({arguments} has path && {arguments}.path like \"{pattern}\")")
            }
            Self::AmountAbove(limit) => {
                format!("({arguments} has amount && {arguments}.amount > {limit})")
            }
            Self::Flag => format!("({arguments} has flag && {arguments}.flag)"),
            Self::Recipient(name) => format!("({arguments} has to && {arguments}.to.contains(\"{name}\"))"),
            Self::NestedIs(text) => {
                format!("({arguments} has options.mode && {arguments}.options.mode == \"{text}\")")
            }
            Self::AmountIs(number) => {
                format!("({arguments} has amount && {arguments}.amount == {number})")
            }
            Self::PathIn(one, other) => {
                format!("({arguments} has path && [\"{one}\", \"{other}\"].contains({arguments}.path))")
            }
            Self::Not(inner) => format!("!({})", inner.cedar()),
            Self::And(one, other) => format!("({} && {})", one.cedar(), other.cedar()),
            Self::Or(one, other) => format!("({} || {})", one.cedar(), other.cedar()),
        }
    }

    fn holds(&self, call: &Call, tool: &PolicyTool) -> Result<bool, Failed> {
        let argument = |name: &str| call.arguments.get(name).filter(|value| !value.is_null());
        let claim = |name: &str| call.identity.as_ref().and_then(|identity| identity.claims.get(name));
        Ok(match self {
            Self::NameLike(pattern) => ToolPattern::parse(pattern).matches(&tool.name, ""),
            Self::ReadOnly => tool.hints.read_only,
            Self::Capability(name) => tool.capabilities.iter().any(|capability| capability.as_str() == *name),
            Self::Scope(name) => call
                .identity
                .as_ref()
                .is_some_and(|identity| identity.scopes.iter().any(|scope| scope == name)),
            Self::Department(name) => match claim("dept") {
                None => false,
                Some(dept) => dept.as_str().ok_or(Failed)? == *name,
            },
            Self::Level(level) => match claim("level") {
                None => false,
                Some(value) => value.as_i64().ok_or(Failed)? >= *level,
            },
            Self::Agent(name) => call.agent == Some(*name),
            Self::Profile(name) => call.profile == *name,
            Self::HasAgent => call.agent.is_some(),
            Self::PathLike(pattern) => match argument("path") {
                None => false,
                Some(path) => ToolPattern::parse(pattern).matches(path.as_str().ok_or(Failed)?, ""),
            },
            Self::AmountAbove(limit) => match argument("amount") {
                None => false,
                Some(amount) => amount.as_i64().ok_or(Failed)? > *limit,
            },
            Self::Flag => match argument("flag") {
                None => false,
                Some(flag) => flag.as_bool().ok_or(Failed)?,
            },
            Self::Recipient(name) => match argument("to") {
                None => false,
                Some(to) => to.as_array().ok_or(Failed)?.iter().any(|one| one == name),
            },
            Self::NestedIs(text) => match argument("options") {
                None => false,
                Some(options) => {
                    let options = options.as_object().ok_or(Failed)?;
                    match options.get("mode").filter(|mode| !mode.is_null()) {
                        None => false,
                        Some(mode) => mode.as_str().ok_or(Failed)? == *text,
                    }
                }
            },
            Self::AmountIs(number) => match argument("amount") {
                None => false,
                Some(amount) => amount.as_i64().ok_or(Failed)? == *number,
            },
            Self::PathIn(one, other) => match argument("path") {
                None => false,
                Some(path) => [*one, *other].contains(&path.as_str().ok_or(Failed)?),
            },
            Self::Not(inner) => !inner.holds(call, tool)?,
            Self::And(one, other) => one.holds(call, tool)? && other.holds(call, tool)?,
            Self::Or(one, other) => one.holds(call, tool)? || other.holds(call, tool)?,
        })
    }
}

impl Rule {
    fn cedar(&self, id: usize) -> String {
        let approval = match self.effect {
            Effect::Waive => "@approval(\"waived\") ",
            Effect::Ask => "@approval(\"required\") ",
            Effect::Permit | Effect::Deny => "",
        };
        let effect = match self.effect {
            Effect::Permit | Effect::Waive => "permit",
            Effect::Ask | Effect::Deny => "forbid",
        };
        let principal = match self.principal {
            Principal::Any => "principal".to_owned(),
            Principal::Is(name) => format!("principal == Caller::\"https://idp#{name}\""),
            Principal::In(group) => format!("principal in Group::\"{group}\""),
        };
        let resource = match self.resource {
            Resource::Any => "resource".to_owned(),
            Resource::Is(name, source) => format!("resource == Tool::\"{name}@{source}\""),
            Resource::In(source) => format!("resource in Source::\"{source}\""),
        };
        let mut text = format!("@id(\"rule-{id}\") {approval}{effect} ({principal}, action, {resource})");
        for condition in &self.when {
            let _ = write!(text, " when {{ {} }}", condition.cedar());
        }
        if let Some(condition) = &self.unless {
            let _ = write!(text, " unless {{ {} }}", condition.cedar());
        }
        text + ";\n"
    }

    fn applies(&self, call: &Call, tool: &PolicyTool) -> Result<bool, Failed> {
        let identity = call.identity.as_deref();
        let is_principal = match self.principal {
            Principal::Any => true,
            Principal::Is(name) => identity.is_some_and(|identity| *identity.subject == *name),
            Principal::In(group) => {
                identity.is_some_and(|identity| identity.groups.iter().any(|one| one == group))
            }
        };
        let is_resource = match self.resource {
            Resource::Any => true,
            Resource::Is(name, source) => *tool.name == *name && tool.source.as_str() == source,
            Resource::In(source) => tool.source.as_str() == source,
        };
        if !is_principal || !is_resource {
            return Ok(false);
        }
        for condition in &self.when {
            if !condition.holds(call, tool)? {
                return Ok(false);
            }
        }
        self.unless.as_ref().map_or(Ok(true), |condition| condition.holds(call, tool).map(|holds| !holds))
    }
}

fn expected(
    rules: &[Rule],
    patterns: &PatternRules,
    default: DefaultDecision,
    call: &Call,
    tool: &PolicyTool,
) -> &'static str {
    let matches = |patterns: &[String]| {
        patterns.iter().any(|text| ToolPattern::parse(text).matches(&tool.name, tool.source.as_str()))
    };
    let (mut denied, mut asks) = (matches(&patterns.deny), matches(&patterns.ask));
    let mut waived = matches(&patterns.allow);
    let mut permitted = waived;
    for rule in rules {
        let applies = rule.applies(call, tool);
        match (rule.effect, applies) {
            (Effect::Permit, Ok(true)) => permitted = true,
            (Effect::Waive, Ok(true)) => (permitted, waived) = (true, true),
            (Effect::Ask, Ok(true)) => asks = true,
            (Effect::Deny, Ok(true)) | (Effect::Ask | Effect::Deny, Err(Failed)) => denied = true,
            (_, Ok(false)) | (Effect::Permit | Effect::Waive, Err(Failed)) => {}
        }
    }
    match () {
        () if denied || (default == DefaultDecision::Deny && !permitted) => "deny",
        () if asks => "ask",
        () if waived || tool.hints.read_only => "allow",
        () => "ask",
    }
}

fn any_call(rng: &mut fastrand::Rng) -> Call {
    let identity = (rng.u8(..5) > 0).then(|| {
        let mut identity = CallerIdentity::principal("https://idp", pick(rng, &CALLERS));
        identity.groups = GROUPS.iter().filter(|_| rng.bool()).map(|&group| group.to_owned()).collect();
        identity.scopes =
            ["tools:read", "tools:write"].iter().filter(|_| rng.bool()).map(|&s| s.to_owned()).collect();
        let mut claims = Map::new();
        if rng.bool() {
            claims.insert(
                "dept".to_owned(),
                pick(rng, &[json!("sales"), json!("it"), json!(7), json!(["it"])]),
            );
        }
        if rng.bool() {
            claims.insert(
                "level".to_owned(),
                pick(rng, &[json!(0), json!(2), json!(3), json!(2.5), json!("3")]),
            );
        }
        identity.claims = claims;
        Arc::new(identity)
    });
    let mut arguments = Map::new();
    let values: [(&str, Vec<Value>); 6] = [
        (
            "path",
            PATHS.iter().map(|path| json!(path)).chain([json!(1), json!(["/etc/x"]), Value::Null]).collect(),
        ),
        ("amount", vec![json!(-3), json!(0), json!(1), json!(5), json!(0.5), json!("9"), Value::Null]),
        ("flag", vec![json!(true), json!(false), json!("true"), Value::Null]),
        ("to", vec![json!(["ann"]), json!(["bob", "ci"]), json!([]), json!("ann")]),
        (
            "options",
            vec![json!({"mode": "x"}), json!({"mode": "y"}), json!({}), json!({"mode": 1}), json!("x")],
        ),
        ("other", vec![json!("unread"), json!({"path": "/etc/x"})]),
    ];
    for (name, values) in values {
        if rng.u8(..3) > 0 {
            arguments.insert(name.to_owned(), pick(rng, &values));
        }
    }
    let agent = rng.bool().then(|| pick(rng, &AGENTS));
    Call { identity, agent, profile: pick(rng, &["", "office"]), arguments: Value::Object(arguments) }
}

fn any_tools(rng: &mut fastrand::Rng) -> Vec<PolicyTool> {
    let mut tools = Vec::new();
    for name in TOOLS {
        for source in SOURCES {
            let declared = ToolHints { read_only: Some(rng.bool()), ..ToolHints::default() };
            let hints = EffectiveHints::of(declared, true, ToolHints::default());
            let capabilities =
                ["email", "web"].iter().filter(|_| rng.bool()).map(|&name| name.into()).collect();
            tools.push(PolicyTool::new(name.into(), source.into(), true, hints, capabilities));
        }
    }
    tools
}

#[test]
fn decisions_equal_those_of_a_simple_evaluator() {
    let mut rng = fastrand::Rng::with_seed(19);
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for set in 0..POLICY_SETS {
        let rules: Vec<Rule> = (0..rng.usize(1..8)).map(|_| any_rule(&mut rng)).collect();
        let default = pick(&mut rng, &[DefaultDecision::Allow, DefaultDecision::Deny]);
        let mut some = |all: &[&str]| {
            if rng.u8(..4) > 0 { Vec::new() } else { vec![pick(&mut rng, all).to_owned()] }
        };
        let patterns = PatternRules {
            allow: some(&["*", "read", "*@files"]),
            ask: some(&["send", "*@mail"]),
            deny: some(&["delete", "write@native"]),
        };
        let text: String = rules.iter().enumerate().map(|(id, rule)| rule.cedar(id)).collect();
        let source = PolicySource { name: "generated.cedar".into(), text: text.clone() };
        let policy = Policy::load(&[source], patterns.clone(), default)
            .unwrap_or_else(|error| panic!("set {set}: {error}\n{text}"));
        let tools = any_tools(&mut rng);
        for _ in 0..REQUESTS_PER_SET {
            let call = any_call(&mut rng);
            let tool = &tools[rng.usize(..tools.len())];
            let subject =
                PolicySubject { identity: call.identity.as_ref(), agent: call.agent, profile: call.profile };
            let arguments = RawJson::from(call.arguments.clone());
            let decision = policy.decide(&PolicyRequest { subject, tool, arguments: &arguments });
            let expected = expected(&rules, &patterns, default, &call, tool);
            assert_eq!(
                decision.label(),
                expected,
                "set {set}: {decision:?}\n{text}\n{patterns:?} {default:?}\n{call:?}\n{tool:?}"
            );
            if !decision.is_denied() {
                assert!(policy.may_be_called(&subject, tool), "what may be called is shown");
            }
            *counts.entry(expected).or_default() += 1;
        }
    }
    assert!(counts.len() == 3 && counts.values().all(|&count| count > 1_000), "{counts:?}");
}
