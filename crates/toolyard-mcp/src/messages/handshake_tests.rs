//! Lists, handshakes and progress of correct and sloppy servers.

use super::*;
use crate::{ListPage, Progress, WireLimits};

fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

fn page(text: &str) -> Result<ListPage, WireError> {
    ListPage::read(&raw(text), "tools/list", "tools", &WireLimits::default())
}

#[test]
fn definitions_stay_raw_whatever_they_are() {
    let tools = [
        r#"{"name":"a","inputSchema":{"z":1.0,"a":{}},"execution":{"taskSupport":"required"}}"#,
        r#"{"name":"no schema","inputSchema":null}"#,
        "null",
        "7",
        r#"{"name":"b", "outputSchema": true}"#,
    ];
    let read = page(&format!(
        r#"{{"nextCursor":"p\u0032","tools":[{}],"ttlMs":300000,"cacheScope":"public","unknown":1}}"#,
        tools.join(" , ")
    ))
    .unwrap();
    assert_eq!(read.entries.iter().map(RawJson::get).collect::<Vec<_>>(), tools);
    assert_eq!(read.next_cursor.as_deref(), Some("p2"));
}

#[test]
fn invalid_fields_do_not_affect_the_tools() {
    let page_with = |fields: &str| page(&format!(r#"{{"tools":[{{}}]{fields}}}"#)).unwrap();
    assert_eq!(page_with(r#","nextCursor":null"#).next_cursor, None);
    assert_eq!(page_with(r#","nextCursor":"""#).next_cursor, None, "an empty cursor would restart the list");
    assert_eq!(page_with(r#","nextCursor":7"#).next_cursor, None);
    assert_eq!(page(r#"{"tools":null}"#).unwrap().entries, []);
}

#[test]
fn an_invalid_list_is_rejected() {
    for text in ["{}", "[]", "null", r#"{"tools":{}}"#, r#"{"tools":"x"}"#, r#"{"resources":[]}"#] {
        assert!(matches!(page(text), Err(WireError::InvalidResult { method: "tools/list", .. })), "{text}");
    }
    let limits = WireLimits { list_entries: 3, ..WireLimits::default() };
    let read = |text: &str| ListPage::read(&raw(text), "tools/list", "tools", &limits);
    assert!(read(r#"{"tools":[1,2,3]}"#).is_ok());
    assert!(read(r#"{"tools":[1,2,3,4]}"#).is_err());
}

#[test]
fn a_legacy_handshake_is_decoded() {
    let capabilities = r#"{"tools":{"listChanged":true},"logging":{},"prompts":null,"resources":false}"#;
    let read = InitializeResult::read(&raw(&format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"s","version":"1","title":"S"}},"instructions":"use it"}}"#
    )))
    .unwrap();
    assert_eq!(read.protocol_version, "2025-11-25");
    let about = read.about;
    assert_eq!((about.name.as_deref(), about.version.as_deref()), (Some("s"), Some("1")));
    assert_eq!(about.instructions.as_deref(), Some("use it"));
    let has = &about.capabilities;
    assert!(has.tools && has.tools_changed && has.logging && !has.prompts && !has.resources);
    assert_eq!(has.raw.as_ref().unwrap().get(), capabilities);
}

#[test]
fn a_legacy_handshake_needs_only_a_version() {
    let read = InitializeResult::read(&raw(
        r#"{"protocolVersion":"2024-11-05","capabilities":7,"serverInfo":"me","instructions":[],"_meta":3}"#,
    ))
    .unwrap();
    assert_eq!((read.about.name, read.about.instructions), (None, None));
    for text in ["{}", "null", "[]", r#"{"protocolVersion":5}"#] {
        assert!(InitializeResult::read(&raw(text)).is_err(), "{text}");
    }
    let long = format!(r#"{{"protocolVersion":"x","serverInfo":{{"name":"{}"}}}}"#, "n".repeat(1 << 20));
    assert!(InitializeResult::read(&raw(&long)).unwrap().about.name.unwrap().len() <= 260);
}

#[test]
fn a_modern_discovery_is_decoded() {
    let read = DiscoverResult::read(&raw(
        r#"{"resultType":"complete","supportedVersions":["2026-07-28",7,"2027-01-01"],
            "capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}},
            "_meta":{"other":1,"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"}},
            "ttlMs":0,"cacheScope":"private"}"#,
    ))
    .unwrap();
    assert_eq!(read.supported_versions, ["2026-07-28", "2027-01-01"]);
    let about = read.about;
    assert_eq!((about.name.as_deref(), about.version.as_deref()), (Some("s"), Some("2")));
    assert!(about.capabilities.tools && !about.capabilities.tools_changed);
    assert_eq!(about.capabilities.extensions, ["io.modelcontextprotocol/skills"]);
    for text in ["{}", r#"{"supportedVersions":[]}"#, r#"{"supportedVersions":"2026-07-28"}"#, "7"] {
        assert!(DiscoverResult::read(&raw(text)).is_err(), "{text}");
    }
}

#[test]
fn progress_fields_are_optional() {
    let read = |text: &str| Progress::read(&raw(text));
    assert_eq!(
        read(r#"{"progressToken":4,"progress":1,"total":2.5,"message":"half"}"#),
        Progress { token: Some(4), progress: 1.0, total: Some(2.5), message: Some("half".to_owned()) }
    );
    assert_eq!(read(r#"{"progressToken":"4","progress":"x"}"#), Progress::default());
    assert_eq!(read("[]"), Progress::default());
    assert_eq!(read(r#"{"progressToken":1,"message":7}"#).token, Some(1));
}
