//! Who a server means when it tells or asks something during somebody's call: decided from what is under way.

/// Who made a request that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Party {
    /// The connection itself: lists, subscriptions.
    Ourselves,
    /// Somebody who can be told and asked nothing.
    Nobody,
    /// Somebody of this conversation.
    Conversation(u64),
}

/// Who is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meant {
    /// Whoever made the call with this number.
    Call(u64),
    /// No caller at all: it is for whoever answers for the house.
    House,
    /// A call that is over.
    Over,
    /// One of several, and nothing tells which.
    Unclear,
}

/// Who is meant by something that came on the stream of request `related`, or on a stream of all. Of what came for all, only
/// one conversation may be under way; `left` are those whose calls were given up a moment ago, for their server may
/// not have heard of that yet. A question must never reach the wrong person.
pub(super) fn meant(related: Option<u64>, under_way: &[(u64, Party)], left: &[u64]) -> Meant {
    if let Some(related) = related {
        return match under_way.iter().find(|(id, _)| *id == related) {
            None => Meant::Over,
            Some((id, Party::Conversation(_))) => Meant::Call(*id),
            Some((_, Party::Ourselves | Party::Nobody)) => Meant::House,
        };
    }
    let calls = || under_way.iter().filter(|(_, party)| *party != Party::Ourselves);
    let mut parties =
        calls().map(|(_, party)| *party).chain(left.iter().map(|one| Party::Conversation(*one)));
    match parties.next() {
        None => Meant::House,
        Some(first) if parties.any(|party| party != first) => Meant::Unclear,
        Some(Party::Nobody | Party::Ourselves) => Meant::House,
        // The latest of its calls.
        Some(Party::Conversation(_)) => calls().map(|(id, _)| *id).max().map_or(Meant::Over, Meant::Call),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: Party = Party::Conversation(1);
    const B: Party = Party::Conversation(2);

    #[test]
    fn the_stream_tells_and_else_the_only_conversation() {
        assert_eq!(meant(Some(7), &[(7, A), (8, B)], &[]), Meant::Call(7));
        assert_eq!(meant(Some(9), &[(7, A)], &[]), Meant::Over);
        assert_eq!(meant(None, &[(7, A), (3, Party::Ourselves)], &[]), Meant::Call(7));
        assert_eq!(meant(None, &[(7, A), (9, A), (8, A)], &[]), Meant::Call(9));
        assert_eq!(meant(None, &[(7, A), (8, B)], &[]), Meant::Unclear);
        assert_eq!(meant(None, &[(7, A), (8, Party::Nobody)], &[]), Meant::Unclear);
        assert_eq!(meant(None, &[(8, Party::Nobody)], &[]), Meant::House);
        assert_eq!(meant(None, &[], &[]), Meant::House);
    }

    #[test]
    fn what_was_given_up_a_moment_ago_may_still_be_meant() {
        assert_eq!(meant(None, &[(7, A)], &[2]), Meant::Unclear);
        assert_eq!(meant(None, &[(7, A)], &[1]), Meant::Call(7));
        assert_eq!(meant(None, &[], &[1]), Meant::Over);
    }

    fn party() -> impl Strategy<Value = Party> {
        prop_oneof![Just(Party::Ourselves), Just(Party::Nobody), (0_u64..3).prop_map(Party::Conversation)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn nobody_is_meant_beside_whom_another_could_be(
            parties in prop::collection::vec(party(), 0..6), left in prop::collection::vec(0_u64..3, 0..3),
            related in prop::option::of(0_u64..8),
        ) {
            let under_way: Vec<(u64, Party)> = (0..).zip(parties.iter().copied()).collect();
            if let Meant::Call(id) = meant(related, &under_way, &left) {
                let (_, party) = under_way.iter().find(|(known, _)| *known == id).unwrap();
                let Party::Conversation(conversation) = party else { panic!("{party:?}") };
                match related {
                    Some(related) => prop_assert_eq!(related, id),
                    None => {
                        prop_assert!(left.iter().all(|one| one == conversation));
                        prop_assert!(parties.iter().all(|one| one == party || *one == Party::Ourselves));
                    }
                }
            }
        }
    }
}
