//! Paging stays consistent when the catalogue changes between pages.

use proptest::prelude::*;

use super::*;

fn tool(name: &str) -> ListedTool {
    let definition = RawJson::parse(format!("{{\"name\":\"{name}\",\n\"inputSchema\":{{}}}}")).unwrap();
    ListedTool { name: name.into(), definition }
}

fn encode(names: &[String]) -> Arc<EncodedCatalogue> {
    let tools = names.iter().map(|name| tool(name)).collect();
    ToolListCache::default().get(Arc::new(Catalogue { version: 1, tools }))
}

fn names_on(page: &ToolPage) -> Vec<String> {
    let text = format!(r#"{{"result":{{"tools":[{}"#, std::str::from_utf8(&page.entries).unwrap());
    let message: serde_json::Value = serde_json::from_str(&text).unwrap();
    let tools = message["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn limits(entries: usize, bytes: usize) -> ServerLimits {
    ServerLimits { page_entries: entries, page_bytes: bytes, ..ServerLimits::default() }
}

#[test]
fn a_catalogue_is_encoded_once() {
    let cache = ToolListCache::default();
    let catalogue = Arc::new(Catalogue { version: 1, tools: vec![tool("a")] });
    let first = cache.get(Arc::clone(&catalogue));
    let page = first.page(None, &limits(10, 1_000)).unwrap();
    let again = cache.get(catalogue).page(None, &limits(10, 1_000)).unwrap();
    assert_eq!(page.entries.as_ptr(), again.entries.as_ptr());
    assert!(!page.entries.contains(&b'\n'));
}

#[test]
fn an_empty_catalogue_has_one_empty_page() {
    let page = encode(&[]).page(None, &limits(10, 1_000)).unwrap();
    assert!(page.entries == LIST_END.as_bytes() && page.next.is_none());
}

#[test]
fn an_invalid_cursor_has_no_page() {
    let encoded = encode(&["a".to_owned()]);
    for cursor in ["", "x", "YQ", "!!", "YWZ0ZXI"] {
        assert_eq!(encoded.page(Some(cursor), &limits(1, 100)), None, "{cursor}");
    }
}

#[test]
fn only_tools_that_declare_headers_have_any() {
    let schema = r#"{"name":"b","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}}}"#;
    let with_header = ListedTool { name: "b".into(), definition: RawJson::parse(schema.to_owned()).unwrap() };
    let encoded =
        ToolListCache::default().get(Arc::new(Catalogue { version: 1, tools: vec![tool("a"), with_header] }));
    assert_eq!(encoded.mirrored_parameters("a"), []);
    assert_eq!(encoded.mirrored_parameters("b")[0].header, "R");
    assert_eq!(encoded.mirrored_parameters("c"), []);
}

proptest! {
    #[test]
    fn pages_together_are_the_catalogue(
        names in proptest::collection::btree_set("[a-z]{1,8}", 0..40), entries in 1_usize..7, bytes in 1_usize..200
    ) {
        let names: Vec<String> = names.into_iter().collect();
        let (encoded, limits) = (encode(&names), limits(entries, bytes));
        let (mut listed, mut cursor) = (Vec::new(), None);
        loop {
            let page = encoded.page(cursor.as_deref(), &limits).unwrap();
            let page_names = names_on(&page);
            prop_assert!(page_names.len() <= entries);
            prop_assert!(page.entries.len() - LIST_END.len() < bytes || page_names.len() <= 1);
            listed.extend(page_names);
            match page.next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        prop_assert_eq!(listed, names);
    }

    #[test]
    fn a_change_between_pages_repeats_and_loses_nothing_else(
        names in proptest::collection::btree_set("[a-z]{1,8}", 2..40), removed in any::<prop::sample::Index>()
    ) {
        let names: Vec<String> = names.into_iter().collect();
        let limits = limits(2, 10_000);
        let first = encode(&names).page(None, &limits).unwrap();
        let mut remaining = names.clone();
        remaining.remove(removed.index(names.len()));
        let changed = encode(&remaining);
        let mut listed = names_on(&first);
        let mut cursor = first.next;
        while let Some(next) = cursor {
            let page = changed.page(Some(&next), &limits).unwrap();
            listed.extend(names_on(&page));
            cursor = page.next;
        }
        let mut distinct = listed.clone();
        distinct.dedup();
        prop_assert_eq!(&distinct, &listed);
        prop_assert!(remaining.iter().all(|name| listed.contains(name)));
    }
}
