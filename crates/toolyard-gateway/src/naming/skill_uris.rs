//! Assigns URIs to the skills of several servers: the skill's own URI if it is free, else `skill://SERVER/` and the skill's path.
//! Local skills always keep their URIs.

use std::collections::BTreeSet;

/// The folder URI of a skill, such as `skill://juggling/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillUri {
    /// The folder on the server.
    pub(crate) own: String,
    /// The folder that clients see; none if both URIs are taken.
    pub(crate) exposed: Option<String>,
}

/// Assigns a folder to each skill, given as server and folder, in the same order. `local_folders` are those of local skills.
pub(crate) fn assign_skill_uris(
    skills: &[(&str, &str)],
    servers: &BTreeSet<&str>,
    local_folders: &[String],
) -> Vec<SkillUri> {
    let mut taken: Vec<(Option<&str>, String)> =
        local_folders.iter().map(|folder| (None, folder.clone())).collect();
    let mut assigned = Vec::with_capacity(skills.len());
    for &(server, own) in skills {
        let has_prefix_of_other_server = |folder: &str| {
            let first_segment = after_scheme(folder).split('/').next().unwrap_or_default();
            first_segment != server && servers.contains(first_segment)
        };
        let is_free = |folder: &String| {
            !taken.iter().any(|(owner, other)| {
                // Skills of one server may be nested.
                folder == other
                    || (*owner != Some(server)
                        && (folder.starts_with(other) || other.starts_with(folder.as_str())))
            })
        };
        let below_server = format!("skill://{server}/{}", after_scheme(own));
        let own_folder = Some(own.to_owned()).filter(|own| !has_prefix_of_other_server(own) && is_free(own));
        let exposed = own_folder.or_else(|| Some(below_server).filter(is_free));
        if let Some(folder) = &exposed {
            taken.push((Some(server), folder.clone()));
        }
        assigned.push(SkillUri { own: own.to_owned(), exposed });
    }
    assigned
}

/// The folder of a skill, given the URI of its SKILL.md.
pub(crate) fn skill_folder(uri: &str) -> Option<&str> {
    uri.strip_suffix("SKILL.md").filter(|folder| folder.ends_with('/'))
}

fn after_scheme(folder: &str) -> &str {
    folder.split_once("://").map_or(folder, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exposed_uris(skills: &[(&str, &str)], local: &[&str]) -> Vec<Option<String>> {
        let servers = skills.iter().map(|(server, _)| *server).collect();
        let local: Vec<String> = local.iter().map(|folder| (*folder).to_owned()).collect();
        assign_skill_uris(skills, &servers, &local).into_iter().map(|skill| skill.exposed).collect()
    }

    fn uri(folder: &str) -> Option<String> {
        Some(folder.to_owned())
    }

    #[test]
    fn a_local_skill_keeps_its_uri() {
        assert_eq!(exposed_uris(&[("a", "skill://x/")], &["skill://x/"]), [uri("skill://a/x/")]);
        assert_eq!(exposed_uris(&[("a", "skill://x/")], &["skill://y/"]), [uri("skill://x/")]);
        assert_eq!(exposed_uris(&[("a", "skill://x/deep/")], &["skill://x/"]), [uri("skill://a/x/deep/")]);
    }

    #[test]
    fn the_first_of_two_servers_keeps_its_uri() {
        assert_eq!(
            exposed_uris(&[("a", "skill://x/"), ("b", "skill://x/")], &[]),
            [uri("skill://x/"), uri("skill://b/x/")]
        );
        assert_eq!(
            exposed_uris(&[("a", "skill://b/x/"), ("b", "skill://x/")], &[]),
            [uri("skill://a/b/x/"), uri("skill://x/")]
        );
        assert_eq!(
            exposed_uris(&[("a", "git://o/x/"), ("b", "git://o/x/")], &[]),
            [uri("git://o/x/"), uri("skill://b/o/x/")]
        );
        assert_eq!(exposed_uris(&[("a", "skill://x/")], &["skill://x/", "skill://a/"]), [None]);
    }

    #[test]
    fn skills_of_one_server_may_be_nested() {
        let nested = [("a", "skill://x/"), ("a", "skill://x/y/")];
        assert_eq!(exposed_uris(&nested, &[]), [uri("skill://x/"), uri("skill://x/y/")]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn no_uri_has_two_owners(
            skills in prop::collection::vec((prop::sample::select(vec!["a", "b", "c"]),
                prop::sample::select(vec!["skill://x/", "skill://a/x/", "skill://x/y/", "skill://b/", "git://x/"])), 0..8),
            local in prop::collection::vec(prop::sample::select(vec!["skill://x/", "skill://b/", "skill://z/"]), 0..3),
        ) {
            let servers = BTreeSet::from(["a", "b", "c"]);
            let local: Vec<String> = local.into_iter().map(str::to_owned).collect();
            let assigned = assign_skill_uris(&skills, &servers, &local);
            let mut all: Vec<(&str, &String)> = local.iter().map(|folder| ("local", folder)).collect();
            for ((server, own), skill) in skills.iter().zip(&assigned) {
                prop_assert_eq!(&skill.own, own);
                all.extend(skill.exposed.as_ref().map(|folder| (*server, folder)));
            }
            for (index, (owner, folder)) in all.iter().enumerate() {
                for (other_owner, other) in all.iter().skip(index + 1).filter(|(other, _)| other != owner) {
                    prop_assert!(!folder.starts_with(other.as_str()) && !other.starts_with(folder.as_str()),
                        "{} {} {} {}", owner, folder, other_owner, other);
                }
            }
        }
    }
}
