//! Probes of models that support different modes.

use super::*;
use crate::{ModelToolCall, ScriptedModel};

/// A model that supports these modes only.
fn supporting(modes: &'static [ToolCalling]) -> ScriptedModel {
    ScriptedModel::new(ToolCalling::Text, move |request| {
        let is_time = request.messages[1].text.contains("Tokyo");
        let (name, arguments) = if is_time {
            ("get_time", json!({"timezone": "Asia/Tokyo"}))
        } else {
            ("add", json!({"b": 17, "a": 25}))
        };
        let mut reply = ModelReply { text: "I cannot do that.".into(), ..ModelReply::default() };
        reply.usage = Usage { input: 10, output: 5, ..Usage::default() };
        if !request.tools.is_empty() {
            if modes.contains(&ToolCalling::Native) {
                reply.text.clear();
                reply.calls = vec![ModelToolCall {
                    id: "1".into(),
                    name: name.into(),
                    arguments: arguments.to_string(),
                }];
            }
        } else if request.schema.is_some() {
            if !modes.contains(&ToolCalling::Schema) {
                return Err(ModelError::new("m", ModelErrorKind::Unsupported, "does not support schemas"));
            }
            reply.text = json!({"call": {"tool_name": name, "arguments": arguments}}).to_string();
        } else if modes.contains(&ToolCalling::Text) {
            reply.text =
                format!("<tool_call>{}</tool_call>", json!({"tool_name": name, "arguments": arguments}));
        }
        Ok(reply)
    })
}

async fn recommended(modes: &'static [ToolCalling]) -> Option<ToolCalling> {
    probe(&supporting(modes), ProbeOptions::default()).await.unwrap().recommended
}

#[tokio::test]
async fn the_best_mode_is_recommended() {
    use ToolCalling::{Native, Schema, Text};
    assert_eq!(recommended(&[Native, Schema, Text]).await, Some(Native));
    assert_eq!(recommended(&[Schema, Text]).await, Some(Schema));
    assert_eq!(recommended(&[Text]).await, Some(Text));
    assert_eq!(recommended(&[]).await, None);
}

#[tokio::test]
async fn the_report_names_problems() {
    let report = probe(&supporting(&[ToolCalling::Text]), ProbeOptions::default()).await.unwrap();
    let lines: Vec<String> = report
        .outcomes
        .iter()
        .map(|outcome| {
            format!("{:?} {}/{} {:?}", outcome.calling, outcome.correct, outcome.attempted, outcome.problem)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    Native 0/2 Some("made no tool call: I cannot do that.")
    Schema 0/2 Some("model `m` does not support schemas")
    Text 2/2 None
    "#);
    assert_eq!(report.outcomes[2].usage, Usage { input: 20, output: 10, ..Usage::default() });
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<ProbeReport>(&json).unwrap(), report);
}

#[tokio::test]
async fn a_call_with_wrong_arguments_is_incorrect() {
    let wrong = ScriptedModel::with_replies(
        ToolCalling::Text,
        [
            "<tool_call>{\"tool_name\": \"get_time\", \"arguments\": {\"timezone\": \"Asia/Kyoto\"}}</tool_call>",
        ],
    );
    let report = probe(&wrong, ProbeOptions::default()).await.unwrap();
    assert_eq!((report.recommended, report.outcomes[2].correct), (None, 0));
}

#[tokio::test]
async fn an_unreachable_model_is_an_error() {
    let unreachable = ScriptedModel::new(ToolCalling::Text, |_| {
        Err(ModelError::new("m", ModelErrorKind::Unreachable, "cannot be reached"))
    });
    assert_eq!(
        probe(&unreachable, ProbeOptions::default()).await.unwrap_err().kind,
        ModelErrorKind::Unreachable
    );
}

#[test]
fn each_mode_has_its_own_request() {
    for calling in [ToolCalling::Native, ToolCalling::Schema, ToolCalling::Text] {
        let request = build_request(calling, &TASKS[0], ProbeOptions::default());
        assert_eq!(request.tools.is_empty(), calling != ToolCalling::Native);
        assert_eq!(request.schema.is_none(), calling != ToolCalling::Schema);
        // The format in the prompt is not a call when a model repeats it.
        assert!(parse_tool_calls(&request.messages[0].text, &|name| name == "get_time").calls.is_empty());
    }
}
