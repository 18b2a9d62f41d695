//! Decisions, and the errors of policies that cannot be used.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_core::{
    API_KEY_ISSUER, CallPolicy as _, CallerIdentity, EffectiveHints, PolicyDecision, PolicyRequest,
    PolicySubject, PolicyTool, RawJson, ToolHints,
};
use toolyard_policy::{DefaultDecision, PatternRules, Policy, PolicyError, PolicySource};

fn load(text: &str) -> Result<Policy, PolicyError> {
    load_with(text, PatternRules::default(), DefaultDecision::Allow)
}

fn load_with(text: &str, patterns: PatternRules, default: DefaultDecision) -> Result<Policy, PolicyError> {
    let source = PolicySource { name: "p.cedar".into(), text: text.to_owned() };
    Policy::load(&[source], patterns, default)
}

fn tool(name: &str, source: &str, read_only: bool) -> PolicyTool {
    let declared = ToolHints { read_only: Some(read_only), ..ToolHints::default() };
    let hints = EffectiveHints::of(declared, true, ToolHints::default());
    PolicyTool::new(name.into(), source.into(), true, hints, vec!["email".into()])
}

fn caller(name: &str, groups: &[&str], claims: &Value) -> Arc<CallerIdentity> {
    let mut identity = CallerIdentity::principal(API_KEY_ISSUER, name);
    identity.groups = groups.iter().map(|&group| group.to_owned()).collect();
    identity.claims = claims.as_object().cloned().unwrap_or_default();
    Arc::new(identity)
}

fn decide(
    policy: &Policy,
    identity: Option<&Arc<CallerIdentity>>,
    tool: &PolicyTool,
    arguments: Value,
) -> PolicyDecision {
    let subject = PolicySubject { identity, ..PolicySubject::default() };
    policy.decide(&PolicyRequest { subject, tool, arguments: &RawJson::from(arguments) })
}

