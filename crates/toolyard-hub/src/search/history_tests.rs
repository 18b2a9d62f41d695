//! What people rely on: the past helps, it is bounded, it outlives a server's absence, and without it nothing changes.

use proptest::prelude::*;

use super::{
    super::{
        testing::{server, tool},
        *,
    },
    MOST_OF_TOOL,
};

fn kitchen() -> SearchIndex {
    let mut index = SearchIndex::default();
    let tools = [tool("find_recipe", "Finds a recipe."), tool("shopping_list", "Writes a list.")];
    index.put(&server("kitchen"), &tools);
    index.put(&server("sky"), &[tool("forecast", "Tells the weather."), tool("moon", "Tells its phase.")]);
    index
}

fn first(index: &SearchIndex, request: &str) -> Option<Hit> {
    index.search(request, 10).into_iter().next()
}

#[test]
fn what_was_asked_before_is_found_though_no_definition_says_it() {
    let mut index = kitchen();
    assert!(first(&index, "are these gumboots?").is_none());
    index.remember("sky", "forecast", "Will I need gumboots in Paris?");
    let hit = first(&index, "are these gumboots?").unwrap();
    assert_eq!(hit.key.as_ref(), "forecast");
    assert!(hit.history > 0.0 && hit.matched.is_empty());
    index.remember("kitchen", "find_recipe", "晚饭吃什么");
    assert_eq!(first(&index, "今天晚饭吃什么好").unwrap().key.as_ref(), "find_recipe");
}

#[test]
fn requests_outlive_the_absence_of_a_server_and_do_not_find_it_then() {
    let mut index = kitchen();
    index.remember("sky", "forecast", "do I need gumboots");
    index.remember("later", "soup", "cook something with onions");
    index.remove("sky");
    assert!(first(&index, "gumboots").is_none() && first(&index, "onions").is_none());
    index.put(&server("sky"), &[tool("moon", "Tells its phase."), tool("forecast", "Tells the weather.")]);
    index.put(&server("later"), &[tool("soup", "Makes soup.")]);
    assert_eq!(first(&index, "gumboots").unwrap().key.as_ref(), "forecast");
    assert_eq!(first(&index, "onions").unwrap().key.as_ref(), "soup");
    index.put(&server("sky"), &[tool("moon", "Tells its phase.")]);
    assert!(first(&index, "gumboots").is_none(), "the tool is gone, not its server");
}

#[test]
fn a_poisoned_past_does_not_come_before_a_name() {
    let mut index = kitchen();
    for number in 0..MOST_OF_TOOL {
        index.remember("sky", "moon", &format!("find_recipe for dish {number}"));
        index.remember("sky", "moon", "find_recipe");
    }
    assert_eq!(first(&index, "find_recipe").unwrap().key.as_ref(), "find_recipe");
    assert_eq!(first(&index, "please call find_recipe for dish 7").unwrap().key.as_ref(), "find_recipe");
}

#[test]
fn only_the_newest_requests_of_a_tool_are_kept_and_repetition_is_not_more() {
    let mut index = kitchen();
    index.remember("sky", "forecast", "gumboots");
    for _ in 0..100 {
        index.remember("sky", "moon", "werewolves?");
    }
    assert_eq!(index.past_requests(), 2);
    for number in 0..MOST_OF_TOOL {
        index.remember("sky", "forecast", &format!("town{number}"));
    }
    assert_eq!(index.past_requests(), 1 + MOST_OF_TOOL);
    assert!(first(&index, "gumboots").is_none());
    index.remember("sky", "forecast", "the of and");
    assert_eq!(index.past_requests(), 1 + MOST_OF_TOOL, "small words alone say nothing");
}

#[test]
fn numbers_and_terms_of_forgotten_requests_are_given_back() {
    let mut index = kitchen();
    for number in 0..20_000 {
        index.remember("sky", "forecast", &format!("gumboots town{number}"));
    }
    assert!(index.history.requests.len() < 5_000 && index.history.terms.len() < 10_000);
    let hit = first(&index, "gumboots town19999").unwrap();
    assert_eq!((hit.key.as_ref(), index.past_requests()), ("forecast", MOST_OF_TOOL));
}

/// Tools by server and name, and requests made of few words.
fn uses() -> impl Strategy<Value = Vec<(usize, String)>> {
    prop::collection::vec((0usize..4, "(recipe|weather|gumboots|soup|list|moon| ){1,6}"), 0..40)
}

const TOOLS: [(&str, &str); 4] =
    [("kitchen", "find_recipe"), ("kitchen", "shopping_list"), ("sky", "forecast"), ("sky", "moon")];

fn after(uses: &[(usize, String)]) -> SearchIndex {
    let mut index = kitchen();
    for (tool, request) in uses {
        let (server, key) = TOOLS[*tool];
        index.remember(server, key, request);
    }
    index
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_order_of_few_requests_does_not_matter(
        uses in uses(), seed in any::<u64>(), request in "(recipe|gumboots|moon|soup|nothing| ){0,5}",
    ) {
        // Fewer than are kept of one tool.
        let uses: Vec<_> = uses.into_iter().take(MOST_OF_TOOL).collect();
        let mut shuffled = uses.clone();
        let turn = usize::try_from(seed % 40).unwrap();
        shuffled.rotate_left(turn.min(uses.len()));
        prop_assert_eq!(after(&uses).search(&request, 5), after(&shuffled).search(&request, 5));
        shuffled.reverse();
        let mut numbered_anew = after(&shuffled);
        numbered_anew.history.renumber();
        prop_assert_eq!(after(&uses).search(&request, 5), numbered_anew.search(&request, 5));
    }

    #[test]
    fn the_past_adds_at_most_what_the_words_say_of_the_best(uses in uses(), request in "\\PC{0,60}|(recipe|moon| )*") {
        let cold = kitchen().search(&request, 5);
        let best = cold.first().map_or(1.0, |hit| hit.score);
        let index = after(&uses);
        prop_assert!(index.past_requests() <= 4 * MOST_OF_TOOL);
        for hit in index.search(&request, 5) {
            prop_assert!(hit.score.is_finite() && hit.history >= 0.0 && hit.history <= best * 1.0001);
        }
        for (_, score) in index.history.similar(&request) {
            prop_assert!((0.0..=1.0).contains(&score));
        }
    }

    #[test]
    fn a_past_of_others_changes_nothing_at_all(uses in uses(), request in "(recipe|gumboots|moon|soup|forecast| ){0,5}") {
        let mut index = kitchen();
        for (_, request) in &uses {
            index.remember("elsewhere", "unknown", request);
        }
        prop_assert_eq!(index.search(&request, 5), kitchen().search(&request, 5));
    }

    #[test]
    fn any_text_can_be_remembered(texts in prop::collection::vec("\\PC{0,300}", 0..5), request in "\\PC{0,300}") {
        let mut index = kitchen();
        for text in &texts {
            index.remember("sky", text, text);
            index.remember("sky", "moon", &text.repeat(50));
        }
        let hits = index.search(&request, 5);
        prop_assert!(hits.iter().all(|hit| hit.score.is_finite()));
    }
}
