//! Names of shared tools: every name that is shown can be called and reaches the tool it is shown for.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::json;
use toolyard_core::{
    BoxFuture, CallContext, CapabilityTable, ClaimTime, ErrorKind, NameClaim, NameClaims, SourceInfo,
    SourceKind, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec,
};

use super::*;
use crate::{
    RouteCase, RoutingRules, registry::snapshot::Registry, resilience::breaker::BreakerSettings, route,
    route_within,
};

struct ClaimedTool(ToolSpec, NameClaim);

impl Tool for ClaimedTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn name_claim(&self) -> Option<&NameClaim> {
        Some(&self.1)
    }

    fn call<'a>(
        &'a self,
        _: &'a ToolCallRequest,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Err(ToolError::new(ErrorKind::Internal, "not callable in this test")) })
    }
}

fn scope(folder: &str) -> SourceScope {
    let (folders, labels) = (vec![folder.to_owned()], vec![folder.to_owned()]);
    SourceScope { program: Some("files".to_owned()), folders, labels }
}

fn registry_with(rules: RoutingRules) -> Registry {
    Registry::new(rules, CapabilityTable::built_in().clone(), BreakerSettings::default())
}

/// Registers sources as the client does: each claims its names with its first list.
fn register(registry: &Registry, sources: &[(SourceInfo, Vec<String>)]) {
    let mut claims = NameClaims::default();
    claims.add_sources(sources.iter().map(|(info, _)| info.id.clone()));
    for (now, (info, names)) in sources.iter().enumerate() {
        let claim = |name: &Arc<str>, claims: &mut NameClaims| {
            claims.claim(name, &info.id, None, ClaimTime::FirstApproval, now as i64)
        };
        let tool = |name: &String| {
            let claim = claim(&name.as_str().into(), &mut claims);
            Arc::new(ClaimedTool(ToolSpec::new(name.as_str(), "Reads"), claim)) as Arc<dyn Tool>
        };
        let tools = names.iter().map(tool).collect();
        registry.replace(info.clone(), tools);
    }
}

/// `files` with `~/docs` and `filesystem` with `/data`, as two instances of one program.
fn two_instances(rules: RoutingRules, trusted: bool) -> Registry {
    let registry = registry_with(rules);
    let instance = |id: &str, folder: &str| {
        let info = SourceInfo::new(id, SourceKind::Mcp).scope(scope(folder)).trusted(trusted);
        (info, vec!["read".to_owned(), "write".to_owned()])
    };
    register(&registry, &[instance("files", "~/docs"), instance("filesystem", "/data")]);
    registry
}

fn routed(registry: &Registry, name: &str, arguments: serde_json::Value) -> Result<String, ToolError> {
    let route = route(&registry.snapshot(), &ToolCallRequest::new(name, arguments))?;
    let sources: Vec<&str> = route.candidates.iter().map(|tool| tool.source_id().as_str()).collect();
    Ok(sources.join(","))
}

