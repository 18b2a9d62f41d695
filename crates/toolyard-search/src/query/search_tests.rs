//! Searches: exact names first, synonyms, other languages, and the same result for every order of insertion.

use proptest::prelude::*;

use super::*;
use crate::{
    ParamText, ToolText,
    testing::{source, tool},
};

fn office() -> SearchIndex {
    let mut index = SearchIndex::default();
    index.put(
        &source("excel"),
        &[
            tool("read_data_from_excel", "Read data from an Excel worksheet."),
            tool("write_data_to_excel", "Write data to an Excel worksheet."),
            tool("create_chart", "Create a chart in a worksheet."),
        ],
    );
    index.put(
        &source("mail"),
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
fn an_exact_name_ranks_first() {
    let index = office();
    assert_eq!(names(&index, "create_chart")[0], "create_chart");
    assert_eq!(names(&index, "how do I read data from excel with create_chart?")[0], "create_chart");
    assert_eq!(names(&index, "SENDMESSAGE")[0], "sendMessage");
}

#[test]
fn a_brand_is_not_an_exact_name() {
    let mut index = office();
    index.put(&source("squatter"), &[tool("github", "Does nothing of use.")]);
    assert_eq!(names(&index, "send an email message to the GitHub office")[0], "sendMessage");
}

#[test]
fn overlong_requests_are_truncated() {
    let index = office();
    let mut long = "ay".repeat(60_000);
    assert!(names(&index, &long).is_empty());
    long.insert_str(0, "send an email ");
    assert_eq!(names(&index, &long)[0], "sendMessage");
    assert!(Query::parse(&index, "", &"mail? a! ".repeat(50_000)).terms.len() < 5);
    assert!(!index.search("mail", usize::MAX).is_empty());
}

#[test]
fn synonyms_match() {
    let hits = office().search("get rid of that mail", 3);
    assert_eq!(hits[0].key.as_ref(), "delete_message");
    assert!(
        hits[0].matches.iter().any(|found| found.word == "get rid of" && found.kind == MatchKind::Synonym)
    );
}

#[test]
fn inflections_and_identifier_styles_match() {
    assert_eq!(names(&office(), "reading excel worksheets")[0], "read_data_from_excel");
    assert_eq!(names(&office(), "send message")[0], "sendMessage");
}

#[test]
fn unknown_words_find_nothing() {
    assert!(names(&office(), "zzz qqq").is_empty());
    assert!(names(&office(), "").is_empty());
    assert!(SearchIndex::default().search("anything", 10).is_empty());
}

#[test]
fn duplicates_share_one_hit() {
    let mut index = office();
    index.put(&source("excel2"), &[tool("create_chart", "Create a chart in a worksheet.")]);
    let hits = index.search("create a chart", 10);
    let charts: Vec<_> = hits.iter().filter(|hit| hit.key.as_ref() == "create_chart").collect();
    assert_eq!(charts.len(), 1);
    assert_eq!(charts[0].duplicates, [("excel2".into(), "create_chart".into())]);
}

#[test]
fn tools_of_a_removed_source_are_not_found() {
    let mut index = office();
    assert!(index.remove("mail"));
    assert!(!index.remove("mail"));
    assert!(names(&index, "sendMessage").is_empty());
    assert_eq!(index.len(), 3);
}

#[test]
fn chinese_and_english_find_each_other() {
    let mut index = SearchIndex::default();
    index.put(&source("mail"), &[tool("delete_message", "Delete a mail."), tool("send", "Send something.")]);
    index.put(&source("邮箱"), &[tool("qingli", "删除旧邮件")]);
    assert_eq!(names(&index, "把这封邮件删除")[0], "qingli", "the language of the request ranks first");
    assert!(names(&index, "把这封邮件删除").contains(&"delete_message".to_owned()));
    assert!(names(&index, "delete mail").contains(&"qingli".to_owned()));
}

#[test]
fn parameters_are_searched() {
    let mut index = SearchIndex::default();
    let mut forecast = tool("forecast", "Tells what comes.");
    forecast.params =
        vec![ParamText { name: "zip_code".to_owned(), description: "Postal code of the town".to_owned() }];
    index.put(&source("sky"), &[forecast, tool("other", "Does something else.")]);
    assert_eq!(names(&index, "postal code"), ["forecast"]);
}

#[test]
fn hits_of_steps_are_interleaved_and_use_the_task() {
    let index = office();
    let steps = ["read the worksheet", "send it"];
    let hits = index.search_steps("read an Excel worksheet and mail it to Bob", steps, 4);
    let keys: Vec<&str> = hits.iter().map(|hit| hit.key.as_ref()).collect();
    assert_eq!(&keys[..2], ["read_data_from_excel", "sendMessage"]);
}

/// A source by number, with new tools (each two word numbers) or removed.
type Update = (u8, Option<Vec<(u8, u8)>>);

fn updates() -> impl Strategy<Value = Vec<Update>> {
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

fn tool_texts(tools: &[(u8, u8)]) -> Vec<ToolText> {
    let mut seen = HashSet::new();
    let named = tools.iter().map(|(one, other)| {
        tool(&format!("{}_{}", word(*one), word(*other)), &format!("{} the {}", word(*other), word(*one)))
    });
    named.filter(|tool| seen.insert(Arc::clone(&tool.key))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn results_do_not_depend_on_the_order_of_updates(all in updates(), request in "[a-z ]{0,20}") {
        let mut updated = SearchIndex::default();
        let mut current = std::collections::BTreeMap::new();
        for (id, tools) in &all {
            let id = format!("s{id}");
            match tools {
                Some(tools) => {
                    updated.put(&source(&id), &tool_texts(tools));
                    current.insert(id, tool_texts(tools));
                }
                None => {
                    updated.remove(&id);
                    current.remove(&id);
                }
            }
        }
        let mut fresh = SearchIndex::default();
        for (id, tools) in current.iter().rev() {
            fresh.put(&source(id), tools);
        }
        prop_assert_eq!(updated.len(), fresh.len());
        for request in [request.as_str(), "read the file", "deploy a cluster and mail the price", "read_write"] {
            prop_assert_eq!(updated.search(request, 5), fresh.search(request, 5));
        }
        updated.compact();
        prop_assert_eq!(updated.search("read the file", 5), fresh.search("read the file", 5));
    }

    #[test]
    fn any_text_can_be_indexed_and_searched_for(name in "\\PC{0,40}", text in "\\PC{0,200}", request in "\\PC{0,200}") {
        let mut index = office();
        index.put(&source(&name), &[tool(&name, &text)]);
        let hits = index.search(&request, 5);
        prop_assert!(hits.len() <= 5);
        prop_assert!(hits.iter().all(|hit| hit.score.is_finite()));
    }
}

/// Tools of several everyday servers, with names only: what is found is found by concepts.
fn everyday() -> SearchIndex {
    let mut index = SearchIndex::default();
    let servers: [(&str, &[&str]); 6] = [
        ("slack", &["slack_post_message", "slack_reply_to_thread", "slack_list_channels"]),
        ("gmail", &["search_emails", "send_email", "delete_email"]),
        ("excel", &["read_data_from_excel", "write_data_to_excel", "insert_rows"]),
        ("atlassian", &["jira_assign_issue", "jira_add_worklog", "confluence_search"]),
        ("yfinance", &["get_stock_history", "get_income_statement"]),
        ("browser", &["browser_tabs", "browser_click"]),
    ];
    for (id, tools) in servers {
        let tools: Vec<ToolText> = tools.iter().map(|name| tool(name, "")).collect();
        index.put(&source(id), &tools);
    }
    index
}

#[test]
fn requests_find_tools_by_subject_and_action() {
    let index = everyday();
    for (request, wanted) in [
        ("let everyone know that lunch is ready", "slack_post_message"),
        ("has the bank written to me", "search_emails"),
        ("how have my shares done over the last years", "get_stock_history"),
        ("把会议纪要告诉大家", "slack_post_message"),
        ("房东来过信吗", "search_emails"),
        ("ABC-12交给小王", "jira_assign_issue"),
        ("看看账目.xlsx里都写了什么", "read_data_from_excel"),
    ] {
        assert!(
            names(&index, request).iter().take(3).any(|name| name == wanted),
            "{request}: {:?}",
            names(&index, request)
        );
    }
    let hits = index.search("has the bank written to me", 3);
    assert!(hits.iter().any(|hit| hit.matches.iter().any(|found| found.kind == MatchKind::Concept)));
}

#[test]
fn a_mentioned_name_outweighs_concepts() {
    assert_eq!(names(&everyday(), "list the browser tabs, not the mail")[0], "browser_tabs");
}

#[test]
fn a_name_in_camel_case_counts_once() {
    let mut index = SearchIndex::default();
    index.put(&source("GitLab"), &[tool("merge", "Merge in GitLab.")]);
    let hits = index.search("merge on GitLab", 1);
    let words: Vec<&str> = hits[0].matches.iter().map(|found| found.word.as_str()).collect();
    assert!(words.contains(&"gitlab") && !words.contains(&"git") && !words.contains(&"lab"), "{words:?}");
}
