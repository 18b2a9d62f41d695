//! Replacing, removing and colliding sources, held against a plain model of the same.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use toolyard_core::{BoxFuture, CallContext, SourceKind, ToolCallRequest, ToolError, ToolOutput, ToolSpec};

use super::*;

struct Named(ToolSpec);

impl Tool for Named {
    fn spec(&self) -> &ToolSpec {
        &self.0
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
    names.iter().map(|name| Arc::new(Named(ToolSpec::new(*name, ""))) as Arc<dyn Tool>).collect()
}

fn server(id: &str) -> SourceInfo {
    SourceInfo::new(id, SourceKind::Mcp)
}

#[test]
fn a_name_twice_in_one_source_is_listed() {
    let registration = registry().replace(server("a"), tools(&["x", "x", ""]));
    assert_eq!(registration.tools, 1);
    let rejected: Vec<&str> = registration.rejected.iter().map(|(name, _)| name.as_ref()).collect();
    assert_eq!(rejected, ["x", ""]);
}

#[test]
fn a_collision_is_listed_until_one_of_both_goes() {
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
fn who_holds_a_snapshot_is_not_disturbed() {
    let registry = registry();
    registry.replace(server("a"), tools(&["x"]));
    let before = Arc::clone(&registry.snapshot());
    registry.remove(&"a".into());
    assert!(before.find("x").is_some());
    assert!(registry.snapshot().find("x").is_none());
    assert!(!registry.snapshot().has_source("a"));
}

#[test]
fn a_replaced_source_keeps_its_place_and_its_health() {
    let registry = registry();
    registry.replace(server("a"), tools(&["x"]));
    registry.replace(server("b"), tools(&["x"]));
    let state = |registry: &Registry| Arc::clone(&registry.snapshot().find("x").unwrap().0[0].source.state);
    let before = state(&registry);
    registry.replace(server("a"), tools(&["x", "more"]));
    assert!(Arc::ptr_eq(&before, &state(&registry)));
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

/// Twelve names; those with the same remainder share a capability.
fn name(tool: u8) -> String {
    let word = ["search", "time", "excel"][usize::from(tool) % 3];
    format!("{word}_{tool}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_index_agrees_with_a_plain_list(changes in proptest::collection::vec(any_change(), 0..20)) {
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
            let found = snapshot.find(&name(tool)).map_or(&[] as &[_], |(candidates, _)| candidates);
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
