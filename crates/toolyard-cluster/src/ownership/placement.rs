//! Who should take a free session: rendezvous hashing. Each process gets its share, and a process that leaves or joins moves
//! only the sessions that it had or gets.

/// The member that should own a session; `None` without members.
pub(super) fn preferred_owner(session: &str, members: impl IntoIterator<Item = u64>) -> Option<u64> {
    members.into_iter().max_by_key(|member| (weight(session, *member), *member))
}

fn weight(session: &str, member: u64) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&member.to_be_bytes());
    hasher.update(session.as_bytes());
    let hash = hasher.finalize();
    hash.as_bytes().first_chunk().copied().map_or(0, u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_processes_choose_the_same_owner(mut members in prop::collection::vec(any::<u64>(), 1..8), session in ".{0,20}") {
            let chosen = preferred_owner(&session, members.iter().copied());
            members.reverse();
            prop_assert_eq!(preferred_owner(&session, members.iter().copied()), chosen);
            prop_assert!(chosen.is_some_and(|chosen| members.contains(&chosen)));
        }

        #[test]
        fn a_member_that_leaves_moves_only_its_own_sessions(members in prop::collection::btree_set(any::<u64>(), 2..8), session in ".{0,20}") {
            let chosen = preferred_owner(&session, members.iter().copied()).unwrap();
            let left = *members.iter().find(|member| **member != chosen).unwrap();
            prop_assert_eq!(preferred_owner(&session, members.into_iter().filter(|member| *member != left)), Some(chosen));
        }
    }

    #[test]
    fn sessions_are_spread_evenly() {
        let mut counts = [0_u32; 4];
        for session in 0..4_000 {
            let owner = preferred_owner(&format!("server-{session}"), 0..4).unwrap();
            counts[usize::try_from(owner).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
    }
}
