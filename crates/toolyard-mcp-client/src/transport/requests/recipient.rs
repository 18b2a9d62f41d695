//! Decides which caller a server message belongs to.

/// A `RequestOrigin`, reduced to what the decision needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OriginKey {
    /// The connection itself, for example to list tools.
    Internal,
    /// A call without a caller.
    Detached,
    /// A caller in the client's session with this id.
    Caller(u64),
}

/// Which request a server message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecipientDecision {
    Request(u64),
    /// The message belongs to no caller.
    NoCaller,
    /// A request that is finished.
    Finished,
    /// One of several callers, and nothing tells which.
    Ambiguous,
}

/// Decides on a message that came on the stream of `related_request`, or on a stream shared by all. On a shared stream
/// the caller is only certain while all requests are from one session. `abandoned` are sessions that gave up a call a
/// moment ago, because the server may not know that yet. An input request must never reach the wrong caller.
pub(crate) fn decide_recipient(
    related_request: Option<u64>,
    in_flight: &[(u64, OriginKey)],
    abandoned: &[u64],
) -> RecipientDecision {
    if let Some(related_request) = related_request {
        return match in_flight.iter().find(|(id, _)| *id == related_request) {
            None => RecipientDecision::Finished,
            Some((id, OriginKey::Caller(_))) => RecipientDecision::Request(*id),
            Some((_, OriginKey::Internal | OriginKey::Detached)) => RecipientDecision::NoCaller,
        };
    }
    let calls = || in_flight.iter().filter(|(_, origin)| *origin != OriginKey::Internal);
    let abandoned = abandoned.iter().map(|session| OriginKey::Caller(*session));
    let mut origins = calls().map(|(_, origin)| *origin).chain(abandoned);
    match origins.next() {
        None => RecipientDecision::NoCaller,
        Some(first) if origins.any(|origin| origin != first) => RecipientDecision::Ambiguous,
        Some(OriginKey::Detached | OriginKey::Internal) => RecipientDecision::NoCaller,
        // The latest call of the session.
        Some(OriginKey::Caller(_)) => {
            calls().map(|(id, _)| *id).max().map_or(RecipientDecision::Finished, RecipientDecision::Request)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: OriginKey = OriginKey::Caller(1);
    const B: OriginKey = OriginKey::Caller(2);

    #[test]
    fn the_stream_decides_or_else_the_only_session() {
        let decide = decide_recipient;
        assert_eq!(decide(Some(7), &[(7, A), (8, B)], &[]), RecipientDecision::Request(7));
        assert_eq!(decide(Some(9), &[(7, A)], &[]), RecipientDecision::Finished);
        assert_eq!(decide(None, &[(7, A), (3, OriginKey::Internal)], &[]), RecipientDecision::Request(7));
        assert_eq!(decide(None, &[(7, A), (9, A), (8, A)], &[]), RecipientDecision::Request(9));
        assert_eq!(decide(None, &[(7, A), (8, B)], &[]), RecipientDecision::Ambiguous);
        assert_eq!(decide(None, &[(7, A), (8, OriginKey::Detached)], &[]), RecipientDecision::Ambiguous);
        assert_eq!(decide(None, &[(8, OriginKey::Detached)], &[]), RecipientDecision::NoCaller);
        assert_eq!(decide(None, &[], &[]), RecipientDecision::NoCaller);
    }

    #[test]
    fn a_call_abandoned_a_moment_ago_may_still_be_the_recipient() {
        assert_eq!(decide_recipient(None, &[(7, A)], &[2]), RecipientDecision::Ambiguous);
        assert_eq!(decide_recipient(None, &[(7, A)], &[1]), RecipientDecision::Request(7));
        assert_eq!(decide_recipient(None, &[], &[1]), RecipientDecision::Finished);
    }

    fn origin() -> impl Strategy<Value = OriginKey> {
        prop_oneof![
            Just(OriginKey::Internal),
            Just(OriginKey::Detached),
            (0_u64..3).prop_map(OriginKey::Caller)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_caller_is_chosen_only_if_no_other_is_possible(
            origins in prop::collection::vec(origin(), 0..6),
            abandoned in prop::collection::vec(0_u64..3, 0..3),
            related_request in prop::option::of(0_u64..8),
        ) {
            let in_flight: Vec<(u64, OriginKey)> = (0..).zip(origins.iter().copied()).collect();
            if let RecipientDecision::Request(id) = decide_recipient(related_request, &in_flight, &abandoned) {
                let (_, origin) = in_flight.iter().find(|(known, _)| *known == id).unwrap();
                let OriginKey::Caller(session) = origin else { panic!("{origin:?}") };
                match related_request {
                    Some(related_request) => prop_assert_eq!(related_request, id),
                    None => {
                        prop_assert!(abandoned.iter().all(|one| one == session));
                        prop_assert!(
                            origins.iter().all(|one| one == origin || *one == OriginKey::Internal)
                        );
                    }
                }
            }
        }
    }
}
