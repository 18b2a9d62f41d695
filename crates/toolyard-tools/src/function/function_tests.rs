//! Function tools with valid and invalid arguments.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
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

#[derive(Debug, Default)]
struct RecordingCaller {
    progress: parking_lot::Mutex<Vec<toolyard_core::CallProgress>>,
    questions: parking_lot::Mutex<Vec<Value>>,
}

impl toolyard_core::Caller for RecordingCaller {
    fn session_id(&self) -> u64 {
        1
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, progress: &toolyard_core::CallProgress) {
        self.progress.lock().push(progress.clone());
    }

    fn request_input<'a>(
        &'a self,
        requests: &'a [toolyard_core::CallInputRequest],
    ) -> BoxFuture<'a, Result<Vec<RawJson>, toolyard_core::CallInputError>> {
        self.questions.lock().extend(requests.iter().filter_map(|r| Some(r.params.as_ref()?.to_value())));
        let answer = json!({"action": "accept", "content": {"amount": 3.0}});
        Box::pin(std::future::ready(Ok(vec![answer.into()])))
    }
}

#[tokio::test]
async fn a_function_reports_progress_and_asks_its_caller() {
    let tool = function("t", "", |c: Convert, context: ToolContext| async move {
        context.progress(1.0, Some(2.0), "half way");
        let asked = context.ask::<Convert>("How much more?").await?;
        assert!(!context.has_ended() && context.attempt() == 1 && context.time_left() > Duration::ZERO);
        Ok::<_, toolyard_core::CallInputError>(c.amount + asked.map_or(0.0, |asked| asked.amount))
    });
    let caller = std::sync::Arc::new(RecordingCaller::default());
    let context = CallContext::until(Instant::now() + Duration::from_secs(5))
        .with_caller(Some(std::sync::Arc::clone(&caller) as _));
    let output = tool.call(&ToolCallRequest::new("t", json!({"amount": 1})), &context).await.unwrap();
    assert_eq!(output.to_text(), "4");
    assert_eq!(caller.progress.lock()[0].message.as_deref(), Some("half way"));
    let question = caller.questions.lock()[0].clone();
    assert_eq!(question["message"], "How much more?");
    assert_eq!(question["requestedSchema"]["properties"]["amount"]["type"], "number");
}

#[tokio::test]
async fn without_a_caller_a_question_is_an_error() {
    let tool = function("t", "", |_: Convert, context: ToolContext| async move {
        context.ask::<Convert>("?").await.map(|asked| asked.is_some())
    });
    assert!(call(&tool, json!({"amount": 1})).await.unwrap_err().message().contains("cannot provide input"));
}

#[tokio::test]
async fn a_spawned_task_learns_that_the_call_was_cancelled() {
    let (sender, ended) = tokio::sync::oneshot::channel();
    let sender = parking_lot::Mutex::new(Some(sender));
    let tool = function("t", "", move |_: Convert, context: ToolContext| {
        let sender = sender.lock().take().unwrap();
        tokio::spawn(async move {
            context.ended().await;
            sender.send(context.has_ended()).unwrap();
        });
        std::future::pending::<String>()
    });
    let context = CallContext::until(Instant::now() + Duration::from_secs(5));
    let request = ToolCallRequest::new("t", json!({"amount": 1}));
    let called = tokio::time::timeout(Duration::from_millis(20), tool.call(&request, &context)).await;
    assert!(called.is_err());
    assert!(ended.await.unwrap());
}

#[tokio::test]
async fn lists_options_and_images_are_outputs() {
    let list = function("t", "", |c: Convert| async move { vec![c.amount, 2.0] });
    assert_eq!(call(&list, json!({"amount": 1})).await.unwrap().to_json(), json!([1.0, 2.0]));
    let none = function("t", "", |c: Convert| async move { c.currency });
    assert_eq!(call(&none, json!({"amount": 1})).await.unwrap().to_text(), "nothing found");
    let image = function("t", "", |_: Convert| async move { Image::png(b"png") });
    let content = call(&image, json!({"amount": 1})).await.unwrap().content;
    let expected = toolyard_core::ContentBlock::Image { data: "cG5n".into(), mime_type: "image/png".into() };
    assert_eq!(content, [expected]);
}

#[tokio::test]
async fn a_function_may_have_no_parameter() {
    let tool = function("t", "", || async { "pong" });
    assert_eq!(tool.spec().check(), Ok(()));
    assert_eq!(call(&tool, json!({})).await.unwrap().to_text(), "pong");
}

#[test]
fn the_output_schema_is_that_of_the_type_if_it_is_an_object() {
    #[derive(serde::Serialize, JsonSchema)]
    struct Price {
        euros: f64,
    }
    let price =
        function("t", "", |c: Convert| async move { Ok::<_, String>(Json(Price { euros: c.amount })) });
    let schema = price.spec().output_schema.as_ref().unwrap().to_value();
    assert_eq!(schema["properties"]["euros"]["type"], "number");
    assert_eq!(schema["type"], "object");
    let list = function("t", "", |c: Convert| async move { Json(vec![c.amount]) });
    assert_eq!(list.spec().output_schema, None);
}

#[test]
fn an_argument_that_is_no_object_is_refused() {
    let tool = function("plain", "", |x: i64| async move { x });
    let error = tool.spec().check().unwrap_err();
    assert_eq!(
        error.to_string(),
        "tool `plain`: its arguments must be an object, and the schema says `integer`"
    );
}
