use proptest::prelude::*;

use super::*;

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn figures_by_hand() {
    // Tools 1 and 2 are wanted; 2 stands first, 1 third.
    let wanted = Wanted::new(&[1, 2], &[], Enough::All);
    let gains = wanted.gains(&[2, 7, 1, 8]);
    assert_eq!(gains, [true, false, true, false]);
    assert!(close(wanted.recall(&gains, 1), 0.5));
    assert!(close(wanted.recall(&gains, 5), 1.0));
    let ideal = 1.0 + 1.0 / 3_f64.log2();
    assert!(close(wanted.ndcg(&gains, 10), (1.0 + 0.5) / ideal));
    assert!(close(wanted.ndcg(&gains, 2), 1.0 / ideal));
}

#[test]
fn an_alternative_counts_for_the_tool_it_stands_for_and_once() {
    let wanted = Wanted::new(&[1, 2], &[vec![5, 1, 6]], Enough::All);
    assert_eq!(wanted.gains(&[5, 1, 6, 2]), [true, false, false, true]);
    assert!(close(wanted.recall(&wanted.gains(&[5, 6]), 10), 0.5));
    assert_eq!(wanted.needs(), 2);
}

#[test]
fn one_accepted_tool_is_enough_but_a_list_with_all_is_better() {
    let wanted = Wanted::new(&[1, 2], &[], Enough::One);
    let (one, both) = (wanted.gains(&[1, 9]), wanted.gains(&[1, 2]));
    assert!(close(wanted.recall(&one, 10), 1.0));
    assert!(close(wanted.ndcg(&both, 10), 1.0));
    assert!(wanted.ndcg(&one, 10) < 1.0);
    assert!(!wanted.takes_several());
}

#[test]
fn many_outcomes_make_means_and_percentiles() {
    let wanted = Wanted::new(&[1], &[], Enough::All);
    let outcome = |list: &[usize], micros| Outcome::of(&wanted, list, 10, Duration::from_micros(micros));
    let outcomes: Vec<Outcome> =
        (1..=99).map(|at| outcome(&[1], at)).chain([outcome(&[2, 1], 5_000)]).collect();
    let figures = Figures::of(&outcomes).unwrap();
    assert!(close(figures.hit_at_1, 99.0));
    assert!(close(figures.recall_at_5, 100.0));
    assert!(close(figures.all_found_at_10, 100.0));
    assert!(close(figures.ndcg_at_10, 99.0 + 1.0 / 3_f64.log2()));
    assert!(close(figures.median_us, 50.0));
    assert!(close(figures.p99_us, 99.0));
    assert_eq!(Figures::of(&[]), None);
}

prop_compose! {
    fn case()(
        relevant in prop::collection::vec(0_usize..30, 1..6),
        groups in prop::collection::vec(prop::collection::vec(0_usize..30, 1..4), 0..3),
        list in prop::collection::vec(0_usize..30, 0..15),
        one in any::<bool>(),
    ) -> (Wanted, Vec<usize>, Vec<usize>) {
        let enough = if one { Enough::One } else { Enough::All };
        (Wanted::new(&relevant, &groups, enough), relevant, list)
    }
}

proptest! {
    #[test]
    fn figures_stay_between_nothing_and_everything((wanted, _, list) in case()) {
        let gains = wanted.gains(&list);
        for places in 0..15 {
            let (recall, ndcg) = (wanted.recall(&gains, places), wanted.ndcg(&gains, places));
            prop_assert!((0.0..=1.0).contains(&recall));
            prop_assert!((0.0..=1.0 + 1e-9).contains(&ndcg));
            prop_assert!(recall <= wanted.recall(&gains, places + 1));
        }
    }

    #[test]
    fn a_wanted_tool_in_front_never_lowers_anything((wanted, relevant, list) in case()) {
        let before = wanted.gains(&list);
        let more: Vec<usize> = relevant.iter().take(1).chain(&list).copied().collect();
        let after = wanted.gains(&more);
        // In front of ten places an eleventh may push one out, so the list is judged whole.
        prop_assert!(wanted.recall(&after, 20) >= wanted.recall(&before, 20));
        prop_assert!(after.first().copied().unwrap_or(false));
    }

    #[test]
    fn a_wanted_tool_at_the_end_never_lowers_anything((wanted, relevant, list) in case()) {
        let before = wanted.gains(&list);
        let more: Vec<usize> = list.iter().chain(relevant.iter().take(1)).copied().collect();
        let after = wanted.gains(&more);
        prop_assert!(wanted.recall(&after, 10) >= wanted.recall(&before, 10));
        prop_assert!(wanted.ndcg(&after, 10) >= wanted.ndcg(&before, 10));
    }

    #[test]
    fn the_wanted_tools_alone_are_the_best_list((wanted, relevant, _) in case()) {
        let gains = wanted.gains(&relevant.iter().copied().collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>());
        prop_assert!(close(wanted.recall(&gains, 10), 1.0));
        prop_assert!(close(wanted.ndcg(&gains, 10), 1.0));
    }
}
