//! Replacing, removing and colliding sources, compared with a simple model.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use toolyard_core::{
    BoxFuture, CallContext, ClaimTime, ErrorKind, NameClaim, NameClaims, SourceKind, ToolCallRequest,
    ToolError, ToolOutput, ToolSpec,
};

use super::*;
use crate::routing::rules::SourcePreference;

struct UncallableTool(ToolSpec, Option<NameClaim>);

impl Tool for UncallableTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn name_claim(&self) -> Option<&NameClaim> {
        self.1.as_ref()
    }

    fn call<'a>(
        &'a self,
        _request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(ToolOutput::text("")) })
    }
}

fn registry() -> Registry {
    Registry::new(RoutingRules::default(), CapabilityTable::built_in().clone(), BreakerSettings::default())
}

fn tools(names: &[&str]) -> Vec<Arc<dyn Tool>> {
    names
        .iter()
        .map(|name| Arc::new(UncallableTool(ToolSpec::new(*name, ""), None)) as Arc<dyn Tool>)
        .collect()
}

fn claimed(name: &str, claim: &NameClaim) -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(UncallableTool(ToolSpec::new(name, ""), Some(claim.clone())))]
}

fn yielding(claimed_at: i64, owner: &str) -> NameClaim {
    NameClaim { claimed_at, yields_to: Some(owner.into()), ..NameClaim::default() }
}

/// The source that a call by name alone reaches.
fn reached(registry: &Registry, name: &str) -> Option<String> {
    let request = ToolCallRequest::new(name, serde_json::json!({}));
    let route = crate::route(&registry.snapshot(), &request).ok()?;
    Some(route.candidates[0].source_id().to_string())
}

fn server(id: &str) -> SourceInfo {
    SourceInfo::new(id, SourceKind::Mcp)
}

#[test]
fn a_duplicate_name_in_one_source_is_rejected() {
    let registration = registry().replace(server("a"), tools(&["x", "x", ""]));
    assert_eq!(registration.tools, 1);
    let rejected: Vec<&str> = registration.rejected.iter().map(|(name, _)| name.as_ref()).collect();
    assert_eq!(rejected, ["x", ""]);
}

#[test]
fn a_name_with_an_at_sign_is_rejected() {
    let registration = registry().replace(server("a"), tools(&["x@b", "y"]));
    assert_eq!((registration.tools, registration.rejected.len()), (1, 1));
}

#[test]
fn a_name_that_could_pose_as_text_is_rejected() {
    let names = [
        "list all",
        "list_all(read-only)",
        "a[b]",
        "<b>",
        "tab\tbed",
        "no\u{a0}break",
        "列出_文件",
        "a.b/c:d-e",
    ];
    let registration = registry().replace(server("a"), tools(&names));
    assert_eq!((registration.tools, registration.rejected.len()), (2, 6), "{registration:?}");
}

#[test]
fn a_name_reaches_its_owner_or_nobody() {
    let registry = registry();
    registry.replace(server("aweather"), claimed("pay", &yielding(2, "bank")));
    assert_eq!(reached(&registry, "pay"), None);
    let request = ToolCallRequest::new("pay", serde_json::json!({}));
    let refused = crate::route(&registry.snapshot(), &request).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "pay: the name belongs to source `bank`, which does not offer this tool now"
    );
    registry.replace(server("bank"), claimed("pay", &NameClaim::default()));
    assert_eq!(reached(&registry, "pay").as_deref(), Some("bank"));
    let named = crate::route(&registry.snapshot(), &request.with_source("aweather")).unwrap();
    assert_eq!(named.candidates[0].source_id().as_str(), "aweather");
    registry.remove(&"bank".into());
    assert_eq!(reached(&registry, "pay"), None);
}

#[test]
fn a_quarantined_owner_keeps_its_name() {
    let registry = registry();
    registry.replace(server("aweather"), claimed("pay", &yielding(2, "bank")));
    let notice = QuarantineNotice { tool: "pay".to_owned(), reason: "changed".to_owned() };
    registry.replace_with_quarantined(server("bank"), Vec::new(), vec![notice]);
    for request in [
        ToolCallRequest::new("pay", serde_json::json!({})),
        ToolCallRequest::new("pay", serde_json::json!({})).with_source("bank"),
    ] {
        let refused = crate::route(&registry.snapshot(), &request).unwrap_err();
        assert_eq!(
            (refused.kind(), refused.to_string().as_str()),
            (ErrorKind::Quarantined, "pay (bank): changed")
        );
    }
}

