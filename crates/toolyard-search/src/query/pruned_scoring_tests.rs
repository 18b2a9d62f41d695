//! Scoring all documents finds the same ones.

use proptest::prelude::*;

use super::*;
use crate::{
    ParamText, ToolText,
    testing::{source, tool},
};

const WORDS: [&str; 24] = [
    "create",
    "delete",
    "remove",
    "search",
    "find",
    "send",
    "mail",
    "message",
    "file",
    "folder",
    "invoice",
    "payment",
    "weather",
    "calendar",
    "event",
    "issue",
    "branch",
    "table",
    "row",
    "chart",
    "image",
    "translate",
    "report",
    "user",
];

/// A catalogue in which the first words are in most tools, and the last ones in few.
fn catalogue(tools: &[(u32, u32, u32)]) -> SearchIndex {
    let word = |number: u32| {
        let share = usize::try_from(number % 1000).unwrap();
        WORDS[share * share * WORDS.len() / 1_000_000]
    };
    let tools: Vec<ToolText> = tools
        .iter()
        .enumerate()
        .map(|(at, (one, two, three))| ToolText {
            params: vec![ParamText { name: word(one / 7).to_owned(), description: word(two / 7).to_owned() }],
            ..tool(
                &format!("{}_{}_{at}", word(*one), word(*two)),
                &format!("{} the {}", word(*three), word(one / 3)),
            )
        })
        .collect();
    let mut index = SearchIndex::default();
    for (number, tools) in tools.chunks(tools.len().div_ceil(4).max(1)).enumerate() {
        index.put(&source(&format!("source{number}")), tools);
    }
    index
}

fn bits(documents: Vec<ScoredDocument>) -> Vec<(DocumentId, u32)> {
    documents.into_iter().map(|(id, score)| (id, score.to_bits())).collect()
}

fn request(words: &[usize]) -> String {
    words.iter().map(|word| WORDS[*word]).collect::<Vec<_>>().join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn pruning_changes_neither_documents_nor_scores(
        tools in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<u32>()), 200..1500),
        words in proptest::collection::vec(0..WORDS.len(), 1..9),
        limit in 1..40_usize,
        share in 0.0..1.0_f32,
        window_documents in 1..300_usize,
        removed in 0..8_usize,
    ) {
        let mut index = catalogue(&tools);
        index.remove(&format!("source{removed}"));
        let query = Query::parse(&index, "", &request(&words));
        let all = index.best_of_all(&query, limit);
        let possible = index.possible_best_by_windows(&query, limit, 0.0, window_documents).unwrap();
        prop_assert_eq!(bits(index.best_of(&query, &possible_first(&query, &possible), 1)), bits(index.best_of_all(&query, 1)));
        prop_assert_eq!(bits(index.best_of(&query, &possible, limit)), bits(all));

        // The same documents are left if concepts add something afterwards.
        let max_addition = share.powi(9) * index.max_score(&query.concepts);
        let possible = index.possible_best_by_windows(&query, limit, max_addition, window_documents);
        let with_concepts = query.with_concepts(share.powi(9));
        let all = index.best_of_all(&with_concepts, limit);
        if let Some(possible) = possible {
            prop_assert_eq!(bits(index.best_of(&with_concepts, &possible, limit)), bits(all.clone()));
        }
        let possible = index.possible_best_by_windows(&with_concepts, limit, 0.0, window_documents).unwrap();
        prop_assert_eq!(bits(index.best_of(&with_concepts, &possible, limit)), bits(all));
    }
}

/// A catalogue of 6,000 tools.
fn large_catalogue() -> SearchIndex {
    let number =
        |at: u32| (at.wrapping_mul(2_654_435_761), at.wrapping_mul(40_503) >> 3, at.wrapping_mul(7_919));
    catalogue(&(0..6000).map(number).collect::<Vec<_>>())
}

#[test]
fn few_documents_are_left_for_a_request_with_rare_words() {
    let mut index = large_catalogue();
    index.put(&source("rare"), &[tool("submarine_periscope", "Raises the periscope of a submarine.")]);
    let query = Query::parse(&index, "", "create submarine periscope file");
    let possible = index.possible_best_by_windows(&query, 1, 0.0, 512).unwrap();
    assert_eq!(possible.len(), 1, "only one tool is about submarines");
    assert_eq!(bits(index.best_of(&query, &possible, 1)), bits(index.best_of_all(&query, 1)));
}

#[test]
fn documents_that_only_concepts_find_are_not_left_out() {
    let index = large_catalogue();
    let query = Query::parse(&index, "", "submarine mail");
    assert!(index.possible_best_by_windows(&query, 10_000, 0.1, 512).is_none());
    assert!(index.possible_best_by_windows(&query, 10, 100.0, 512).is_none());
}

#[test]
fn a_search_of_many_postings_finds_the_same_as_one_that_scores_all_documents() {
    let index = large_catalogue();
    for words in [&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9][..], &[11, 2, 13, 1, 0, 3, 6, 17, 5, 4, 8, 9]] {
        let query = Query::parse(&index, "", &request(words));
        assert!(index.possible_best(&query, 100, 0.0).is_some(), "enough postings");
        assert!(!query.concepts.is_empty());
        let best = index.best_of_all(&query, 1).first().and_then(|(id, _)| index.document(*id));
        let share = index.concept_share(&query, best);
        let all = index.best_of_all(&query.clone().with_concepts(share), 100);
        let max_addition = index.concept_share(&query, None) * index.max_score(&query.concepts);
        assert!(index.possible_best(&query, 100, max_addition).is_some(), "concepts do not prevent it");
        let (_, found) = index.with_concepts(query, 100);
        assert_eq!(bits(found), bits(all));
    }
}
