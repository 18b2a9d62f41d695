//! Function tools with valid and invalid arguments.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use toolyard_core::ErrorKind;

use super::*;

#[derive(Deserialize, JsonSchema)]
struct Convert {
    /// How much.
    amount: f64,
    #[serde(default)]
    currency: Option<String>,
}

async fn call(tool: &dyn Tool, arguments: Value) -> Result<ToolOutput, ToolError> {
    let context = CallContext::until(Instant::now() + Duration::from_secs(5));
    tool.call(&ToolCallRequest::new("t", arguments), &context).await
}

#[tokio::test]
async fn a_closure_becomes_a_tool() {
    let tool = function("convert", "Convert", |c: Convert| async move { Ok::<_, ToolError>(c.amount * 2.0) });
    let output = call(&tool, json!({"amount": 1.5})).await.unwrap();
    assert_eq!(output.to_text(), "3");
    assert_eq!(output.to_json(), json!(3.0));
}

#[tokio::test]
async fn plain_values_are_outputs() {
    let text = function("t", "", |c: Convert| async move { c.currency.unwrap_or_default() });
    assert_eq!(call(&text, json!({"amount": 1, "currency": "€"})).await.unwrap().to_text(), "€");
    let list = function("t", "", |c: Convert| async move { Json(vec![c.amount]) });
    assert_eq!(call(&list, json!({"amount": 1})).await.unwrap().to_json(), json!([1.0]));
    let nothing = function("t", "", |_: Convert| async move { f64::NAN });
    assert_eq!(call(&nothing, json!({"amount": 1})).await.unwrap().to_json(), json!("NaN"));
    let none = function("t", "", |_: Convert| async move {});
    assert_eq!(call(&none, json!({"amount": 1})).await.unwrap().to_text(), "done");
}

#[tokio::test]
async fn any_error_is_accepted_and_a_tool_error_keeps_its_kind() {
    let plain = function("t", "", |_: Convert| async move { Err::<String, _>("no such currency") });
    assert_eq!(call(&plain, json!({"amount": 1})).await.unwrap_err().message(), "no such currency");
    let typed = function("t", "", |_: Convert| async move {
        Err::<String, _>(ToolError::new(ErrorKind::Unavailable, "down").with_hint("wait"))
    });
    let error = call(&typed, json!({"amount": 1})).await.unwrap_err();
    assert_eq!((error.kind(), error.hint()), (ErrorKind::Unavailable, Some("wait")));
}

#[tokio::test]
async fn invalid_arguments_never_reach_the_function() {
    let tool =
        function("t", "", |_: Convert| async move { unreachable!("called with wrong arguments") as String });
    for wrong in [json!({}), json!({"amount": "x"}), json!(null), json!([]), json!("amount")] {
        let error = call(&tool, wrong).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    }
}

#[test]
fn the_builder_sets_hints_and_capabilities() {
    let tool = function("t", "d", |_: Convert| async move { true })
        .read_only()
        .idempotent()
        .capability("money")
        .title("Convert");
    assert_eq!(tool.spec().hints.read_only, Some(true));
    assert_eq!(tool.spec().hints.idempotent, Some(true));
    assert_eq!(tool.spec().title.as_deref(), Some("Convert"));
    assert_eq!(tool.spec().capabilities, ["money".into()]);
    assert_eq!(tool.spec().params().first().map(|param| param.required), Some(true));
}
