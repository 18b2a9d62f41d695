//! What people rely on when they search: names first, everyday words, other languages, and the same result whatever
//! happened before.

use proptest::prelude::*;

use super::*;
use crate::search::{
    ParamText, Via,
    lexicon::{Lexicon, Meaning},
    query::Query,
    testing::{server, tool},
};

fn office() -> SearchIndex {
    let mut index = SearchIndex::default();
    index.put(
        &server("excel"),
        &[
            tool("read_data_from_excel", "Read data from an Excel worksheet."),
            tool("write_data_to_excel", "Write data to an Excel worksheet."),
            tool("create_chart", "Create a chart in a worksheet."),
        ],
    );
    index.put(
        &server("mail"),
        &[
            tool("sendMessage", "Send an email message to somebody."),
            tool("delete_message", "Delete a message from the mailbox."),
        ],
    );
    index
}

fn names(index: &SearchIndex, request: &str) -> Vec<String> {
    index.search(request, 10).iter().map(|hit| hit.key.to_string()).collect()
}

#[test]
fn an_exact_name_comes_first_whatever_else_is_said() {
    let index = office();
    assert_eq!(names(&index, "create_chart")[0], "create_chart");
    assert_eq!(names(&index, "how do I read data from excel with create_chart?")[0], "create_chart");
    assert_eq!(names(&index, "SENDMESSAGE")[0], "sendMessage");
}

#[test]
fn a_brand_is_no_exact_name() {
    let mut index = office();
    index.put(&server("squatter"), &[tool("github", "Does nothing of use.")]);
    assert_eq!(names(&index, "send an email message to the GitHub office")[0], "sendMessage");
}

#[test]
fn a_request_is_read_up_to_a_bound() {
    let index = office();
    let mut long = "ay".repeat(60_000);
    assert!(names(&index, &long).is_empty());
    long.insert_str(0, "send an email ");
    assert_eq!(names(&index, &long)[0], "sendMessage");
    assert!(Query::read(&index, &"mail? a! ".repeat(50_000)).slots.len() < 5);
    assert!(!index.search("mail", usize::MAX).is_empty());
}

#[test]
fn everyday_words_find_what_tools_call_it() {
    let hits = office().search("get rid of that mail", 3);
    assert_eq!(hits[0].key.as_ref(), "delete_message");
    assert!(
        hits[0].matched.iter().any(|matched| matched.word == "get rid of" && matched.via == Via::Synonym)
    );
}

#[test]
fn endings_and_spelling_of_names_do_not_matter() {
    assert_eq!(names(&office(), "reading excel worksheets")[0], "read_data_from_excel");
    assert_eq!(names(&office(), "send message")[0], "sendMessage");
}

#[test]
fn what_nobody_has_finds_nothing() {
    assert!(names(&office(), "zzz qqq").is_empty());
    assert!(names(&office(), "").is_empty());
    assert!(SearchIndex::default().search("anything", 10).is_empty());
}

#[test]
fn copies_of_one_tool_take_one_place() {
    let mut index = office();
    index.put(&server("excel2"), &[tool("create_chart", "Create a chart in a worksheet.")]);
    let hits = index.search("create a chart", 10);
    let charts: Vec<_> = hits.iter().filter(|hit| hit.key.as_ref() == "create_chart").collect();
    assert_eq!(charts.len(), 1);
    assert_eq!(charts[0].same, [("excel2".into(), "create_chart".into())]);
}

#[test]
fn a_server_that_is_gone_is_not_found() {
    let mut index = office();
    assert!(index.remove("mail"));
    assert!(!index.remove("mail"));
    assert!(names(&index, "sendMessage").is_empty());
    assert_eq!(index.len(), 3);
}

struct Zh;

impl Lexicon for Zh {
    fn meanings(&self, text: &str) -> Vec<Meaning> {
        let known = [("删除", "delete"), ("邮件", "mail")];
        let found = known.iter().filter_map(|(word, gloss)| {
            let at = text.find(word)?;
            Some(Meaning { word: at..at + word.len(), glosses: vec![vec![(*gloss).to_owned()]] })
        });
        found.collect()
    }
}

