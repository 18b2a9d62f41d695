//! Past requests promote tools by a bounded score, survive the removal of a source, and leave other searches unchanged.

use proptest::prelude::*;

use super::MAX_REQUESTS_PER_TOOL;
use crate::{
    Hit, SearchIndex,
    testing::{source, tool},
};

fn kitchen() -> SearchIndex {
    let mut index = SearchIndex::default();
    let tools = [tool("find_recipe", "Finds a recipe."), tool("shopping_list", "Writes a list.")];
    index.put(&source("kitchen"), &tools);
    index.put(&source("sky"), &[tool("forecast", "Tells the weather."), tool("moon", "Tells its phase.")]);
    index
}

fn first(index: &SearchIndex, request: &str) -> Option<Hit> {
    index.search(request, 10).into_iter().next()
}

#[test]
fn a_past_request_finds_its_tool_without_a_lexical_match() {
    let mut index = kitchen();
    assert!(first(&index, "are these gumboots?").is_none());
    index.record_use("sky", "forecast", "Will I need gumboots in Paris?");
    let hit = first(&index, "are these gumboots?").unwrap();
    assert_eq!(hit.key.as_ref(), "forecast");
    assert!(hit.history_score > 0.0 && hit.matches.is_empty());
    index.record_use("kitchen", "find_recipe", "晚饭吃什么");
    assert_eq!(first(&index, "今天晚饭吃什么好").unwrap().key.as_ref(), "find_recipe");
}

#[test]
fn past_requests_survive_the_removal_of_their_source() {
    let mut index = kitchen();
    index.record_use("sky", "forecast", "do I need gumboots");
    index.record_use("later", "soup", "cook something with onions");
    index.remove("sky");
    assert!(first(&index, "gumboots").is_none() && first(&index, "onions").is_none());
    index.put(&source("sky"), &[tool("moon", "Tells its phase."), tool("forecast", "Tells the weather.")]);
    index.put(&source("later"), &[tool("soup", "Makes soup.")]);
    assert_eq!(first(&index, "gumboots").unwrap().key.as_ref(), "forecast");
    assert_eq!(first(&index, "onions").unwrap().key.as_ref(), "soup");
    index.put(&source("sky"), &[tool("moon", "Tells its phase.")]);
    assert!(first(&index, "gumboots").is_none(), "the tool is gone, not its source");
}

#[test]
fn past_requests_do_not_outrank_an_exact_name() {
    let mut index = kitchen();
    for number in 0..MAX_REQUESTS_PER_TOOL {
        index.record_use("sky", "moon", &format!("find_recipe for dish {number}"));
        index.record_use("sky", "moon", "find_recipe");
    }
    assert_eq!(first(&index, "find_recipe").unwrap().key.as_ref(), "find_recipe");
    assert_eq!(first(&index, "please call find_recipe for dish 7").unwrap().key.as_ref(), "find_recipe");
}

#[test]
fn only_the_newest_distinct_requests_of_a_tool_are_kept() {
    let mut index = kitchen();
    index.record_use("sky", "forecast", "gumboots");
    for _ in 0..100 {
        index.record_use("sky", "moon", "werewolves?");
    }
    assert_eq!(index.history.len(), 2);
    for number in 0..MAX_REQUESTS_PER_TOOL {
        index.record_use("sky", "forecast", &format!("town{number}"));
    }
    assert_eq!(index.history.len(), 1 + MAX_REQUESTS_PER_TOOL);
    assert!(first(&index, "gumboots").is_none());
    index.record_use("sky", "forecast", "the of and");
    assert_eq!(index.history.len(), 1 + MAX_REQUESTS_PER_TOOL, "a request of stop words is not recorded");
}

#[test]
fn ids_and_terms_of_dropped_requests_are_reclaimed() {
    let mut index = kitchen();
    for number in 0..20_000 {
        index.record_use("sky", "forecast", &format!("gumboots town{number}"));
    }
    assert!(index.history.unnamed.requests.len() < 5_000 && index.history.unnamed.terms.len() < 10_000);
    let hit = first(&index, "gumboots town19999").unwrap();
    assert_eq!((hit.key.as_ref(), index.history.len()), ("forecast", MAX_REQUESTS_PER_TOOL));
}

/// Positions in `TOOLS`, and requests made of few words.
fn uses() -> impl Strategy<Value = Vec<(usize, String)>> {
    prop::collection::vec((0usize..4, "(recipe|weather|gumboots|soup|list|moon| ){1,6}"), 0..40)
}

const TOOLS: [(&str, &str); 4] =
    [("kitchen", "find_recipe"), ("kitchen", "shopping_list"), ("sky", "forecast"), ("sky", "moon")];

fn index_after(uses: &[(usize, String)]) -> SearchIndex {
    let mut index = kitchen();
    for (tool, request) in uses {
        let (source, key) = TOOLS[*tool];
        index.record_use(source, key, request);
    }
    index
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_order_of_requests_has_no_effect_below_the_limit(
        uses in uses(), seed in any::<u64>(), request in "(recipe|gumboots|moon|soup|nothing| ){0,5}",
    ) {
        // Fewer than the limit per tool.
        let uses: Vec<_> = uses.into_iter().take(MAX_REQUESTS_PER_TOOL).collect();
        let mut shuffled = uses.clone();
        let rotation = usize::try_from(seed % 40).unwrap();
        shuffled.rotate_left(rotation.min(uses.len()));
        prop_assert_eq!(index_after(&uses).search(&request, 5), index_after(&shuffled).search(&request, 5));
        shuffled.reverse();
        let mut compacted = index_after(&shuffled);
        compacted.history.unnamed.compact();
        prop_assert_eq!(index_after(&uses).search(&request, 5), compacted.search(&request, 5));
    }

    #[test]
    fn the_history_score_is_bounded_by_the_best_lexical_score(uses in uses(), request in "\\PC{0,60}|(recipe|moon| )*") {
        let without_history = kitchen().search(&request, 5);
        let best = without_history.first().map_or(1.0, |hit| hit.score);
        let index = index_after(&uses);
        prop_assert!(index.history.len() <= 4 * MAX_REQUESTS_PER_TOOL);
        for hit in index.search(&request, 5) {
            prop_assert!(hit.score.is_finite() && hit.history_score >= 0.0 && hit.history_score <= best * 1.0001);
        }
        for (_, score) in index.history.unnamed.similar_tools(&request, |source, key| index.find_document(source, key)) {
            prop_assert!((0.0..=1.0).contains(&score));
        }
    }

    #[test]
    fn past_requests_of_unknown_tools_change_nothing(uses in uses(), request in "(recipe|gumboots|moon|soup|forecast| ){0,5}") {
        let mut index = kitchen();
        for (_, request) in &uses {
            index.record_use("elsewhere", "unknown", request);
        }
        prop_assert_eq!(index.search(&request, 5), kitchen().search(&request, 5));
    }

    #[test]
    fn any_text_can_be_recorded(texts in prop::collection::vec("\\PC{0,300}", 0..5), request in "\\PC{0,300}") {
        let mut index = kitchen();
        for text in &texts {
            index.record_use("sky", text, text);
            index.record_use("sky", "moon", &text.repeat(50));
        }
        let hits = index.search(&request, 5);
        prop_assert!(hits.iter().all(|hit| hit.score.is_finite()));
    }
}