#[test]
fn an_ambiguous_name_is_refused_with_the_names_that_can_be_called() {
    for trusted in [false, true] {
        let registry = two_instances(RoutingRules::default(), trusted);
        let error = routed(&registry, "read", json!({})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert_eq!(error.to_string(), "read: 2 servers have a tool of this name; none was called");
        assert_eq!(error.hint(), Some("call one of `files.read` (~/docs), `filesystem.read` (/data)"));
        assert_eq!(routed(&registry, "filesystem.read", json!({})).unwrap(), "filesystem");
        assert_eq!(routed(&registry, "read@files", json!({})).unwrap(), "files");
        let error = routed(&registry, "reed", json!({})).unwrap_err();
        assert_eq!(error.hint(), Some("did you mean `files.read` or `filesystem.read`?"));
    }
}

#[test]
fn arguments_that_fit_one_folder_select_its_server() {
    let registry = two_instances(RoutingRules::default(), false);
    let selects = |arguments| routed(&registry, "write", arguments).ok();
    assert_eq!(selects(json!({"path": "/data/a.csv"})).as_deref(), Some("filesystem"));
    assert_eq!(selects(json!({"path": "~/docs/a.txt"})).as_deref(), Some("files"));
    assert_eq!(selects(json!({"paths": ["/data/a", "/data/b"]})).as_deref(), Some("filesystem"));
    assert_eq!(selects(json!({"edit": {"file": "file:///data/a"}})).as_deref(), Some("filesystem"));
    for undecided in [
        json!({"path": "a.csv"}),
        json!({"path": "/etc/passwd"}),
        json!({"path": "/data/../etc/passwd"}),
        json!({"path": "/database/a"}),
        json!({"paths": ["/data/a", "~/docs/b"]}),
        json!({"path": "a.txt", "content": "/data/a"}),
        json!({"path": 7}),
    ] {
        assert_eq!(selects(undecided.clone()), None, "{undecided}");
    }
    let request = ToolCallRequest::new("write", json!({"path": "/data/a"}));
    assert_eq!(route(&registry.snapshot(), &request).unwrap().case, RouteCase::ByArguments);
}

#[test]
fn a_server_without_known_folders_may_take_any_path() {
    let registry = two_instances(RoutingRules::default(), false);
    let known = registry.snapshot().sources().into_iter();
    let mut sources: Vec<(SourceInfo, Vec<String>)> =
        known.map(|entry| (entry.source.info.clone(), vec!["write".to_owned()])).collect();
    sources.push((SourceInfo::new("anywhere", SourceKind::Mcp), vec!["write".to_owned()]));
    register(&registry, &sources);
    assert_eq!(
        routed(&registry, "write", json!({"path": "/data/a"})).unwrap_err().kind(),
        ErrorKind::Refused
    );
}

#[test]
fn decisions_of_the_operator_hold() {
    let pins = HashMap::from([("read".to_owned(), SourceId::from("filesystem"))]);
    let registry = two_instances(RoutingRules { pins, ..RoutingRules::default() }, false);
    assert_eq!(routed(&registry, "read", json!({"path": "~/docs/a"})).unwrap(), "filesystem");
    assert!(routed(&registry, "write", json!({})).is_err());
    let equivalent = HashMap::from([("read".to_owned(), vec!["files".into(), "filesystem".into()])]);
    let registry = two_instances(RoutingRules { equivalent, ..RoutingRules::default() }, false);
    assert_eq!(routed(&registry, "read", json!({})).unwrap(), "files,filesystem");
    let registry =
        two_instances(RoutingRules { deny: vec!["*@files".to_owned()], ..RoutingRules::default() }, false);
    let error = routed(&registry, "read", json!({})).unwrap_err();
    assert_eq!(error.hint(), Some("call one of `filesystem.read`"), "a denied tool is not suggested");
    let registry = two_instances(
        RoutingRules { deny: vec!["*@filesystem".to_owned()], ..RoutingRules::default() },
        false,
    );
    assert_eq!(routed(&registry, "read", json!({})).unwrap(), "files", "a denied tool contests nothing");
}

#[test]
fn a_profile_with_one_instance_has_the_bare_names() {
    let registry = two_instances(RoutingRules::default(), false);
    let profile = Profile { servers: vec!["filesystem".to_owned()], ..Profile::default() };
    let snapshot = registry.snapshot();
    let request = ToolCallRequest::new("read", json!({}));
    let route = route_within(&snapshot, &request, Some(&profile)).unwrap();
    assert_eq!(route.candidates[0].source_id().as_str(), "filesystem");
    let tool = snapshot.find_in("read", "filesystem").unwrap();
    assert_eq!(snapshot.callable_name(tool, Some(&profile)).as_deref(), Some("read"));
    assert_eq!(snapshot.distinction(tool, Some(&profile)), None);
    assert_eq!(snapshot.callable_name(tool, None).as_deref(), Some("filesystem.read"));
    assert_eq!(snapshot.distinction(tool, None).as_deref(), Some("/data"));
}

/// Ids and tools of few letters and dots, so that names clash often.
fn any_sources() -> impl Strategy<Value = Vec<(SourceInfo, Vec<String>)>> {
    let source = (
        "[ab](\\.[ab])?",
        any::<bool>(),
        0..3_usize,
        prop::collection::btree_set("[ab](\\.[ab]){0,2}", 1..5),
    );
    let source = source.prop_map(|(id, trusted, folder, names)| {
        let info = SourceInfo::new(id.as_str(), SourceKind::Mcp).trusted(trusted);
        let info = match folder {
            0 => info,
            folder => info.scope(scope(&format!("/f{folder}"))),
        };
        (info, names.into_iter().collect())
    });
    prop::collection::vec(source, 1..6).prop_map(|mut sources| {
        sources.sort_by(|one, other| one.0.id.cmp(&other.0.id));
        sources.dedup_by(|one, other| one.0.id == other.0.id);
        sources
    })
}

fn any_profile() -> impl Strategy<Value = Option<Profile>> {
    let profile = (prop::collection::vec("[ab](\\.[ab])?", 0..3), prop::collection::vec("[ab]\\*", 0..2));
    prop::option::of(profile.prop_map(|(servers, deny)| Profile { servers, deny, ..Profile::default() }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever servers offer: each tool of a server has a name, that name reaches this tool and, unless an equivalent shares
    /// it, no other.
    #[test]
    fn every_tool_has_a_name_that_reaches_it_and_no_other(sources in any_sources(), profile in any_profile(), denied in prop::option::of("[ab]")) {
        let rules = RoutingRules { deny: denied.into_iter().collect(), ..RoutingRules::default() };
        let registry = registry_with(rules);
        register(&registry, &sources);
        let (snapshot, profile) = (registry.snapshot(), profile.as_ref());
        let offered: Vec<Arc<ToolCandidate>> = snapshot
            .candidates_by_name()
            .flat_map(|(_, found)| found.all())
            .filter(|tool| profile.is_none_or(|profile| profile.offers(tool)))
            .map(Arc::clone)
            .collect();
        for tool in &offered {
            let name = snapshot.callable_name(tool, profile);
            let Some(name) = name else { return Err(TestCaseError::fail(format!("{tool:?} cannot be called"))) };
            let request = ToolCallRequest::new(&*name, json!({}));
            let route = route_within(&snapshot, &request, profile).map_err(|error| TestCaseError::fail(format!("{name}: {error}")))?;
            prop_assert!(route.candidates.iter().any(|candidate| Arc::ptr_eq(candidate, tool)), "{name} reaches {:?}", route.candidates);
            prop_assert!(route.candidates.iter().all(|candidate| candidate.equivalent_to(tool) || Arc::ptr_eq(candidate, tool)));
        }
    }

    /// A bare call reaches a tool only if no other offered tool of the name has the same right to it, or if it is the only
    /// one with the folder of the arguments.
    #[test]
    fn no_bare_call_reaches_a_tool_that_nobody_selected(sources in any_sources(), folder in 1..3_usize) {
        let registry = registry_with(RoutingRules::default());
        register(&registry, &sources);
        let snapshot = registry.snapshot();
        let path = format!("/f{folder}/x");
        let names: Vec<Arc<str>> = snapshot.candidates_by_name().map(|(name, _)| Arc::clone(name)).collect();
        for name in names {
            let request = ToolCallRequest::new(&*name, json!({"path": path}));
            let Ok(route) = route(&snapshot, &request) else { continue };
            let contenders = snapshot.contenders(&name, None);
            if route.case == RouteCase::ByArguments {
                let fits = |tool: &Arc<ToolCandidate>| tool.source.info.scope.contains(&path);
                prop_assert!(contenders.iter().all(|tool| fits(tool).is_some()));
                prop_assert_eq!(contenders.iter().filter(|tool| fits(tool) == Some(true)).count(), 1);
                prop_assert_eq!(fits(&route.candidates[0]), Some(true));
            } else {
                prop_assert!(contenders.is_empty());
            }
        }
    }
}
