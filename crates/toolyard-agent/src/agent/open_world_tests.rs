//! Tests of the decision which calls disclose non-public data.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn sources(names: &[&str]) -> DataSources {
    let mut sources = DataSources::default();
    names.iter().for_each(|name| sources.insert(name));
    sources
}

fn destination(source: &str, is_declared: bool) -> Destination {
    Destination { source: source.into(), is_declared }
}

fn is_user_text(arguments: &Value, question: &str) -> bool {
    let parameters = ["query".to_owned(), "limit".to_owned()];
    consists_of_user_text(&RawJson::from_value(arguments), &parameters, [question].into_iter())
}

#[test]
fn a_declared_open_world_tool_discloses_even_the_data_of_its_own_source() {
    let private = sources(&["web"]);
    assert_eq!(disclosed_sources(&[destination("web", true)], &private), private);
    assert!(disclosed_sources(&[destination("web", false)], &private).is_empty());
    let mixed = sources(&["web", "mail"]);
    assert_eq!(disclosed_sources(&[destination("web", false)], &mixed), mixed);
}

#[test]
fn words_of_the_user_are_recognized_only_as_they_were_written() {
    let question = "Search the web for weather in Rome, show 5 results";
    for same in [json!({"query": "weather in Rome"}), json!({"query": "weather", "limit": 5}), json!({})] {
        assert!(is_user_text(&same, question), "{same}");
    }
    for other in [
        json!({"query": "weather Rome"}),
        json!({"query": "weather in Rom"}),
        json!({"query": "eather"}),
        json!({"query": " weather"}),
        json!({"query": "WEATHER"}),
        json!({"query": "weather  in Rome"}),
        json!({"query": "", "limit": 5}),
        json!({"query": "weather", "limit": 7}),
        json!({"query": "weather", "limit": true}),
        json!({"query": ["weather"]}),
        json!({"query": {"weather": "Rome"}}),
        json!({"web": "weather"}),
        json!(["weather"]),
    ] {
        assert!(!is_user_text(&other, question), "{other}");
    }
    assert!(is_user_text(&json!({"query": "天气"}), "请在网上搜索天气"));
}

proptest! {
    #[test]
    fn only_public_or_own_data_may_leave_unasked(
        names in proptest::collection::btree_set("[a-c]", 0..3),
        all in proptest::collection::vec(("[a-c]", any::<bool>()), 0..4),
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let sources = sources(&names);
        let destinations: Vec<Destination> = all.iter().map(|(source, declared)| destination(source, *declared)).collect();
        let disclosed = disclosed_sources(&destinations, &sources);
        let is_safe = |destination: &Destination| {
            names.is_empty() || (!destination.is_declared && names.iter().all(|name| *name == destination.source.as_str()))
        };
        prop_assert_eq!(disclosed.is_empty(), destinations.iter().all(is_safe));
        prop_assert!(disclosed.is_empty() || disclosed == sources);
    }

    #[test]
    fn a_secret_that_the_user_did_not_write_is_never_user_text(
        secret in "[A-Za-z0-9]{6,20}", question in "[a-z ]{0,60}", prefix in "[a-z ]{0,9}",
    ) {
        prop_assume!(!question.contains(&secret));
        let query = json!({"query": format!("{prefix}{secret}")});
        prop_assert!(!is_user_text(&query, &question));
    }

    #[test]
    fn passages_of_the_question_are_user_text(words in proptest::collection::vec("[a-z]{1,8}", 1..9), from in 0_usize..9, to in 0_usize..9) {
        let (from, to) = (from % words.len(), to % words.len());
        let passage = words[from.min(to)..=from.max(to)].join(" ");
        let query = json!({"query": passage});
        prop_assert!(is_user_text(&query, &words.join(" ")));
    }
}