#[test]
fn pins_equivalents_and_preferred_kinds_of_the_operator_override_claims() {
    let one = |rules: RoutingRules, owner: &str| {
        let registry = Registry::new(rules, CapabilityTable::built_in().clone(), BreakerSettings::default());
        registry.replace(server("aweather"), claimed("pay", &yielding(2, owner)));
        reached(&registry, "pay")
    };
    let pins = [("pay".to_owned(), "aweather".into())].into();
    assert!(one(RoutingRules { pins, ..RoutingRules::default() }, "bank").is_some());
    let equivalent: HashMap<_, _> = [("pay".to_owned(), vec!["aweather".into(), "bank".into()])].into();
    let equivalent = RoutingRules { equivalent, ..RoutingRules::default() };
    assert!(one(equivalent.clone(), "bank").is_some() && one(equivalent, "shop").is_none());
    let mcp_first = RoutingRules { prefer: SourcePreference::McpFirst, ..RoutingRules::default() };
    assert!(one(mcp_first.clone(), "native").is_some() && one(mcp_first, "bank").is_none());
    assert!(one(RoutingRules::default(), "native").is_none());
}

#[test]
fn a_profile_without_the_owner_offers_the_name_of_the_first_claim() {
    use crate::{Profile, route_within};
    let registry = registry();
    registry.replace(server("aweather"), claimed("pay", &yielding(3, "bank")));
    registry.replace(server("zeta"), claimed("pay", &yielding(2, "bank")));
    let request = ToolCallRequest::new("pay", serde_json::json!({}));
    let within = |servers: &[&str]| {
        let servers = servers.iter().map(|server| (*server).to_owned()).collect();
        let profile = Profile { servers, ..Profile::default() };
        let route = route_within(&registry.snapshot(), &request, Some(&profile)).ok()?;
        Some(route.candidates[0].source_id().to_string())
    };
    assert_eq!(within(&["aweather", "zeta"]).as_deref(), Some("zeta"));
    assert_eq!(within(&["aweather"]).as_deref(), Some("aweather"));
    assert_eq!(within(&["aweather", "bank"]), None, "the name belongs to a source of the profile");
}

#[test]
fn a_collision_is_listed_until_one_source_drops_the_name() {
    let registry = registry();
    registry.replace(server("a"), tools(&["x", "y"]));
    assert_eq!(registry.replace(server("b"), tools(&["x"])).collisions, ["x".into()]);
    let names = |registry: &Registry| -> Vec<String> {
        registry.snapshot().collisions().iter().map(|collision| collision.name.to_string()).collect()
    };
    assert_eq!(names(&registry), ["x"]);
    registry.replace(server("b"), tools(&["z"]));
    assert!(names(&registry).is_empty());
}

#[test]
fn a_held_snapshot_does_not_change() {
    let registry = registry();
    registry.replace(server("a"), tools(&["x"]));
    let before = Arc::clone(&registry.snapshot());
    registry.remove(&"a".into());
    assert!(before.find("x").is_some());
    assert!(registry.snapshot().find("x").is_none());
    assert!(!registry.snapshot().has_source("a"));
}

#[test]
fn a_replaced_source_keeps_its_position_and_health() {
    let registry = registry();
    registry.replace(server("a"), tools(&["x"]));
    registry.replace(server("b"), tools(&["x"]));
    let state =
        |registry: &Registry| Arc::clone(&registry.snapshot().find("x").unwrap().equivalents[0].source.state);
    let before = state(&registry);
    registry.replace(server("a"), tools(&["x", "more"]));
    assert!(Arc::ptr_eq(&before, &state(&registry)));
}

#[test]
fn a_name_shared_by_many_sources_is_found_in_each() {
    let registry = registry();
    let id = |at: usize| format!("s{at}");
    for at in 0..200 {
        registry.replace(server(&id(at)).trusted(at % 2 == 0), tools(&["x"]));
    }
    let snapshot = registry.snapshot();
    let found = snapshot.find("x").unwrap();
    assert_eq!((found.equivalents.len(), found.others.len(), found.uncompared_count()), (32, 32, 136));
    for at in 0..200 {
        let selected = snapshot.find_in("x", &id(at)).unwrap();
        assert_eq!(selected.source_id().as_str(), id(at));
    }
    assert!(snapshot.find_in("x", "nobody").is_none());
    let request = ToolCallRequest::new("x", serde_json::json!({}));
    let route = crate::route(&snapshot, &request).unwrap();
    assert_eq!((route.skipped.len(), route.more_skipped_count), (32, 136));
    let hint = crate::routing::explain::other_sources_hint(&snapshot, &route, "x").unwrap();
    assert!(hint.ends_with("`s15` and 160 more; to use one, name its source: `s1.x`"), "{hint}");
}

