use proptest::prelude::*;

use super::*;

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn metrics_agree_with_a_manual_calculation() {
    // Tools 1 and 2 are relevant; 2 is first, 1 is third.
    let judgements = RelevanceJudgements::new(&[1, 2], &[], RelevanceCriterion::All);
    let gains = judgements.gains(&[2, 7, 1, 8]);
    assert_eq!(gains, [true, false, true, false]);
    assert!(close(judgements.recall(&gains, 1), 0.5));
    assert!(close(judgements.recall(&gains, 5), 1.0));
    let ideal = 1.0 + 1.0 / 3_f64.log2();
    assert!(close(judgements.ndcg(&gains, 10), (1.0 + 0.5) / ideal));
    assert!(close(judgements.ndcg(&gains, 2), 1.0 / ideal));
}

#[test]
fn alternatives_meet_the_same_need_once() {
    let judgements = RelevanceJudgements::new(&[1, 2], &[vec![5, 1, 6]], RelevanceCriterion::All);
    assert_eq!(judgements.gains(&[5, 1, 6, 2]), [true, false, false, true]);
    assert!(close(judgements.recall(&judgements.gains(&[5, 6]), 10), 0.5));
    assert_eq!(judgements.needs(), 2);
}

#[test]
fn any_tool_is_enough_but_ndcg_prefers_all() {
    let judgements = RelevanceJudgements::new(&[1, 2], &[], RelevanceCriterion::Any);
    let (one, both) = (judgements.gains(&[1, 9]), judgements.gains(&[1, 2]));
    assert!(close(judgements.recall(&one, 10), 1.0));
    assert!(close(judgements.ndcg(&both, 10), 1.0));
    assert!(judgements.ndcg(&one, 10) < 1.0);
    assert!(!judgements.needs_several_tools());
}

#[test]
fn means_and_percentiles_are_taken_over_all_queries() {
    let judgements = RelevanceJudgements::new(&[1], &[], RelevanceCriterion::All);
    let result =
        |list: &[usize], micros| QueryMetrics::of(&judgements, list, 10, Duration::from_micros(micros));
    let results: Vec<QueryMetrics> =
        (1..=99).map(|at| result(&[1], at)).chain([result(&[2, 1], 5_000)]).collect();
    let figures = MeanMetrics::of(&results).unwrap();
    assert!(close(figures.hit_at_1, 99.0));
    assert!(close(figures.recall_at_5, 100.0));
    assert!(close(figures.all_found_at_10, 100.0));
    assert!(close(figures.ndcg_at_10, 99.0 + 1.0 / 3_f64.log2()));
    assert!(close(figures.median_us, 50.0));
    assert!(close(figures.p99_us, 99.0));
    assert_eq!(MeanMetrics::of(&[]), None);
}

prop_compose! {
    fn any_case()(
        relevant in prop::collection::vec(0_usize..30, 1..6),
        groups in prop::collection::vec(prop::collection::vec(0_usize..30, 1..4), 0..3),
        list in prop::collection::vec(0_usize..30, 0..15),
        is_any in any::<bool>(),
    ) -> (RelevanceJudgements, Vec<usize>, Vec<usize>) {
        let criterion = if is_any { RelevanceCriterion::Any } else { RelevanceCriterion::All };
        (RelevanceJudgements::new(&relevant, &groups, criterion), relevant, list)
    }
}

proptest! {
    #[test]
    fn metrics_stay_between_zero_and_one((judgements, _, list) in any_case()) {
        let gains = judgements.gains(&list);
        for k in 0..15 {
            let (recall, ndcg) = (judgements.recall(&gains, k), judgements.ndcg(&gains, k));
            prop_assert!((0.0..=1.0).contains(&recall));
            prop_assert!((0.0..=1.0 + 1e-9).contains(&ndcg));
            prop_assert!(recall <= judgements.recall(&gains, k + 1));
        }
    }

    #[test]
    fn prepending_a_relevant_tool_never_lowers_a_metric((judgements, relevant, list) in any_case()) {
        let before = judgements.gains(&list);
        let extended: Vec<usize> = relevant.iter().take(1).chain(&list).copied().collect();
        let after = judgements.gains(&extended);
        // Prepending may push a tool out of the first ten, so the whole list is evaluated.
        prop_assert!(judgements.recall(&after, 20) >= judgements.recall(&before, 20));
        prop_assert!(after.first().copied().unwrap_or(false));
    }

    #[test]
    fn appending_a_relevant_tool_never_lowers_a_metric((judgements, relevant, list) in any_case()) {
        let before = judgements.gains(&list);
        let extended: Vec<usize> = list.iter().chain(relevant.iter().take(1)).copied().collect();
        let after = judgements.gains(&extended);
        prop_assert!(judgements.recall(&after, 10) >= judgements.recall(&before, 10));
        prop_assert!(judgements.ndcg(&after, 10) >= judgements.ndcg(&before, 10));
    }

    #[test]
    fn the_relevant_tools_alone_are_the_ideal_list((judgements, relevant, _) in any_case()) {
        let gains = judgements.gains(&relevant.iter().copied().collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>());
        prop_assert!(close(judgements.recall(&gains, 10), 1.0));
        prop_assert!(close(judgements.ndcg(&gains, 10), 1.0));
    }
}
