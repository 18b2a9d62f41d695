//! Both ways to find the best documents find the same ones.

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
    index.put(&source("first"), tools.get(..tools.len() / 2).unwrap_or_default());
    index.put(&source("second"), tools.get(tools.len() / 2..).unwrap_or_default());
    index
}

fn both_ways(index: &SearchIndex, query: &Query, limit: usize) -> [Vec<(DocumentId, u32)>; 2] {
    let mut buffers = ScoringBuffers::default();
    buffers.total.reserve(index.id_bound());
    let all = index.top_documents_of_all(query, limit, &mut buffers);
    let pruned = index.top_documents_pruned(query, limit, &mut buffers);
    [all, pruned].map(|found| found.into_iter().map(|(id, score)| (id, score.to_bits())).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn pruning_changes_neither_documents_nor_scores(
        tools in proptest::collection::vec((any::<u32>(), any::<u32>(), any::<u32>()), 200..1500),
        words in proptest::collection::vec(0..WORDS.len(), 1..9),
        limit in 1..6_usize,
        share in 0.0..1.0_f32,
    ) {
        let index = catalogue(&tools);
        let request: Vec<&str> = words.iter().map(|word| WORDS[*word]).collect();
        let query = Query::parse(&index, "", &request.join(" ")).with_concepts(share.powi(9));
        let [all, pruned] = both_ways(&index, &query, limit);
        prop_assert_eq!(all, pruned);
    }
}

#[test]
fn postings_of_terms_that_cannot_matter_are_not_read() {
    let number =
        |at: u32| (at.wrapping_mul(2_654_435_761), at.wrapping_mul(40_503) >> 3, at.wrapping_mul(7_919));
    let mut index = catalogue(&(0..6000).map(number).collect::<Vec<_>>());
    index.put(&source("rare"), &[tool("submarine_periscope", "Raises the periscope of a submarine.")]);
    let query = Query::parse(&index, "", "create submarine periscope file");
    let mut buffers = ScoringBuffers::default();
    buffers.total.reserve(index.id_bound());
    let mut terms: Vec<BoundedTerm<'_>> = query.terms.iter().map(|term| index.bounded(term)).collect();
    terms.sort_by(|one, other| other.max_score.total_cmp(&one.max_score));
    index.add_query_term(terms[0].term, &mut buffers);
    index.add_query_term(terms[1].term, &mut buffers);
    buffers.total.update(0, |_| 0.001);
    let candidates = index.candidates_before(&terms[2..], 1, &buffers.total).unwrap();
    assert_eq!(candidates.len(), 1, "only one tool is about submarines");
    let [all, pruned] = both_ways(&index, &query, 1);
    assert_eq!(all, pruned);
}
