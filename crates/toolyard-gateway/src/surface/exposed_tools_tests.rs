//! A list that is brought up to date equals one that is made anew.

use proptest::prelude::*;
use toolyard_core::{SourceInfo, SourceKind, Tool, ToolSpec};
use toolyard_hub::ToolHub;

use super::{super::test_tools::EchoTool, *};

fn register(hub: &ToolHub, source: &str, names: &[String]) {
    let tool = |name: &String| {
        let spec = ToolSpec::new(name.as_str(), format!("Search the {name} of {source}"));
        Arc::new(EchoTool(spec, source.to_owned())) as Arc<dyn Tool>
    };
    let trusted = source.len().is_multiple_of(2);
    hub.register(SourceInfo::new(source, SourceKind::Mcp).trusted(trusted), names.iter().map(tool).collect());
}

/// Everything that a list says about its tools, and how each candidate of the hub is found in it.
fn described(exposed: &ExposedTools) -> Vec<String> {
    let tool = |tool: &ExposedTool| {
        format!("{} {:?} {:?} {:?}", tool.name, tool.source, tool.candidate, tool.distinction)
    };
    let mut lines: Vec<String> = exposed.tools.iter().map(tool).collect();
    for (name, candidates) in exposed.snapshot.candidates_by_name() {
        for candidate in candidates.all() {
            lines.push(format!(
                "{candidate:?} is {:?}",
                exposed.find_candidate(candidate).map(|tool| &tool.name)
            ));
        }
        lines.push(format!(
            "{name}: {:?}",
            exposed.with_own_name(name).iter().map(|tool| &tool.name).collect::<Vec<_>>()
        ));
    }
    let first = exposed.tools.len();
    lines.get_mut(first..).unwrap_or_default().sort();
    lines.push(format!("{:?} {:?} {:?}", exposed.size, exposed.source_counts, exposed.capability_counts));
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Names of few letters, with dots, so that many clash with `source.tool`, and some that are reserved.
    #[test]
    fn an_updated_list_equals_a_new_one(
        changes in proptest::collection::vec(
            ("[ab]{1,2}", proptest::collection::hash_set(prop_oneof![4 => "[ab.]{1,4}", 1 => Just("call_tool".to_owned())], 0..7)),
            1..14,
        ),
    ) {
        let (hub, profile) = (ToolHub::default(), Arc::new(Profile::default()));
        // Enough unrelated tools that a change is small.
        register(&hub, "many", &(0..200).map(|number| format!("tool_{number}")).collect::<Vec<_>>());
        let mut exposed = ExposedTools::new(hub.snapshot(), &profile);
        for (source, names) in changes {
            if names.is_empty() {
                hub.remove(&source.as_str().into());
            } else {
                register(&hub, &source, &names.into_iter().collect::<Vec<_>>());
            }
            let anew = ExposedTools::new(hub.snapshot(), &profile);
            let updated = exposed.updated(&hub.snapshot());
            if let Some(updated) = &updated {
                prop_assert_eq!(described(updated), described(&anew));
            }
            exposed = updated.unwrap_or(anew);
        }
    }
}

#[test]
fn a_new_source_is_added_to_a_large_list_without_making_it_anew() {
    let (hub, profile) = (ToolHub::default(), Arc::new(Profile::default()));
    for source in 0..30 {
        register(
            &hub,
            &format!("s{source}"),
            &(0..100).map(|number| format!("tool_{source}_{number}")).collect::<Vec<_>>(),
        );
    }
    let exposed = ExposedTools::new(hub.snapshot(), &profile);
    register(&hub, "new", &["aaa".to_owned(), "tool_3_7".to_owned(), "zzz".to_owned()]);
    let updated = exposed.updated(&hub.snapshot()).unwrap();
    assert_eq!(described(&updated), described(&ExposedTools::new(hub.snapshot(), &profile)));
    assert_eq!(updated.tools.len(), 3003);
    hub.remove(&"new".into());
    let back = updated.updated(&hub.snapshot()).unwrap();
    assert_eq!(described(&back), described(&exposed));
}
