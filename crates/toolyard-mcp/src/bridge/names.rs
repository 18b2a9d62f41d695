//! Under which names prompts of several servers are offered: bare where that is clear, else with the server's name before
//! it. At most 64 characters, no two the same, and none that depends on who else is there without need.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use toolyard_core::ContentHash;

/// Many clients break past this.
pub(super) const LONGEST: usize = 64;
/// How much of a hash tells long names apart.
const MARK: usize = 12;

/// A name for every pair of a server and one of its prompts. What a server lists twice counts once.
pub(super) fn offered_names<'a>(
    prompts: &BTreeSet<(&'a str, &'a str)>,
    servers: &BTreeSet<&str>,
) -> BTreeMap<(&'a str, &'a str), String> {
    let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, name) in prompts {
        *owners.entry(name).or_default() += 1;
    }
    // A bare name that begins like one of another server could be mistaken for it.
    let looks_foreign = |name: &str| name.split_once('.').is_some_and(|(server, _)| servers.contains(server));
    let (mut names, mut taken) = (BTreeMap::new(), HashSet::new());
    for &(server, name) in prompts {
        let alone = owners.get(name).is_none_or(|owners| *owners == 1);
        let wanted = if alone && !looks_foreign(name) { name.to_owned() } else { format!("{server}.{name}") };
        let mut offered = within(&wanted, server, name, 0);
        for turn in 1.. {
            // Only a name that was shortened can meet another one here.
            if taken.insert(offered.clone()) {
                break;
            }
            offered = shortened(&wanted, server, name, turn);
        }
        names.insert((server, name), offered);
    }
    names
}

fn within(wanted: &str, server: &str, name: &str, turn: u32) -> String {
    if wanted.chars().count() <= LONGEST { wanted.to_owned() } else { shortened(wanted, server, name, turn) }
}

/// The beginning of a name and a mark that tells it from all others that begin like it.
fn shortened(wanted: &str, server: &str, name: &str, turn: u32) -> String {
    let hash = ContentHash::of(format!("{server}\0{name}\0{turn}")).to_string();
    let mark: String = hash.chars().rev().take(MARK).collect();
    let beginning: String = wanted.chars().take(LONGEST - MARK - 1).collect();
    format!("{beginning}-{mark}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(prompts: &[(&str, &str)]) -> Vec<String> {
        let set: BTreeSet<(&str, &str)> = prompts.iter().copied().collect();
        let servers = prompts.iter().map(|(server, _)| *server).collect();
        let names = offered_names(&set, &servers);
        prompts.iter().map(|prompt| names[prompt].clone()).collect()
    }

    #[test]
    fn names_are_bare_where_they_are_unique() {
        let names = named(&[("a", "review"), ("b", "review"), ("b", "explain")]);
        assert_eq!(names, ["a.review", "b.review", "explain"]);
    }

    #[test]
    fn a_name_that_begins_like_one_of_another_server_is_not_bare() {
        assert_eq!(named(&[("evil", "bank.pay"), ("bank", "pay")]), ["evil.bank.pay", "pay"]);
        assert_eq!(named(&[("evil", "some.pay")]), ["some.pay"]);
    }

    #[test]
    fn long_names_keep_their_beginning() {
        let long = "p".repeat(80);
        let names = named(&[("a", &long), ("b", &long)]);
        assert!(names[0].starts_with("a.ppp") && names[0].len() == LONGEST && names[0] != names[1]);
    }

    fn prompts() -> impl Strategy<Value = BTreeSet<(String, String)>> {
        let server =
            prop::sample::select(vec!["a", "b", "c-1", "long-server-name-of-more-than-forty-letters-x"]);
        let name = prop_oneof![
            prop::sample::select(vec!["p", "q", "a.p", "b.a.p", "ä", "a."]).prop_map(str::to_owned),
            "[pq]{60,70}",
            "p{55,64}",
        ];
        prop::collection::btree_set((server.prop_map(str::to_owned), name), 0..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn every_prompt_has_one_name_of_its_own(prompts in prompts()) {
            let set: BTreeSet<(&str, &str)> = prompts.iter().map(|(s, n)| (s.as_str(), n.as_str())).collect();
            let servers: BTreeSet<&str> = set.iter().map(|(server, _)| *server).collect();
            let names = offered_names(&set, &servers);
            prop_assert_eq!(names.len(), prompts.len());
            let different: HashSet<&String> = names.values().collect();
            prop_assert_eq!(different.len(), names.len());
            prop_assert!(names.values().all(|name| name.chars().count() <= LONGEST));
        }

        #[test]
        fn a_server_with_other_prompts_changes_no_name(prompts in prompts(), more in "[xyz]{1,8}") {
            let set: BTreeSet<(&str, &str)> = prompts.iter().map(|(s, n)| (s.as_str(), n.as_str())).collect();
            let mut servers: BTreeSet<&str> = set.iter().map(|(server, _)| *server).collect();
            let before = offered_names(&set, &servers);
            let mut after = set.clone();
            after.insert(("zz", &more));
            servers.insert("zz");
            let after = offered_names(&after, &servers);
            for (prompt, name) in before {
                prop_assert_eq!(&after[&prompt], &name);
            }
        }
    }
}
