//! [`GroupAccess`]: which profiles and agents the groups of a caller give access to.

use std::collections::BTreeMap;

use toolyard_core::CallerIdentity;

/// What the members of a group may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupLimits {
    /// The profiles, the main endpoint being the empty name; `None` for all.
    pub profiles: Option<Vec<String>>,
    /// The agents; `None` for all.
    pub agents: Option<Vec<String>>,
}

/// The limits of groups by name. Without any, every caller may use everything. With some, a caller may use what one of its groups
/// may use; a caller that is in none of them may use nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupAccess(BTreeMap<String, GroupLimits>);

impl GroupAccess {
    /// These groups.
    pub fn new(groups: impl IntoIterator<Item = (String, GroupLimits)>) -> Self {
        Self(groups.into_iter().collect())
    }

    /// Limits a caller to what its groups may use.
    pub(crate) fn limit(&self, identity: &mut CallerIdentity) {
        if self.0.is_empty() {
            return;
        }
        let limits: Vec<&GroupLimits> =
            identity.groups.iter().filter_map(|group| self.0.get(group)).collect();
        identity.allowed_profiles = union(limits.iter().map(|limits| limits.profiles.as_deref()));
        identity.allowed_agents = union(limits.iter().map(|limits| limits.agents.as_deref()));
    }
}

/// All names of some lists; `None` if one of them is of all names.
fn union<'a>(lists: impl Iterator<Item = Option<&'a [String]>>) -> Option<Vec<String>> {
    let mut names: Vec<String> = lists.collect::<Option<Vec<_>>>()?.concat();
    names.sort_unstable();
    names.dedup();
    Some(names)
}

#[cfg(test)]
mod tests {
    use toolyard_core::PROXY_ISSUER;

    use super::*;

    fn limited(access: &GroupAccess, groups: &[&str]) -> CallerIdentity {
        let mut identity = CallerIdentity::principal(PROXY_ISSUER, "ada");
        identity.groups = groups.iter().map(|group| (*group).to_owned()).collect();
        access.limit(&mut identity);
        identity
    }

    fn names(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_caller_may_use_what_one_of_its_groups_may_use() {
        let access = GroupAccess::new([
            ("staff".to_owned(), GroupLimits { profiles: names(&["office"]), agents: names(&[]) }),
            ("dev".to_owned(), GroupLimits { profiles: names(&["", "code"]), agents: names(&["clerk"]) }),
            ("ops".to_owned(), GroupLimits::default()),
        ]);
        let staff = limited(&access, &["staff", "unlisted"]);
        assert!(staff.may_use_profile("office"));
        assert!(
            !staff.may_use_profile("") && !staff.may_use_profile("code") && !staff.may_use_agent("clerk")
        );
        let both = limited(&access, &["staff", "dev"]);
        assert!(["", "office", "code"].iter().all(|profile| both.may_use_profile(profile)));
        assert!(both.may_use_agent("clerk") && !both.may_use_agent("auditor"));
        let ops = limited(&access, &["staff", "ops"]);
        assert!(ops.may_use_profile("any") && ops.may_use_agent("any"));
    }

    #[test]
    fn a_caller_without_a_listed_group_may_use_nothing_unless_there_are_no_limits() {
        let access = GroupAccess::new([("ops".to_owned(), GroupLimits::default())]);
        for groups in [&[][..], &["Ops"], &["staff"]] {
            let identity = limited(&access, groups);
            assert!(!identity.may_use_profile("") && !identity.may_use_agent("assistant"), "{groups:?}");
        }
        assert!(limited(&GroupAccess::default(), &[]).may_use_profile(""));
    }
}
