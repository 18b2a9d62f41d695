//! Names are short, plain, one for each, and stay what they are.

use proptest::prelude::*;

use super::*;

fn bare(tool: &str) -> Wanted {
    Wanted { tool: tool.into(), source: None, preferred: "first".into() }
}

fn of(source: &str, tool: &str) -> Wanted {
    Wanted { tool: tool.into(), source: Some(source.into()), preferred: "first".into() }
}

fn names(wanted: &[Wanted]) -> Vec<String> {
    offered_names(wanted).iter().map(ToString::to_string).collect()
}

#[test]
fn bare_where_it_can_be_and_by_server_where_not() {
    let wanted = [bare("search"), of("brave", "search"), of("tavily", "search"), bare("a.b")];
    assert_eq!(names(&wanted), ["search", "brave.search", "tavily.search", "a.b"]);
}

#[test]
fn reserved_names_are_nobodys() {
    assert_eq!(names(&[bare("call_tool"), of("other", "call_tool")]), ["first.call_tool", "other.call_tool"]);
}

#[test]
fn what_clients_do_not_take_is_cut_cleaned_and_told_apart() {
    let long = "x".repeat(100);
    let all = names(&[bare(&long), bare("读取 数据"), of("skill:notes", "add"), bare("")]);
    assert!(all.iter().all(|name| is_plain(name) && name.contains('.')), "{all:?}");
    assert_eq!(all[0].len(), LONGEST_NAME);
    assert!(all[1].starts_with("_____.") && all[2].starts_with("skill_notes.add."), "{all:?}");
}

#[test]
fn nobody_inherits_a_name_that_was_somebodys() {
    let victim = of("bank", "pay");
    let first = names(std::slice::from_ref(&victim));
    assert_eq!(first, ["bank.pay"]);
    let squatted = names(&[victim.clone(), bare("bank.pay")]);
    assert!(!squatted.contains(&"bank.pay".to_owned()), "{squatted:?}");
    let again = names(&[victim, bare("bank.pay"), bare(&squatted[0])]);
    assert!(!again.contains(&squatted[0]), "{again:?}");
}

/// Sources and tools of few letters, so that names clash often; some far too long.
fn any_wanted() -> impl Strategy<Value = Vec<Wanted>> {
    let part = prop_oneof!["[ab.]{1,4}", "[a]{60,70}", "[ab é]{1,3}", Just("call_tool".to_owned())];
    let one = (part.clone(), proptest::option::of(part));
    let wanted = one.prop_map(|(tool, source)| Wanted {
        tool: tool.into(),
        source: source.map(SourceId::from),
        preferred: "p".into(),
    });
    prop::collection::hash_set(wanted, 0..24).prop_map(|set| set.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_name_is_plain_and_nobody_elses(wanted in any_wanted()) {
        let names = offered_names(&wanted);
        let different: HashSet<&Arc<str>> = names.iter().collect();
        prop_assert_eq!(different.len(), wanted.len());
        for (name, wanted) in names.iter().zip(&wanted) {
            prop_assert!(is_plain(name) && !RESERVED.contains(&&**name), "{name}");
            prop_assert!(name.contains('.') || **name == *wanted.tool, "{name}");
        }
    }

    #[test]
    fn order_does_not_matter(wanted in any_wanted(), turn in 0_usize..24) {
        let mut turned = wanted.clone();
        turned.rotate_left(turn % wanted.len().max(1));
        let sorted = |wanted: &[Wanted]| {
            let mut pairs: Vec<_> = wanted.iter().cloned().zip(offered_names(wanted)).collect();
            pairs.sort();
            pairs
        };
        prop_assert_eq!(sorted(&wanted), sorted(&turned));
    }

    #[test]
    fn a_tool_that_shares_no_name_changes_no_name(wanted in any_wanted(), tool in "[c-z]{1,8}") {
        let before = offered_names(&wanted);
        let mut with_more = wanted;
        with_more.push(bare(&tool));
        prop_assert_eq!(&offered_names(&with_more)[..before.len()], &before[..]);
    }

    #[test]
    fn names_end_even_when_they_are_made_to_clash(wanted in any_wanted()) {
        let refused: HashSet<Arc<str>> = offered_names(&wanted).into_iter().collect();
        let names = counted(wanted_names(&vec!["same".into(); wanted.len()]), &refused);
        let different: HashSet<&Arc<str>> = names.iter().collect();
        prop_assert_eq!(different.len(), wanted.len());
    }
}
