//! Names are unique, portable and stable.

use proptest::prelude::*;

use super::*;

fn preferred(tool: &str) -> UnnamedTool {
    UnnamedTool { tool: tool.into(), source: None, preferred_source: "first".into() }
}

fn tool_of(source: &str, tool: &str) -> UnnamedTool {
    UnnamedTool { tool: tool.into(), source: Some(source.into()), preferred_source: "first".into() }
}

fn names(tools: &[UnnamedTool]) -> Vec<String> {
    assign_tool_names(tools).names.iter().map(ToString::to_string).collect()
}

#[test]
fn a_shared_name_is_prefixed_with_the_server() {
    let tools =
        [preferred("search"), tool_of("brave", "search"), tool_of("tavily", "search"), preferred("a.b")];
    assert_eq!(names(&tools), ["search", "brave.search", "tavily.search", "a.b"]);
}

#[test]
fn reserved_names_are_prefixed() {
    assert_eq!(
        names(&[preferred("call_tool"), tool_of("other", "call_tool")]),
        ["first.call_tool", "other.call_tool"]
    );
}

#[test]
fn unsupported_names_are_shortened_cleaned_and_get_a_suffix() {
    let long = "x".repeat(100);
    let all =
        names(&[preferred(&long), preferred("读取 数据"), tool_of("skill:notes", "add"), preferred("")]);
    assert!(all.iter().all(|name| is_portable(name) && name.contains('.')), "{all:?}");
    assert_eq!(all[0].len(), MAX_NAME_BYTES);
    assert!(all[1].starts_with("_____.") && all[2].starts_with("skill_notes.add."), "{all:?}");
}

#[test]
fn names_are_never_reassigned_to_another_tool() {
    let original = tool_of("bank", "pay");
    let first = names(std::slice::from_ref(&original));
    assert_eq!(first, ["bank.pay"]);
    let squatted = names(&[original.clone(), preferred("bank.pay")]);
    assert!(!squatted.contains(&"bank.pay".to_owned()), "{squatted:?}");
    let again = names(&[original, preferred("bank.pay"), preferred(&squatted[0])]);
    assert!(!again.contains(&squatted[0]), "{again:?}");
}

/// Sources and tools of few letters, so that names clash often; some far too long.
fn any_tools() -> impl Strategy<Value = Vec<UnnamedTool>> {
    let part = prop_oneof!["[ab.]{1,4}", "[a]{60,70}", "[ab é]{1,3}", Just("call_tool".to_owned())];
    let one = (part.clone(), proptest::option::of(part));
    let tools = one.prop_map(|(tool, source)| UnnamedTool {
        tool: tool.into(),
        source: source.map(SourceId::from),
        preferred_source: "p".into(),
    });
    prop::collection::hash_set(tools, 0..24).prop_map(|set| set.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_name_is_portable_and_unique(tools in any_tools()) {
        let names = assign_tool_names(&tools).names;
        let distinct: HashSet<&Arc<str>> = names.iter().collect();
        prop_assert_eq!(distinct.len(), tools.len());
        for (name, tools) in names.iter().zip(&tools) {
            prop_assert!(is_portable(name) && !RESERVED_NAMES.contains(&&**name), "{name}");
            prop_assert!(name.contains('.') || **name == *tools.tool, "{name}");
        }
    }

    #[test]
    fn names_do_not_depend_on_the_order(tools in any_tools(), rotation in 0_usize..24) {
        let mut rotated = tools.clone();
        rotated.rotate_left(rotation % tools.len().max(1));
        let sorted = |tools: &[UnnamedTool]| {
            let mut pairs: Vec<_> = tools.iter().cloned().zip(assign_tool_names(tools).names).collect();
            pairs.sort();
            pairs
        };
        prop_assert_eq!(sorted(&tools), sorted(&rotated));
    }

    #[test]
    fn a_tool_with_an_unrelated_name_changes_no_name(tools in any_tools(), tool in "[c-z]{1,8}") {
        let before = assign_tool_names(&tools).names;
        let mut with_one_more = tools;
        with_one_more.push(preferred(&tool));
        prop_assert_eq!(&assign_tool_names(&with_one_more).names[..before.len()], &before[..]);
    }

    #[test]
    fn numbering_makes_clashing_names_unique(tools in any_tools()) {
        let rejected: HashSet<Arc<str>> = assign_tool_names(&tools).names.into_iter().collect();
        let names = numbered_names(sorted_by_name(&vec!["same".into(); tools.len()]), &rejected);
        let distinct: HashSet<&Arc<str>> = names.iter().collect();
        prop_assert_eq!(distinct.len(), tools.len());
    }
}
