//! Decides which caller a server message belongs to.

/// Who made a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Originator {
    /// The connection itself, for example to list tools.
    Internal,
    /// A caller that cannot be reached.
    Detached,
    /// A caller in the session with this id.
    Caller(u64),
}

/// Which request a server message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecipientDecision {
    /// The request with this id.
    Request(u64),
    /// No caller: the input handler of the connection takes it.
    Handler,
    /// A request that is finished.
    Finished,
    /// One of several callers, and nothing tells which.
    Ambiguous,
}

/// Decides on a message that came on the stream of request `related`, or on a stream shared by all. On a shared stream
/// the caller is only certain while all requests are from one session. `abandoned` are sessions that gave up a call a
/// moment ago, because the server may not know that yet. A question must never reach the wrong caller.
pub(crate) fn decide_recipient(
    related: Option<u64>,
    in_flight: &[(u64, Originator)],
    abandoned: &[u64],
) -> RecipientDecision {
    if let Some(related) = related {
        return match in_flight.iter().find(|(id, _)| *id == related) {
            None => RecipientDecision::Finished,
            Some((id, Originator::Caller(_))) => RecipientDecision::Request(*id),
            Some((_, Originator::Internal | Originator::Detached)) => RecipientDecision::Handler,
        };
    }
    let calls = || in_flight.iter().filter(|(_, originator)| *originator != Originator::Internal);
    let abandoned = abandoned.iter().map(|session| Originator::Caller(*session));
    let mut originators = calls().map(|(_, originator)| *originator).chain(abandoned);
    match originators.next() {
        None => RecipientDecision::Handler,
        Some(first) if originators.any(|originator| originator != first) => RecipientDecision::Ambiguous,
        Some(Originator::Detached | Originator::Internal) => RecipientDecision::Handler,
        // The latest call of the session.
        Some(Originator::Caller(_)) => {
            calls().map(|(id, _)| *id).max().map_or(RecipientDecision::Finished, RecipientDecision::Request)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: Originator = Originator::Caller(1);
    const B: Originator = Originator::Caller(2);

    #[test]
    fn the_stream_decides_or_else_the_only_session() {
        let decide = decide_recipient;
        assert_eq!(decide(Some(7), &[(7, A), (8, B)], &[]), RecipientDecision::Request(7));
        assert_eq!(decide(Some(9), &[(7, A)], &[]), RecipientDecision::Finished);
        assert_eq!(decide(None, &[(7, A), (3, Originator::Internal)], &[]), RecipientDecision::Request(7));
        assert_eq!(decide(None, &[(7, A), (9, A), (8, A)], &[]), RecipientDecision::Request(9));
        assert_eq!(decide(None, &[(7, A), (8, B)], &[]), RecipientDecision::Ambiguous);
        assert_eq!(decide(None, &[(7, A), (8, Originator::Detached)], &[]), RecipientDecision::Ambiguous);
        assert_eq!(decide(None, &[(8, Originator::Detached)], &[]), RecipientDecision::Handler);
        assert_eq!(decide(None, &[], &[]), RecipientDecision::Handler);
    }

    #[test]
    fn a_call_abandoned_a_moment_ago_may_still_be_the_recipient() {
        assert_eq!(decide_recipient(None, &[(7, A)], &[2]), RecipientDecision::Ambiguous);
        assert_eq!(decide_recipient(None, &[(7, A)], &[1]), RecipientDecision::Request(7));
        assert_eq!(decide_recipient(None, &[], &[1]), RecipientDecision::Finished);
    }

    fn originator() -> impl Strategy<Value = Originator> {
        prop_oneof![
            Just(Originator::Internal),
            Just(Originator::Detached),
            (0_u64..3).prop_map(Originator::Caller)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_caller_is_chosen_only_if_no_other_is_possible(
            originators in prop::collection::vec(originator(), 0..6),
            abandoned in prop::collection::vec(0_u64..3, 0..3),
            related in prop::option::of(0_u64..8),
        ) {
            let in_flight: Vec<(u64, Originator)> = (0..).zip(originators.iter().copied()).collect();
            if let RecipientDecision::Request(id) = decide_recipient(related, &in_flight, &abandoned) {
                let (_, originator) = in_flight.iter().find(|(known, _)| *known == id).unwrap();
                let Originator::Caller(session) = originator else { panic!("{originator:?}") };
                match related {
                    Some(related) => prop_assert_eq!(related, id),
                    None => {
                        prop_assert!(abandoned.iter().all(|one| one == session));
                        prop_assert!(
                            originators.iter().all(|one| one == originator || *one == Originator::Internal)
                        );
                    }
                }
            }
        }
    }
}