fn problems(text: &str) -> String {
    load(text).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn without_policies_read_only_tools_are_allowed_and_others_ask() {
    let policy = load("").unwrap();
    assert_eq!(decide(&policy, None, &tool("read", "files", true), json!({})).label(), "allow");
    assert_eq!(decide(&policy, None, &tool("write", "files", false), json!({})).label(), "ask");
}

#[test]
fn deny_overrides_ask_and_ask_overrides_allow() {
    let text = r#"
        @approval("waived") permit (principal, action, resource);
        @id("ask") @approval("required") forbid (principal, action, resource)
        when { ["b", "c"].contains(resource.name) };
        @id("no") @reason("c is retired") forbid (principal, action, resource) when { resource.name == "c" };"#;
    let policy = load(text).unwrap();
    let decisions = ["a", "b", "c"].map(|name| decide(&policy, None, &tool(name, "s", false), json!({})));
    assert_eq!(decisions.each_ref().map(PolicyDecision::label), ["allow", "ask", "deny"]);
    assert_eq!(
        decisions[0].grounds().policies,
        ["p.cedar:2".into()],
        "a policy without id is named by its line"
    );
    assert_eq!(decisions[1].grounds().reason, "policy `ask` requires an approval");
    let denied = decisions[2].grounds();
    assert_eq!((denied.policies.as_slice(), denied.reason.as_str()), (&["no".into()][..], "c is retired"));
}

#[test]
fn patterns_and_policies_lead_to_one_decision() {
    let owned = |pattern: &str| vec![pattern.to_owned()];
    let patterns = PatternRules { allow: owned("*@s"), ask: owned("b"), deny: owned("c") };
    let text = r#"@id("no") forbid (principal, action, resource == Tool::"d@s");"#;
    let policy = load_with(text, patterns, DefaultDecision::Allow).unwrap();
    let label = |name| decide(&policy, None, &tool(name, "s", false), json!({})).label();
    assert_eq!(["a", "b", "c", "d"].map(label), ["allow", "ask", "deny", "deny"]);
    let denied = decide(&policy, None, &tool("c", "s", true), json!({}));
    assert_eq!(denied.grounds().policies, ["[approvals] deny: c".into()]);
}

#[test]
fn a_default_of_deny_needs_a_permit_which_waives_no_approval() {
    let text = r#"permit (principal in Group::"staff", action, resource in Source::"files");"#;
    let policy = load_with(text, PatternRules::default(), DefaultDecision::Deny).unwrap();
    let (staff, guest) = (caller("a", &["staff"], &json!({})), caller("b", &["guests"], &json!({})));
    let (read, write) = (tool("read", "files", true), tool("write", "files", false));
    assert_eq!(decide(&policy, Some(&staff), &read, json!({})).label(), "allow");
    assert_eq!(decide(&policy, Some(&staff), &write, json!({})).label(), "ask");
    assert_eq!(decide(&policy, Some(&guest), &read, json!({})).label(), "deny");
    assert_eq!(decide(&policy, None, &read, json!({})).label(), "deny");
    assert_eq!(decide(&policy, Some(&staff), &tool("read", "mail", true), json!({})).label(), "deny");
}

#[test]
fn callers_are_told_apart_by_issuer_subject_and_current_claims() {
    let text = r#"
        @id("key") forbid (principal == Caller::"toolyard:api-key#ci", action, resource);
        @id("claim") forbid (principal, action, resource)
        when { principal.claims has dept && principal.claims.dept == "sales" };
        @id("local") forbid (principal == Caller::"local", action, resource in Source::"mail");"#;
    let policy = load(text).unwrap();
    let read = tool("read", "files", true);
    let label = |identity: &Arc<CallerIdentity>| decide(&policy, Some(identity), &read, json!({})).label();
    assert_eq!(label(&caller("ci", &[], &json!({}))), "deny");
    assert_eq!(label(&Arc::new(CallerIdentity::principal("https://idp.example", "ci"))), "allow");
    // The same caller with another token.
    assert_eq!(label(&caller("ann", &[], &json!({"dept": "sales"}))), "deny");
    assert_eq!(label(&caller("ann", &[], &json!({"dept": "support"}))), "allow");
    assert_eq!(label(&caller("ann", &[], &json!({"dept": "sales"}))), "deny");
    let mail = tool("read", "mail", true);
    assert_eq!(decide(&policy, None, &mail, json!({})).label(), "deny");
    let token = Arc::new(CallerIdentity::local_token([1; 32]));
    assert_eq!(decide(&policy, Some(&token), &mail, json!({})).label(), "deny");
    let anonymous = Arc::new(CallerIdentity::anonymous());
    assert_eq!(decide(&policy, Some(&anonymous), &mail, json!({})).label(), "allow");
}

#[test]
fn agents_and_profiles_are_part_of_the_context() {
    let text = r#"
        forbid (principal, action, resource) when { context has agent && context.agent == Agent::"writer" };
        forbid (principal, action, resource) when { context.profile == Profile::"office" };"#;
    let policy = load(text).unwrap();
    let (read, arguments) = (tool("read", "files", true), RawJson::empty_object());
    let label = |agent, profile| {
        let subject = PolicySubject { agent, profile, ..PolicySubject::default() };
        policy.decide(&PolicyRequest { subject, tool: &read, arguments: &arguments }).label()
    };
    assert_eq!(label(None, ""), "allow");
    assert_eq!(label(Some("reader"), ""), "allow");
    assert_eq!(label(Some("writer"), ""), "deny");
    assert_eq!(label(None, "office"), "deny");
}

#[test]
fn arguments_of_unexpected_form_cannot_evade_a_policy() {
    let text = r#"
        forbid (principal, action, resource) when { context.arguments has path && context.arguments.path like "/etc/*" };
        forbid (principal, action, resource) when { context.arguments has amount && context.arguments.amount > 100 };
        forbid (principal, action, resource)
        when { context.arguments has options.to && context.arguments.options.to.contains("evil") };"#;
    let policy = load(text).unwrap();
    let read = tool("read", "files", true);
    let label = |arguments| decide(&policy, None, &read, arguments).label();
    for harmless in [
        json!({}),
        json!({"path": "/home", "amount": 100, "options": {"to": ["a"]}}),
        json!({"path": null, "other": {"path": "/etc/x"}}),
    ] {
        assert_eq!(label(harmless.clone()), "allow", "{harmless}");
    }
    for hostile in [
        json!({"path": "/etc/passwd"}),
        json!({"path": ["/etc/passwd"]}),
        json!({"path": {"a": 1}}),
        json!({"amount": 101}),
        json!({"amount": 100.5}),
        json!({"amount": 1e300}),
        json!({"amount": u64::MAX}),
        json!({"amount": "1000"}),
        json!({"options": {"to": ["a", "evil"]}}),
        json!({"options": {"to": "evil"}}),
        json!({"options": "evil"}),
    ] {
        assert_eq!(label(hostile.clone()), "deny", "{hostile}");
    }
    let twice = RawJson::parse(r#"{"path": "/home", "path": "/etc/passwd"}"#.to_owned()).unwrap();
    let subject = PolicySubject::default();
    assert!(policy.decide(&PolicyRequest { subject, tool: &read, arguments: &twice }).is_denied());
}

#[test]
fn an_argument_of_another_type_is_not_merely_unequal() {
    let arguments = "context.arguments";
    let conditions = [
        (format!("{arguments} has path && {arguments}.path == \"/etc/passwd\""), "path"),
        (format!("{arguments} has path && \"/etc/passwd\" == {arguments}.path"), "path"),
        (
            format!("{arguments} has path && [\"/etc/passwd\", \"/etc/shadow\"].contains({arguments}.path)"),
            "path",
        ),
        (format!("{arguments} has o.path && [{arguments}.o.path, \"x\"].contains(\"/etc/passwd\")"), "o"),
        (
            format!(
                "{arguments} has path && (if principal.name == \"\" then {arguments}.path else \"\") == \"/etc/passwd\""
            ),
            "path",
        ),
    ];
    for (condition, field) in conditions {
        let policy = load(&format!("forbid (principal, action, resource) when {{ {condition} }};")).unwrap();
        let label = |path: Value| {
            let path = if field == "o" { json!({ "path": path }) } else { path };
            decide(&policy, None, &tool("read", "files", true), json!({ field: path })).label()
        };
        assert_eq!(label(json!("/home")), "allow", "{condition}");
        for hostile in
            [json!("/etc/passwd"), json!(["/etc/passwd"]), json!({"a": "/etc/passwd"}), json!(7), json!(true)]
        {
            assert_eq!(label(hostile.clone()), "deny", "{condition} {hostile}");
        }
    }
    let text = format!(
        "@approval(\"waived\") permit (principal, action, resource) when {{ {arguments} has env && {arguments}.env != \"prod\" }};
         forbid (principal, action, resource) when {{ {arguments} has amount && {arguments}.amount == 100 }};
         forbid (principal, action, resource) when {{ {arguments} has force && {arguments}.force == true }};
         forbid (principal, action, resource) when {{ {arguments} has to && {arguments}.to == [\"evil\"] }};
         forbid (principal, action, resource) when {{ principal.claims has dept && principal.claims.dept == \"sales\" }};"
    );
    let policy = load(&text).unwrap();
    let write = tool("write", "files", false);
    let label = |arguments: Value| decide(&policy, None, &write, arguments).label();
    assert_eq!(label(json!({"env": "test"})), "allow");
    assert_eq!(label(json!({"env": ["prod"]})), "ask", "no waiver for what cannot be compared");
    for hostile in
        [json!({"amount": 100.0}), json!({"amount": "100"}), json!({"force": "true"}), json!({"to": "evil"})]
    {
        assert_eq!(label(hostile.clone()), "deny", "{hostile}");
    }
    assert_eq!(label(json!({"amount": 99, "force": false, "to": ["a"]})), "ask");
    let staff = |dept: Value| caller("ann", &[], &json!({ "dept": dept }));
    assert_eq!(decide(&policy, Some(&staff(json!(["sales"]))), &write, json!({})).label(), "deny");
    assert_eq!(decide(&policy, Some(&staff(json!("it"))), &write, json!({})).label(), "ask");
}

#[test]
fn comparing_two_attributes_cannot_be_evaded_by_another_type() {
    let policy = load(
        r#"forbid (principal, action, resource) when {
            context.arguments has account && principal.claims has frozen
            && context.arguments.account == principal.claims.frozen };
        forbid (principal, action, resource) when {
            context.arguments has from && context.arguments has to && context.arguments.from == context.arguments.to };"#,
    )
    .unwrap();
    let write = tool("transfer", "bank", false);
    let caller = caller("ann", &[], &json!({"frozen": "A1"}));
    let label = |arguments: Value| decide(&policy, Some(&caller), &write, arguments).label();
    assert_eq!(label(json!({"account": "A2", "from": "x", "to": "y"})), "ask");
    for hostile in [
        json!({"account": "A1"}),
        json!({"account": ["A1"]}),
        json!({"account": {"id": "A1"}}),
        json!({"account": 1}),
        json!({"from": "x", "to": "x"}),
        json!({"from": ["x"], "to": "x"}),
        json!({"from": "x", "to": ["x"]}),
    ] {
        assert_eq!(label(hostile.clone()), "deny", "{hostile}");
    }
}

#[test]
fn tools_are_hidden_only_if_no_arguments_can_make_their_call_allowed() {
    let text = r#"
        permit (principal, action, resource == Tool::"read@files") when { context.arguments has path };
        permit (principal, action, resource == Tool::"list@files");
        forbid (principal, action, resource == Tool::"list@files") when { context.arguments has hidden };
        permit (principal, action, resource == Tool::"drop@files");
        forbid (principal, action, resource == Tool::"drop@files");"#;
    let policy = load_with(text, PatternRules::default(), DefaultDecision::Deny).unwrap();
    let shown = |name| policy.may_be_called(&PolicySubject::default(), &tool(name, "files", true));
    assert_eq!(["read", "list", "drop", "other"].map(shown), [true, true, false, false]);
}

#[test]
fn errors_name_file_line_and_policy() {
    let unknown_attribute = "permit (principal, action, resource);\n\n@id(\"typo\")\nforbid (principal, action, resource)\nwhen { resource.nam == \"x\" };";
    let problem = problems(unknown_attribute);
    assert!(problem.starts_with("p.cedar:5: policy `typo`: attribute `nam`"), "{problem}");
    assert!(problems("permit (principal, action, resource)").starts_with("p.cedar:1: "));
    assert!(
        problems("permit (principal, action, resource);\nforbid (principal) x").starts_with("p.cedar:2: ")
    );
    let unguarded =
        "@id(\"a\") forbid (principal, action, resource)\nwhen { context.arguments.path like \"/x\" };";
    assert!(problems(unguarded).starts_with("p.cedar:2: policy `a`: "), "{}", problems(unguarded));
    let twice =
        "@id(\"a\") permit (principal, action, resource);\n@id(\"a\") forbid (principal, action, resource);";
    assert_eq!(problems(twice), "p.cedar:2: policy `a`: another policy has this id, at p.cedar:1");
    let source = |name: &str| PolicySource {
        name: name.into(),
        text: "@id(\"a\") permit (principal, action, resource);".to_owned(),
    };
    let several = [source("p.cedar"), source("q.cedar")];
    let refused = Policy::load(&several, PatternRules::default(), DefaultDecision::Allow).unwrap_err();
    assert_eq!(refused.to_string(), "q.cedar:1: policy `a`: another policy has this id, at p.cedar:1");
    for (text, expected) in [
        (
            "forbid (principal, action, resource) when { context.arguments == context.arguments };",
            "as a whole",
        ),
        (
            "forbid (principal, action, resource) when { context == {} };",
            "`context` cannot be used as a whole",
        ),
        ("@approval(\"required\") permit (principal, action, resource);", "\"waived\""),
        ("@approval(\"waived\") forbid (principal, action, resource);", "\"required\""),
        ("forbid (principal, action == Action::\"view\", resource);", "Action::\"view\""),
        ("forbid (principal == User::\"x\", action, resource);", "User"),
        ("permit (principal == ?principal, action, resource);", "slot"),
        ("forbid (principal, action, resource) when { resource.read_only == \"yes\" };", ""),
    ] {
        assert!(problems(text).contains(expected), "{}", problems(text));
    }
}

#[test]
fn a_policy_that_never_applies_is_a_warning() {
    let policy = load("@id(\"x\") forbid (principal, action, resource)\nwhen { false };").unwrap();
    let warnings: Vec<String> = policy.warnings().iter().map(ToString::to_string).collect();
    assert!(matches!(warnings.as_slice(), [one] if one.contains("policy `x`")), "{warnings:?}");
}
