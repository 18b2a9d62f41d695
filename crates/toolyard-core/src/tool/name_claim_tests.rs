//! A bare name changes hands only by a decision of the operator.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn claim(claims: &mut NameClaims, name: &str, source: &str, now: i64) -> Option<String> {
    let claim = claims.claim(&name.into(), &source.into(), None, ClaimTime::Later, now);
    claim.yields_to.map(|owner| owner.to_string())
}

#[test]
fn the_first_source_owns_a_name_and_keeps_it() {
    let mut claims = NameClaims::default();
    assert_eq!(claim(&mut claims, "pay", "bank", 1), None);
    assert_eq!(claim(&mut claims, "pay", "aweather", 2).as_deref(), Some("bank"));
    assert_eq!(claim(&mut claims, "pay", "bank", 3), None);
    assert_eq!(claims.owner("pay").map(SourceId::as_str), Some("bank"));
}

#[test]
fn a_removed_owner_leaves_its_name_to_nobody() {
    let mut claims = NameClaims::default();
    claim(&mut claims, "pay", "bank", 1);
    claim(&mut claims, "pay", "aweather", 2);
    claims.remove_source(&"bank".into());
    assert_eq!(claims.owner("pay"), None);
    assert_eq!(claim(&mut claims, "pay", "zeta", 3).as_deref(), Some("bank"), "the name is contested");
    assert_eq!(claim(&mut claims, "pay", "bank", 4), None, "the owner may come back");
}

#[test]
fn the_operator_gives_a_name_to_another_source() {
    let mut claims = NameClaims::default();
    claim(&mut claims, "pay", "bank", 1);
    claim(&mut claims, "pay", "shop", 2);
    let changed = claims.give("pay", &"shop".into());
    assert_eq!(changed, ["bank".into(), "shop".into()]);
    assert_eq!(claims.owner("pay").map(SourceId::as_str), Some("shop"));
    assert!(claims.give("pay", &"nobody".into()).is_empty());
}

#[test]
fn a_qualified_name_of_another_source_is_not_taken() {
    let mut claims = NameClaims::default();
    claims.add_sources(["bank".into(), "evil".into()]);
    assert_eq!(claim(&mut claims, "bank.pay", "evil", 1).as_deref(), Some("bank"));
    assert_eq!(claim(&mut claims, "evil.pay", "evil", 1), None);
    assert_eq!(claim(&mut claims, "some.pay", "evil", 1), None);
    assert_eq!(claim(&mut claims, "native.calculate", "evil", 1).as_deref(), Some("native"));
}

#[test]
fn a_source_yields_to_what_outranks_it() {
    let mut claims = NameClaims::default();
    let made = claims.claim(
        &"calculate".into(),
        &"maths".into(),
        Some("native".into()),
        ClaimTime::FirstApproval,
        1,
    );
    assert_eq!((made.yields_to, made.contests), (Some("native".into()), false));
}

#[test]
fn a_server_that_the_operator_adds_contests_a_name_until_the_operator_decides() {
    let mut claims = NameClaims::default();
    claims.add_sources(["files".into(), "filesystem".into()]);
    let mut first = |name: &str, source: &str| {
        claims.claim(&name.into(), &source.into(), None, ClaimTime::FirstApproval, 1)
    };
    assert!(!first("read", "files").contests, "nobody had the name");
    let second = first("read", "filesystem");
    assert_eq!((second.yields_to, second.contests), (Some("files".into()), true));
    assert!(!first("files.read", "filesystem").contests, "a qualified name is its server's");
    claims.give("read", &"filesystem".into());
    let claim = |source: &str| claims.get("read", &source.into()).unwrap().clone();
    assert!(claim("filesystem").is_given && !claim("filesystem").contests && !claim("files").contests);
    let third = claims.claim(&"read".into(), &"more".into(), None, ClaimTime::FirstApproval, 2);
    assert_eq!((third.yields_to, third.contests), (Some("filesystem".into()), false), "it was decided");
}

#[derive(Debug, Clone)]
enum Event {
    Announce { source: u8, name: u8, time: ClaimTime },
    Remove { source: u8 },
    Give { source: u8, name: u8 },
    Restart,
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..5_u8, 0..3_u8, any::<bool>()).prop_map(|(source, name, is_first)| {
            let time = if is_first { ClaimTime::FirstApproval } else { ClaimTime::Later };
            Event::Announce { source, name, time }
        }),
        1 => (0..5_u8).prop_map(|source| Event::Remove { source }),
        1 => (0..5_u8, 0..3_u8).prop_map(|(source, name)| Event::Give { source, name }),
        2 => Just(Event::Restart),
    ]
}

fn source(at: u8) -> SourceId {
    format!("s{at}").into()
}

fn name(at: u8) -> Arc<str> {
    format!("tool{at}").into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Sources announce tools, are removed and return, and the process restarts with what was stored, in any order of ids.
    #[test]
    fn a_name_changes_hands_only_by_the_operator(events in prop::collection::vec(any_event(), 0..60)) {
        let mut claims = NameClaims::default();
        let mut stored: BTreeMap<(u8, u8), NameClaim> = BTreeMap::new();
        for (now, event) in events.into_iter().enumerate() {
            let before: Vec<Option<SourceId>> = (0..3).map(|at| claims.owner(&name(at)).cloned()).collect();
            match &event {
                Event::Announce { source: from, name: to, time } => {
                    let made = claims.claim(&name(*to), &source(*from), None, *time, now as i64);
                    stored.insert((*from, *to), made);
                }
                Event::Remove { source: gone } => {
                    claims.remove_source(&source(*gone));
                    stored.retain(|(from, _), _| from != gone);
                }
                Event::Give { source: to, name: given } => {
                    claims.give(&name(*given), &source(*to));
                    for ((from, of), claim) in &mut stored {
                        *claim = claims.get(&name(*of), &source(*from)).unwrap().clone();
                    }
                }
                Event::Restart => {
                    claims = NameClaims::default();
                    for ((from, of), claim) in &stored {
                        claims.restore(&name(*of), &source(*from), claim.clone());
                    }
                }
            }
            for (at, before) in (0..3_u8).zip(before) {
                let after = claims.owner(&name(at));
                let may_change = match (&event, &before) {
                    (Event::Give { source: to, name: given }, _) => *given == at && after.is_none_or(|owner| *owner == source(*to)),
                    (Event::Remove { source: gone }, Some(owner)) => *owner == source(*gone) && after.is_none(),
                    (Event::Announce { source: from, name: to, .. }, None) => *to == at && after == Some(&source(*from)),
                    _ => false,
                };
                prop_assert!(after == before.as_ref() || may_change, "{event:?}: {before:?} to {after:?}");
            }
        }
    }
}
