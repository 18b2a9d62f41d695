//! At which addresses skills of several servers are offered: their own where that is clear, else below the server's name.
//! A skill of this machine keeps its address in any case.

use std::collections::BTreeSet;

/// A skill of a server, by the folder of its address: `skill://juggling/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    /// Its folder on the server.
    pub(super) own: String,
    /// Its folder as it is offered; none where it cannot be offered at all.
    pub(super) offered: Option<String>,
}

/// Where skills are offered, in the order in which they are given: server, folder. `local` are the folders of this machine.
pub(super) fn place(skills: &[(&str, &str)], servers: &BTreeSet<&str>, local: &[String]) -> Vec<Placed> {
    let mut taken: Vec<(Option<&str>, String)> = local.iter().map(|folder| (None, folder.clone())).collect();
    let mut placed = Vec::with_capacity(skills.len());
    for &(server, own) in skills {
        let foreign = |folder: &str| {
            let first = after_scheme(folder).split('/').next().unwrap_or_default();
            first != server && servers.contains(first)
        };
        let free = |folder: &String| {
            !taken.iter().any(|(owner, other)| {
                // Skills of one server may stand in one another.
                folder == other
                    || (*owner != Some(server)
                        && (folder.starts_with(other) || other.starts_with(folder.as_str())))
            })
        };
        let below = format!("skill://{server}/{}", after_scheme(own));
        let bare = Some(own.to_owned()).filter(|own| !foreign(own) && free(own));
        let offered = bare.or_else(|| Some(below).filter(free));
        if let Some(folder) = &offered {
            taken.push((Some(server), folder.clone()));
        }
        placed.push(Placed { own: own.to_owned(), offered });
    }
    placed
}

/// The folder of a skill by the address of its SKILL.md.
pub(super) fn folder(address: &str) -> Option<&str> {
    address.strip_suffix("SKILL.md").filter(|folder| folder.ends_with('/'))
}

fn after_scheme(folder: &str) -> &str {
    folder.split_once("://").map_or(folder, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn placed(skills: &[(&str, &str)], local: &[&str]) -> Vec<Option<String>> {
        let servers = skills.iter().map(|(server, _)| *server).collect();
        let local: Vec<String> = local.iter().map(|folder| (*folder).to_owned()).collect();
        place(skills, &servers, &local).into_iter().map(|placed| placed.offered).collect()
    }

    fn at(folder: &str) -> Option<String> {
        Some(folder.to_owned())
    }

    #[test]
    fn a_skill_of_this_machine_keeps_its_address() {
        assert_eq!(placed(&[("a", "skill://x/")], &["skill://x/"]), [at("skill://a/x/")]);
        assert_eq!(placed(&[("a", "skill://x/")], &["skill://y/"]), [at("skill://x/")]);
        assert_eq!(placed(&[("a", "skill://x/deep/")], &["skill://x/"]), [at("skill://a/x/deep/")]);
    }

    #[test]
    fn of_two_servers_the_first_keeps_its_address_and_nobody_takes_the_place_of_another() {
        assert_eq!(
            placed(&[("a", "skill://x/"), ("b", "skill://x/")], &[]),
            [at("skill://x/"), at("skill://b/x/")]
        );
        assert_eq!(
            placed(&[("a", "skill://b/x/"), ("b", "skill://x/")], &[]),
            [at("skill://a/b/x/"), at("skill://x/")]
        );
        assert_eq!(
            placed(&[("a", "git://o/x/"), ("b", "git://o/x/")], &[]),
            [at("git://o/x/"), at("skill://b/o/x/")]
        );
        assert_eq!(placed(&[("a", "skill://x/")], &["skill://x/", "skill://a/"]), [None]);
    }

    #[test]
    fn skills_of_one_server_may_stand_in_one_another() {
        let nested = [("a", "skill://x/"), ("a", "skill://x/y/")];
        assert_eq!(placed(&nested, &[]), [at("skill://x/"), at("skill://x/y/")]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn no_address_leads_to_two_owners(
            skills in prop::collection::vec((prop::sample::select(vec!["a", "b", "c"]),
                prop::sample::select(vec!["skill://x/", "skill://a/x/", "skill://x/y/", "skill://b/", "git://x/"])), 0..8),
            local in prop::collection::vec(prop::sample::select(vec!["skill://x/", "skill://b/", "skill://z/"]), 0..3),
        ) {
            let servers = BTreeSet::from(["a", "b", "c"]);
            let local: Vec<String> = local.into_iter().map(str::to_owned).collect();
            let placed = place(&skills, &servers, &local);
            let mut all: Vec<(&str, &String)> = local.iter().map(|folder| ("local", folder)).collect();
            for ((server, own), placed) in skills.iter().zip(&placed) {
                prop_assert_eq!(&placed.own, own);
                all.extend(placed.offered.as_ref().map(|folder| (*server, folder)));
            }
            for (place, (owner, folder)) in all.iter().enumerate() {
                for (other_owner, other) in all.iter().skip(place + 1).filter(|(other, _)| other != owner) {
                    prop_assert!(!folder.starts_with(other.as_str()) && !other.starts_with(folder.as_str()),
                        "{} {} {} {}", owner, folder, other_owner, other);
                }
            }
        }
    }
}
