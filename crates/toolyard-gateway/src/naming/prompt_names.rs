//! Assigns names to the prompts of several servers: the prompt's own name if it is unique, else `server.prompt`. Names are
//! unique, have at most 64 characters, and do not depend on unrelated prompts.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use toolyard_core::ContentHash;

/// Many clients reject longer names.
const MAX_NAME_CHARS: usize = 64;
/// Length of the hash that distinguishes shortened names.
const SUFFIX_CHARS: usize = 12;

pub(crate) fn assign_prompt_names<'a>(
    prompts: &BTreeSet<(&'a str, &'a str)>,
    servers: &BTreeSet<&str>,
) -> BTreeMap<(&'a str, &'a str), String> {
    let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, name) in prompts {
        *owners.entry(name).or_default() += 1;
    }
    // A name that starts with a server id would look like a prompt of that server.
    let has_server_prefix =
        |name: &str| name.split_once('.').is_some_and(|(server, _)| servers.contains(server));
    let (mut names, mut taken) = (BTreeMap::new(), HashSet::new());
    for &(server, name) in prompts {
        let is_unique = owners.get(name).is_none_or(|owners| *owners == 1);
        let full_name =
            if is_unique && !has_server_prefix(name) { name.to_owned() } else { format!("{server}.{name}") };
        let mut assigned = if full_name.chars().count() <= MAX_NAME_CHARS {
            full_name.clone()
        } else {
            shortened(&full_name, server, name, 0)
        };
        for attempt in 1.. {
            // Only shortened names can clash.
            if taken.insert(assigned.clone()) {
                break;
            }
            assigned = shortened(&full_name, server, name, attempt);
        }
        names.insert((server, name), assigned);
    }
    names
}

/// The start of a name, and a suffix derived from the prompt and its server.
fn shortened(full_name: &str, server: &str, name: &str, attempt: u32) -> String {
    let hash = ContentHash::of(format!("{server}\0{name}\0{attempt}")).to_string();
    let suffix: String = hash.chars().rev().take(SUFFIX_CHARS).collect();
    let start: String = full_name.chars().take(MAX_NAME_CHARS - SUFFIX_CHARS - 1).collect();
    format!("{start}-{suffix}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names_of(prompts: &[(&str, &str)]) -> Vec<String> {
        let set: BTreeSet<(&str, &str)> = prompts.iter().copied().collect();
        let servers = prompts.iter().map(|(server, _)| *server).collect();
        let names = assign_prompt_names(&set, &servers);
        prompts.iter().map(|prompt| names[prompt].clone()).collect()
    }

    #[test]
    fn a_unique_name_is_kept() {
        let names = names_of(&[("a", "review"), ("b", "review"), ("b", "explain")]);
        assert_eq!(names, ["a.review", "b.review", "explain"]);
    }

    #[test]
    fn a_name_that_starts_with_a_server_id_is_prefixed() {
        assert_eq!(names_of(&[("evil", "bank.pay"), ("bank", "pay")]), ["evil.bank.pay", "pay"]);
        assert_eq!(names_of(&[("evil", "some.pay")]), ["some.pay"]);
    }

    #[test]
    fn long_names_keep_their_start() {
        let long = "p".repeat(80);
        let names = names_of(&[("a", &long), ("b", &long)]);
        assert!(names[0].starts_with("a.ppp") && names[0].len() == MAX_NAME_CHARS && names[0] != names[1]);
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
        fn every_prompt_has_a_unique_name(prompts in prompts()) {
            let set: BTreeSet<(&str, &str)> = prompts.iter().map(|(s, n)| (s.as_str(), n.as_str())).collect();
            let servers: BTreeSet<&str> = set.iter().map(|(server, _)| *server).collect();
            let names = assign_prompt_names(&set, &servers);
            prop_assert_eq!(names.len(), prompts.len());
            let distinct: HashSet<&String> = names.values().collect();
            prop_assert_eq!(distinct.len(), names.len());
            prop_assert!(names.values().all(|name| name.chars().count() <= MAX_NAME_CHARS));
        }

        #[test]
        fn unrelated_prompts_change_no_name(prompts in prompts(), added_name in "[xyz]{1,8}") {
            let set: BTreeSet<(&str, &str)> = prompts.iter().map(|(s, n)| (s.as_str(), n.as_str())).collect();
            let mut servers: BTreeSet<&str> = set.iter().map(|(server, _)| *server).collect();
            let before = assign_prompt_names(&set, &servers);
            let mut after = set.clone();
            after.insert(("zz", &added_name));
            servers.insert("zz");
            let after = assign_prompt_names(&after, &servers);
            for (prompt, name) in before {
                prop_assert_eq!(&after[&prompt], &name);
            }
        }
    }
}
