//! What is found out about models of different gifts.

use super::*;
use crate::{NativeCall, ScriptedModel};

/// A model that can do some of it.
fn gifted(native: bool, schema: bool, text: bool) -> ScriptedModel {
    ScriptedModel::new(ToolCalling::Text, move |request| {
        let is_time = request.messages[1].text.contains("Tokyo");
        let (name, arguments) = if is_time {
            ("get_time", json!({"timezone": "Asia/Tokyo"}))
        } else {
            ("add", json!({"b": 17, "a": 25}))
        };
        let mut said = ModelReply { text: "I cannot do that.".into(), ..ModelReply::default() };
        said.usage = Usage { input: 10, output: 5, ..Usage::default() };
        if !request.tools.is_empty() {
            if native {
                said.text.clear();
                said.calls =
                    vec![NativeCall { id: "1".into(), name: name.into(), arguments: arguments.to_string() }];
            }
        } else if request.schema.is_some() {
            if !schema {
                return Err(ModelError::new("m", ModelErrorKind::Unsupported, "knows no schemas"));
            }
            said.text = json!({"call": {"tool_name": name, "arguments": arguments}}).to_string();
        } else if text {
            said.text =
                format!("<tool_call>{}</tool_call>", json!({"tool_name": name, "arguments": arguments}));
        }
        Ok(said)
    })
}

async fn recommended(native: bool, schema: bool, text: bool) -> Option<ToolCalling> {
    probe(&gifted(native, schema, text), ProbeOptions::default()).await.unwrap().recommended
}

#[tokio::test]
async fn the_best_way_is_recommended() {
    assert_eq!(recommended(true, true, true).await, Some(ToolCalling::Native));
    assert_eq!(recommended(false, true, true).await, Some(ToolCalling::Schema));
    assert_eq!(recommended(false, false, true).await, Some(ToolCalling::Text));
    assert_eq!(recommended(false, false, false).await, None);
}

#[tokio::test]
async fn a_report_says_what_was_wrong() {
    let report = probe(&gifted(false, false, true), ProbeOptions::default()).await.unwrap();
    let told: Vec<String> = report
        .outcomes
        .iter()
        .map(|outcome| {
            format!("{:?} {}/{} {:?}", outcome.calling, outcome.right, outcome.asked, outcome.problem)
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    Native 0/2 Some("called nothing and said: I cannot do that.")
    Schema 0/2 Some("model m knows no schemas")
    Text 2/2 None
    "#);
    assert!(report.outcomes[2].works());
    assert_eq!(report.outcomes[2].usage, Usage { input: 20, output: 10, ..Usage::default() });
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<ProbeReport>(&json).unwrap(), report);
}

#[tokio::test]
async fn a_wrong_call_is_not_right() {
    let wrong = ScriptedModel::saying(
        ToolCalling::Text,
        [
            "<tool_call>{\"tool_name\": \"get_time\", \"arguments\": {\"timezone\": \"Asia/Kyoto\"}}</tool_call>",
        ],
    );
    let report = probe(&wrong, ProbeOptions::default()).await.unwrap();
    assert_eq!((report.recommended, report.outcomes[2].right), (None, 0));
}

#[tokio::test]
async fn a_model_that_is_not_there_is_an_error() {
    let gone = ScriptedModel::new(ToolCalling::Text, |_| {
        Err(ModelError::new("m", ModelErrorKind::Unreachable, "cannot be reached"))
    });
    assert_eq!(probe(&gone, ProbeOptions::default()).await.unwrap_err().kind, ModelErrorKind::Unreachable);
}

#[test]
fn every_way_asks_in_its_own_words() {
    for calling in [ToolCalling::Native, ToolCalling::Schema, ToolCalling::Text] {
        let request = request(calling, &TASKS[0], ProbeOptions::default());
        assert_eq!(request.tools.is_empty(), calling != ToolCalling::Native);
        assert_eq!(request.schema.is_none(), calling != ToolCalling::Schema);
        // What is shown as a form is not taken for a call when a model repeats it.
        assert!(read_calls(&request.messages[0].text, &|name| name == "get_time").calls.is_empty());
    }
}