#[test]
fn chinese_finds_english_and_the_reverse() {
    let mut index = SearchIndex::with_lexicon(Arc::new(Zh));
    index.put(&server("mail"), &[tool("delete_message", "Delete a mail."), tool("send", "Send something.")]);
    index.put(&server("邮箱"), &[tool("qingli", "删除旧邮件")]);
    assert_eq!(names(&index, "把这封邮件删除")[0], "qingli", "the language that was asked in comes first");
    assert!(names(&index, "把这封邮件删除").contains(&"delete_message".to_owned()));
    assert!(names(&index, "delete mail").contains(&"qingli".to_owned()));
}

#[test]
fn parameters_are_searched_too() {
    let mut index = SearchIndex::default();
    let mut forecast = tool("forecast", "Tells what comes.");
    forecast.params =
        vec![ParamText { name: "zip_code".to_owned(), description: "Postal code of the town".to_owned() }];
    index.put(&server("sky"), &[forecast, tool("other", "Does something else.")]);
    assert_eq!(names(&index, "postal code"), ["forecast"]);
}

#[test]
fn steps_are_searched_in_turn_and_know_their_task() {
    let index = office();
    let steps = ["read the worksheet", "send it"];
    let hits = index.search_steps("read an Excel worksheet and mail it to Bob", steps, 4);
    let keys: Vec<&str> = hits.iter().map(|hit| hit.key.as_ref()).collect();
    assert_eq!(&keys[..2], ["read_data_from_excel", "sendMessage"]);
}

/// A small world: servers by number, each with a few tools made of few words.
type Change = (u8, Option<Vec<(u8, u8)>>);

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let tools = prop::collection::vec((0u8..20, 0u8..20), 1..5);
    prop::collection::vec((0u8..6, prop::option::weighted(0.7, tools)), 1..40)
}

fn word(number: u8) -> &'static str {
    const WORDS: [&str; 20] = [
        "read", "write", "chart", "mail", "send", "file", "delete", "list", "user", "group", "cluster",
        "deploy", "weather", "stock", "price", "image", "video", "search", "note", "task",
    ];
    WORDS[usize::from(number)]
}

fn texts(tools: &[(u8, u8)]) -> Vec<ToolText> {
    let mut seen = std::collections::HashSet::new();
    let named = tools.iter().map(|(one, other)| {
        tool(&format!("{}_{}", word(*one), word(*other)), &format!("{} the {}", word(*other), word(*one)))
    });
    named.filter(|tool| seen.insert(Arc::clone(&tool.key))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_found_depends_on_what_is_there_and_not_on_how_it_came(all in changes(), request in "[a-z ]{0,20}") {
        let mut lived = SearchIndex::default();
        let mut there = std::collections::BTreeMap::new();
        for (id, tools) in &all {
            let id = format!("s{id}");
            match tools {
                Some(tools) => {
                    lived.put(&server(&id), &texts(tools));
                    there.insert(id, texts(tools));
                }
                None => {
                    lived.remove(&id);
                    there.remove(&id);
                }
            }
        }
        let mut fresh = SearchIndex::default();
        for (id, tools) in there.iter().rev() {
            fresh.put(&server(id), tools);
        }
        prop_assert_eq!(lived.len(), fresh.len());
        for request in [request.as_str(), "read the file", "deploy a cluster and mail the price", "read_write"] {
            prop_assert_eq!(lived.search(request, 5), fresh.search(request, 5));
        }
        lived.renumber();
        prop_assert_eq!(lived.search("read the file", 5), fresh.search("read the file", 5));
    }

    #[test]
    fn any_text_can_be_indexed_and_asked_for(name in "\\PC{0,40}", text in "\\PC{0,200}", request in "\\PC{0,200}") {
        let mut index = office();
        index.put(&server(&name), &[tool(&name, &text)]);
        let hits = index.search(&request, 5);
        prop_assert!(hits.len() <= 5);
        prop_assert!(hits.iter().all(|hit| hit.score.is_finite()));
    }
}
