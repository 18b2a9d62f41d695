use super::*;

fn source(name: &str, lines: &[&str]) -> SourceFile {
    SourceFile { file: name.into(), text: lines.join("\n") }
}

fn set(name: &str, queries: &[&str]) -> Result<TestSet, DatasetError> {
    let tools = source("tools.jsonl", &[r#"{"id":"a","name":"read"}"#, r#"{"id":"b","name":"write"}"#]);
    TestSet::read(name.to_owned(), &tools, source("queries.jsonl", queries))
}

fn problem(query: &str) -> String {
    set("s", &[query]).and_then(|set| set.suite(Split::Test)).unwrap_err().to_string()
}

#[test]
fn invalid_queries_are_reported_with_their_line() {
    insta::assert_snapshot!(problem(r#"{"id":"q","text":"t","relevant":["c"]}"#), @"queries.jsonl line 1: there is no tool `c`");
    insta::assert_snapshot!(problem(r#"{"id":"q","text":"t","relevant":[]}"#), @"queries.jsonl line 1: a list of relevant tools is empty");
    insta::assert_snapshot!(problem(r#"{"id":"q","text":"t","relevant":["a"],"alternatives":[["b"]]}"#), @"queries.jsonl line 1: a group of alternatives has no relevant tool in it");
    insta::assert_snapshot!(problem(r#"{"id":"q","text":"t","relevant":["a"],"split":"train"}"#), @"queries.jsonl line 1: unknown variant `train`, expected `dev` or `test` (column 53)");
    let twice = r#"{"id":"q","text":"t","relevant":["a"]}"#;
    insta::assert_snapshot!(set("s", &[twice, twice]).unwrap_err(), @"queries.jsonl line 2: duplicate query id");
}

#[test]
fn halves_are_disjoint_and_history_uses_the_other_half() {
    let lines: Vec<String> = (0..200)
        .map(|at| format!(r#"{{"id":"q{at}","text":"text {at}","relevant":["a"],"steps":"1. one\n2. two"}}"#))
        .collect();
    let set = set("s", &lines.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    let texts = |split| -> HashSet<String> {
        let text = |query: &EvalQuery| match &query.input {
            QueryInput::Text(text) => text.clone(),
            QueryInput::Steps(_, steps) => steps.join(" "),
        };
        set.suite(split).unwrap().groups[0].queries.iter().map(text).collect()
    };
    let (test, dev) = (texts(Split::Test), texts(Split::Dev));
    assert!(test.is_disjoint(&dev));
    assert_eq!(test.len() + dev.len(), 200);
    assert_eq!(texts(Split::All).len(), 200);
    let suite = set.suite(Split::Test).unwrap();
    assert_eq!(suite.groups[1].queries.len(), test.len());
    let history = suite.history.unwrap();
    assert_eq!(history.past_requests.len(), MAX_PAST_USES);
    assert!(history.past_requests.iter().all(|(tool, request)| *tool == 0 && dev.contains(request)));
    assert!(set.suite(Split::All).unwrap().history.unwrap().past_requests.is_empty());
}

#[test]
fn in_a_mixed_catalogue_only_tools_of_the_own_set_are_relevant() {
    let query = r#"{"id":"q","text":"t","relevant":["a"],"split":"test"}"#;
    let sets = [set("one", &[query]).unwrap(), set("two", &[query]).unwrap()];
    let suite = mixed(&sets, Split::Test).unwrap();
    let ids: Vec<&str> = suite.tools.iter().map(|tool| tool.id.as_str()).collect();
    assert_eq!(ids, ["one/a", "one/b", "two/a", "two/b"]);
    let gains: Vec<Vec<bool>> =
        suite.groups[0].queries.iter().map(|query| query.judgements.gains(&[0, 2])).collect();
    assert_eq!(gains, [[true, false], [false, true]]);
}

#[test]
fn query_sets_use_the_catalogue_that_has_their_tools() {
    let query = |id: &str, lang: &str, tool: &str| {
        format!(
            r#"{{"id":"{id}","text":"t","lang":"{lang}","kind":"direct","relevant":["{tool}"],"split":"test"}}"#
        )
    };
    let task = r#"{"id":"m","text_en":"do both","text_zh":"都做","split":"test","steps":[{"en":"read","zh":"读","relevant":["a","b"]},{"en":"write","zh":"写","relevant":["b"]}]}"#;
    let query_set = |tool: &str| QuerySet {
        name: "bilingual".to_owned(),
        queries: SourceFile {
            file: "q.jsonl".into(),
            text: [query("1", "en", tool), query("2", "zh", "a")].join("\n"),
        },
        tasks: Some(source("tasks.jsonl", &[task])),
    };
    let (own, empty) = (set("s", &[]).unwrap().tools, Catalogue::default());
    let suite = query_set("b").suite([&empty, &own], Split::Test).unwrap();
    let rows: Vec<(String, usize)> = suite
        .groups
        .iter()
        .map(|group| (format!("{} {:?} {}", group.set, group.language, group.mode), group.queries.len()))
        .collect();
    insta::assert_debug_snapshot!(rows, @r#"
    [
        (
            "bilingual Some(\"en\") direct",
            1,
        ),
        (
            "bilingual Some(\"zh\") direct",
            1,
        ),
        (
            "bilingual tasks Some(\"en\") whole text",
            2,
        ),
        (
            "bilingual tasks Some(\"en\") per step",
            2,
        ),
        (
            "bilingual tasks Some(\"zh\") whole text",
            2,
        ),
        (
            "bilingual tasks Some(\"zh\") per step",
            2,
        ),
    ]
    "#);
    assert!(query_set("nowhere").suite([&own], Split::Test).is_err());
}