#[test]
fn later_sources_move_up_when_earlier_ones_are_removed() {
    let registry = registry();
    for at in 0..100 {
        registry.replace(server(&format!("s{at}")), tools(&["x"]));
    }
    for at in 0..90 {
        registry.remove(&format!("s{at}").into());
    }
    let ids = |registry: &Registry| -> Vec<String> {
        registry.snapshot().find("x").unwrap().all().map(|tool| tool.source_id().to_string()).collect()
    };
    assert_eq!(ids(&registry), (90..100).map(|at| format!("s{at}")).collect::<Vec<_>>());
    // A source of another kind gets another position; the old one must be freed.
    registry.replace(SourceInfo::new("s99", SourceKind::Skill), tools(&["x"]));
    assert_eq!(ids(&registry)[0], "s99");
    assert_eq!(ids(&registry).len(), 10);
}

#[derive(Debug, Clone)]
enum Change {
    Replace(u8, Vec<u8>),
    Remove(u8),
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..6_u8, proptest::collection::vec(0..12_u8, 0..6)).prop_map(|(source, tools)| Change::Replace(source, tools)),
        1 => (0..6_u8).prop_map(Change::Remove),
    ]
}

/// Twelve names; those with the same remainder of division by three share a capability.
fn name(tool: u8) -> String {
    let word = ["search", "time", "excel"][usize::from(tool) % 3];
    format!("{word}_{tool}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// One name in up to 120 sources of all kinds, more than the 64 that are considered; they are added, changed and removed.
    #[test]
    fn a_name_shared_by_many_sources_stays_in_order(changes in proptest::collection::vec((0..120_u8, 0..4_u8), 0..400)) {
        let rules = RoutingRules { pins: [("x".to_owned(), "s7".into())].into(), ..RoutingRules::default() };
        let registry = Registry::new(rules, CapabilityTable::built_in().clone(), BreakerSettings::default());
        let mut model: BTreeMap<u8, (bool, u8, usize)> = BTreeMap::new();
        for (at, (source, kind)) in changes.into_iter().enumerate() {
            let id = format!("s{source}");
            let kind = match kind {
                0 => { registry.remove(&id.as_str().into()); model.remove(&source); continue }
                1 => SourceKind::Native,
                2 => SourceKind::Skill,
                _ => SourceKind::Mcp,
            };
            registry.replace(SourceInfo::new(id.as_str(), kind), tools(&["x"]));
            let sequence = model.get(&source).map_or(at, |(_, _, sequence)| *sequence);
            model.insert(source, (source != 7, kind.priority(), sequence));
        }
        let mut expected: Vec<(&(bool, u8, usize), String)> =
            model.iter().map(|(source, place)| (place, format!("s{source}"))).collect();
        expected.sort();
        let snapshot = registry.snapshot();
        let found: Vec<_> = snapshot.find("x").into_iter().flat_map(NameMatches::all).collect();
        prop_assert_eq!(found.len(), expected.len());
        // Equivalents are moved to the front of the first 64; all others keep their order.
        let (first, beyond_first) = found.split_at(found.len().min(64));
        let ids: BTreeSet<&str> = first.iter().map(|tool| tool.source_id().as_str()).collect();
        prop_assert_eq!(ids, expected.iter().take(64).map(|(_, id)| id.as_str()).collect::<BTreeSet<_>>());
        let beyond_first: Vec<&str> = beyond_first.iter().map(|tool| tool.source_id().as_str()).collect();
        prop_assert_eq!(beyond_first, expected.iter().skip(64).map(|(_, id)| id.as_str()).collect::<Vec<_>>());
        for (_, id) in &expected {
            prop_assert_eq!(snapshot.find_in("x", id).map(|tool| tool.source_id().as_str()), Some(id.as_str()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Servers offer and withdraw a tool in any order; the claims are decided as they are for real servers.
    #[test]
    fn a_bare_name_reaches_its_first_source_or_nobody(changes in proptest::collection::vec((0..5_u8, any::<bool>()), 1..40)) {
        let (registry, mut claims) = (registry(), NameClaims::default());
        let mut first = None;
        for (now, (source, offers)) in changes.into_iter().enumerate() {
            let id = format!("s{source}");
            let tools = if offers {
                first.get_or_insert_with(|| id.clone());
                claimed("pay", &claims.claim(&"pay".into(), &id.as_str().into(), None, ClaimTime::Later, now as i64))
            } else {
                Vec::new()
            };
            registry.replace(server(&id), tools);
            let owner_offers = first.as_ref().is_some_and(|first| registry.snapshot().find_in("pay", first).is_some());
            prop_assert_eq!(reached(&registry, "pay"), first.clone().filter(|_| owner_offers));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_index_agrees_with_the_model(changes in proptest::collection::vec(any_change(), 0..20)) {
        let registry = registry();
        let mut model: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for change in changes {
            match change {
                Change::Replace(source, listed) => {
                    let names: Vec<String> = listed.into_iter().map(name).collect();
                    let source = format!("s{source}");
                    registry.replace(server(&source), tools(&names.iter().map(String::as_str).collect::<Vec<_>>()));
                    model.insert(source, names.into_iter().collect());
                }
                Change::Remove(source) => {
                    let source = format!("s{source}");
                    prop_assert_eq!(registry.remove(&source.as_str().into()), model.remove(&source).is_some());
                }
            }
        }
        let snapshot = registry.snapshot();
        for tool in 0..12 {
            let expected: BTreeSet<&String> =
                model.iter().filter(|(_, names)| names.contains(&name(tool))).map(|(source, _)| source).collect();
            let found: Vec<_> = snapshot.find(&name(tool)).into_iter().flat_map(NameMatches::all).collect();
            let sources: BTreeSet<String> = found.iter().map(|candidate| candidate.source_id().to_string()).collect();
            prop_assert_eq!(sources.iter().collect::<BTreeSet<_>>(), expected.clone());
            prop_assert_eq!(found.len(), expected.len());
            let collides = snapshot.collisions().iter().any(|collision| *collision.name == *name(tool));
            prop_assert_eq!(collides, expected.len() > 1);
        }
        for (capability, remainder) in [("search", 0), ("time", 1), ("spreadsheet", 2)] {
            let expected = model.values().flatten().filter(|known| (0..12).any(|t| t % 3 == remainder && **known == name(t))).count();
            prop_assert_eq!(snapshot.find_by_capability(capability).len(), expected);
        }
    }
}

/// Rules that pin the name `a` to one of three servers, and prefer one kind of source.
fn rules_of(pinned: usize, mcp_first: bool) -> RoutingRules {
    let prefer = if mcp_first { SourcePreference::McpFirst } else { SourcePreference::NativeFirst };
    let pins = [("a".to_owned(), format!("server{pinned}").as_str().into())].into();
    RoutingRules { prefer, pins, ..RoutingRules::default() }
}

proptest! {
    #[test]
    fn a_reconfigured_registry_equals_a_new_one(
        sources in proptest::collection::vec((any::<bool>(), proptest::sample::subsequence(vec!["a", "b", "c"], 0..=3)), 1..4),
        before in (0usize..4, any::<bool>()),
        after in (0usize..4, any::<bool>()),
    ) {
        let build = |rules: RoutingRules| {
            let registry = Registry::new(rules, CapabilityTable::built_in().clone(), BreakerSettings::default());
            for (number, (is_native, names)) in sources.iter().enumerate() {
                let info = match is_native {
                    true => SourceInfo::new(format!("native{number}").as_str(), SourceKind::Native),
                    false => server(&format!("server{number}")),
                };
                registry.replace(info, tools(names));
            }
            registry
        };
        let reconfigured = build(rules_of(before.0, before.1));
        let changes = reconfigured.changes();
        reconfigured.reconfigure(rules_of(after.0, after.1), CapabilityTable::built_in().clone());
        prop_assert!(changes.has_changed().unwrap(), "clients hear of new names");
        let fresh = build(rules_of(after.0, after.1));
        for name in ["a", "b", "c"] {
            prop_assert_eq!(reached(&reconfigured, name), reached(&fresh, name));
        }
        let sources = |registry: &Registry| registry.snapshot().sources().len();
        prop_assert_eq!(sources(&reconfigured), sources(&fresh));
        prop_assert_eq!(reconfigured.priority(SourceKind::Mcp), fresh.priority(SourceKind::Mcp));
    }
}
