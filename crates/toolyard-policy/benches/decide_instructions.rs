//! Decides about one call, for callgrind: `decide_instructions none|100|arguments|first`. See `bench/load/instructions/policies`.

use std::{fmt::Write as _, sync::Arc};

use serde_json::json;
use toolyard_core::{
    CallPolicy as _, CallerIdentity, EffectiveHints, PolicyDecision, PolicyRequest, PolicySubject,
    PolicyTool, RawJson, ToolHints,
};
use toolyard_policy::{DefaultDecision, PatternRules, Policy, PolicySource};

/// A hundred policies as a team writes them: by group, by tool and by claim; every tenth reads arguments, each of another tool.
fn policies() -> String {
    let mut text = String::new();
    for number in 0..100 {
        let _ = match number % 10 {
            0 => writeln!(
                text,
                "forbid (principal, action, resource == Tool::\"write_{number}@files\") \
                 when {{ context.arguments has path && context.arguments.path like \"/etc/*\" }};"
            ),
            1..=3 => writeln!(
                text,
                "permit (principal in Group::\"team-{number}\", action, resource in Source::\"files\");"
            ),
            4..=6 => writeln!(
                text,
                "forbid (principal, action, resource) when {{ resource.name like \"delete_{number}_*\" && !principal.groups.contains(\"ops\") }};"
            ),
            7 | 8 => writeln!(
                text,
                "@approval(\"required\") forbid (principal, action, resource) \
                 when {{ resource.destructive && principal.claims has dept && principal.claims.dept == \"dept-{number}\" }};"
            ),
            _ => writeln!(
                text,
                "permit (principal, action, resource) when {{ resource.read_only && principal.scopes.contains(\"scope-{number}\") }};"
            ),
        };
    }
    text
}

#[inline(never)]
fn measured_decision(policy: &Policy, request: &PolicyRequest<'_>) -> PolicyDecision {
    policy.decide(request)
}

fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    let text = if kind == "none" { String::new() } else { policies() };
    let source = PolicySource { name: "bench.cedar".into(), text };
    let Ok(policy) = Policy::load(&[source], PatternRules::default(), DefaultDecision::Allow) else { return };
    let hints = EffectiveHints::of(ToolHints::READ_ONLY, true, ToolHints::default());
    // Of the policies that read arguments, one is about the first tool.
    let name = if kind == "arguments" { "write_50" } else { "read_text_file" };
    let tool = PolicyTool::new(name.into(), "files".into(), true, hints, vec!["file".into()]);
    let identity = |dept: &str| {
        let mut identity = CallerIdentity::principal("https://idp.example", "ann");
        identity.groups = vec!["staff".to_owned(), "team-2".to_owned()];
        identity.scopes = vec!["tools".to_owned()];
        identity.claims.insert("dept".to_owned(), json!(dept));
        identity.claims.insert("email".to_owned(), json!("ann@example.com"));
        Arc::new(identity)
    };
    let arguments = RawJson::from(json!({"path": "/home/ann/notes.txt", "content": "x".repeat(200)}));
    let decide = |identity: &Arc<CallerIdentity>, measured: bool| {
        let subject = PolicySubject { identity: Some(identity), ..PolicySubject::default() };
        let request = PolicyRequest { subject, tool: &tool, arguments: &arguments };
        if measured {
            measured_decision(&policy, std::hint::black_box(&request))
        } else {
            policy.decide(&request)
        }
    };
    // Another token of the same caller: what is remembered is compared with what it says.
    std::hint::black_box(decide(&identity(if kind == "first" { "other" } else { "it" }), false));
    std::hint::black_box(decide(&identity("it"), true));
}
