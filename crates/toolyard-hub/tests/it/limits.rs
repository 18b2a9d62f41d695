//! Limits of time and length: no call outlasts its deadline, and what is not shown of a result is announced and stored.

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use serde_json::json;
use tokio::time::{Instant, sleep};
use toolyard_core::{
    BoxFuture, CallContext, Caller, DataOwner, ErrorKind, ResultPage, ResultRef, Results, ResultsError,
    SourceInfo, SynthesisError, SynthesisRequest, Synthesizer, Tool, ToolCallRequest, ToolError, ToolOutput,
    ToolSpec,
};
use toolyard_hub::{Budget, CallOptions, HubConfig, MemoryResults, RetryPolicy, ToolHub};

use crate::common::{Behavior, CallLog, TestTool, register, request, test_tool};

/// Stores results after a delay.
struct SlowResults(Duration, MemoryResults);

impl Results for SlowResults {
    fn store<'a>(
        &'a self,
        text: &'a str,
        owner: DataOwner,
    ) -> BoxFuture<'a, Result<ResultRef, ResultsError>> {
        Box::pin(async move {
            sleep(self.0).await;
            self.1.store(text, owner).await
        })
    }

    fn read<'a>(
        &'a self,
        reference: &'a ResultRef,
        reader: DataOwner,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<ResultPage, ResultsError>> {
        self.1.read(reference, reader, offset, limit)
    }
}

/// A model that always returns the same text, after a delay.
#[derive(Debug)]
struct SlowModel(Duration, String);

impl Synthesizer for SlowModel {
    fn synthesize<'a>(
        &'a self,
        _request: &'a SynthesisRequest,
    ) -> BoxFuture<'a, Result<String, SynthesisError>> {
        Box::pin(async move {
            sleep(self.0).await;
            Ok(self.1.clone())
        })
    }
}

/// A tool with a fixed output.
struct FixedTool(ToolSpec, ToolOutput);

impl Tool for FixedTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(self.1.clone()) })
    }
}

/// A tool that reports activity at this interval, this many times, and then returns.
struct ProgressingTool(ToolSpec, Duration, u32);

impl Tool for ProgressingTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(
        &'a self,
        _request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async {
            for _ in 0..self.2 {
                sleep(self.1).await;
                let deadline = context.extendable_deadline.as_ref();
                deadline.inspect(|deadline| deadline.record_activity(Instant::now().into_std()));
            }
            Ok(ToolOutput::text("x".repeat(1_000)))
        })
    }
}

#[derive(Debug)]
struct TestCaller;

impl Caller for TestCaller {
    fn session_id(&self) -> u64 {
        1
    }
}

async fn call_progressing(
    interval_secs: u64,
    reports: u32,
    options: &CallOptions,
) -> (Result<ToolOutput, ToolError>, Duration) {
    let hub = ToolHub::default();
    let tool = ProgressingTool(ToolSpec::new("describe", ""), Duration::from_secs(interval_secs), reports);
    hub.register(SourceInfo::native(), vec![Arc::new(tool)]);
    let started = Instant::now();
    (hub.execute(&request("describe"), options).await, started.elapsed())
}

#[tokio::test(start_paused = true)]
async fn activity_extends_the_deadline_of_a_call_with_a_caller() {
    let with_caller = CallOptions::default().with_caller(Arc::new(TestCaller));
    let (result, elapsed) = call_progressing(20, 10, &with_caller).await;
    let output = result.unwrap();
    assert!(output.meta.truncation.unwrap().reference.is_some(), "there was still time to store it");
    assert_eq!(elapsed, Duration::from_secs(200));
    for (interval_secs, reports, options, end_secs) in
        [(31, 10, &with_caller, 30), (20, 1_000, &with_caller, 600), (20, 10, &CallOptions::default(), 30)]
    {
        let (result, elapsed) = call_progressing(interval_secs, reports, options).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
        assert_eq!(elapsed, Duration::from_secs(end_secs));
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(future)
}

async fn call_with_output(output: ToolOutput, config: &HubConfig) -> ToolOutput {
    let hub = ToolHub::new(config.clone());
    hub.register(SourceInfo::native(), vec![Arc::new(FixedTool(ToolSpec::new("describe", ""), output))]);
    hub.execute(&request("describe"), &CallOptions::default()).await.unwrap()
}

async fn stored_result(config: &HubConfig, output: &ToolOutput) -> String {
    let reference = output.meta.truncation.as_ref().unwrap().reference.as_ref().unwrap();
    config.results.read(reference, DataOwner::Operator, 0, usize::MAX).await.unwrap().text
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_stored_in_time_is_reported_as_lost() {
    let results = Arc::new(SlowResults(Duration::from_secs(60), MemoryResults::default()));
    let hub = ToolHub::new(HubConfig { results, ..HubConfig::default() });
    register(&hub, &[test_tool("describe", "a").with_behavior(Behavior::Answer("x".repeat(1_000)))]);
    let started = Instant::now();
    let output = hub.execute(&request("describe"), &CallOptions::default()).await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    assert!(output.to_text().ends_with("the whole could not be kept]"), "{}", output.to_text());
}

#[tokio::test(start_paused = true)]
async fn the_longest_timeout_does_not_overflow() {
    let hub = ToolHub::default();
    register(&hub, &[test_tool("describe", "a")]);
    let options = CallOptions::default().with_timeout(Duration::MAX);
    assert_eq!(hub.execute(&request("describe"), &options).await.unwrap().to_text(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_shorter_attempt_leaves_time_for_another() {
    let hub_with = |test_tools: &[TestTool], attempt_timeout| {
        let retry = RetryPolicy { attempt_timeout, ..RetryPolicy::default() };
        let hub = ToolHub::new(HubConfig { retry, ..HubConfig::default() });
        let call_log: Arc<CallLog> = register(&hub, test_tools);
        (hub, call_log)
    };
    let (hub, call_log) =
        hub_with(&[test_tool("fetch", "a").with_behavior(Behavior::Hang)], Some(Duration::from_secs(5)));
    let error = hub.execute(&request("fetch"), &CallOptions::default()).await.unwrap_err();
    assert_eq!((error.kind(), call_log.calls().len()), (ErrorKind::Timeout, 3));
    assert_eq!(error.message(), "did not answer within 5 s");

    let (hub, call_log) = hub_with(&[test_tool("fetch", "a").with_behavior(Behavior::Hang)], None);
    assert!(hub.execute(&request("fetch"), &CallOptions::default()).await.is_err());
    assert_eq!(call_log.calls().len(), 1, "one attempt may use all the time");

    let writer = test_tool("fetch", "a").writes().with_delay_ms(9_000);
    let (hub, _) = hub_with(&[writer], Some(Duration::from_secs(5)));
    assert!(
        hub.execute(&request("fetch"), &CallOptions::default()).await.is_ok(),
        "a write is not interrupted"
    );
}

#[tokio::test(start_paused = true)]
async fn long_json_beside_a_short_text_is_truncated_too() {
    let config = HubConfig::default();
    let rows: Vec<String> = (0..50_000).map(|at| format!("this is row number {at}")).collect();
    let json = toolyard_core::RawJson::from(json!({ "rows": rows }));
    assert!(json.get().len() > 1 << 20);
    let mut output = ToolOutput::text("50,000 rows");
    output.structured = Some(json.clone());
    let shown = call_with_output(output, &config).await;
    assert_eq!(shown.structured, None);
    let text = shown.to_text();
    assert!(text.starts_with("50,000 rows\n[showing 11 of ") && text.len() < 200, "{text}");
    assert_eq!(stored_result(&config, &shown).await, json.get());
    assert_eq!(shown.to_json(), json!(text), "one text, not a list of blocks");

    let mut short = ToolOutput::text("two rows");
    short.structured = Some(json!({"rows": [1, 2]}).into());
    assert_eq!(call_with_output(short, &config).await.to_json(), json!({"rows": [1, 2]}));
}

#[tokio::test(start_paused = true)]
async fn truncated_json_is_valid_for_the_tool_that_returned_it() {
    // The source also has a tool with the name of the capability, whose schemas accept neither call nor output.
    let rows: Vec<String> = (0..500).map(|at| format!("message {at}")).collect();
    let json = toolyard_core::RawJson::from(json!({ "rows": rows }));
    let mut output = ToolOutput::text("500 messages");
    output.structured = Some(json.clone());
    let tool = |name: &str, input_schema, output_schema: serde_json::Value| {
        let mut spec = ToolSpec::new(name, "")
            .with_hints(toolyard_core::ToolHints::READ_ONLY)
            .with_input_schema(input_schema);
        spec.output_schema = Some(output_schema.into());
        Arc::new(FixedTool(spec, output.clone())) as Arc<dyn Tool>
    };
    let rows_schema =
        json!({"type": "object", "properties": {"rows": {"type": "array"}}, "required": ["rows"]});
    let hub = ToolHub::default();
    hub.register(
        SourceInfo::native(),
        vec![
            tool("email", json!({"type": "object", "required": ["id"]}), json!({"required": ["subject"]})),
            tool("email_list", json!({"type": "object"}), rows_schema),
        ],
    );
    let mut options = CallOptions::default().with_budget(Budget::Characters(200));
    options.keep_structured_valid = true;
    let by_capability = hub.execute_by_capability(&"email".into(), json!({}).into(), &options).await.unwrap();
    let by_fallback =
        hub.execute_or_by_capability(&request("email_archive"), &"email".into(), &options).await.unwrap();
    for shown in [by_capability, by_fallback] {
        assert!(shown.meta.structured_truncated, "{:?}", shown.meta);
        let kept = shown.structured.unwrap();
        assert!(kept.get().len() < json.get().len() && kept.get().starts_with(r#"{"rows":["#), "{kept:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn json_that_differs_from_a_long_text_is_stored_with_it() {
    let config = HubConfig::default();
    let text = "Another sentence of the report. ".repeat(40);
    let mut output = ToolOutput::text(text.clone());
    output.structured = Some(json!({"pages": 3}).into());
    let shown = call_with_output(output, &config).await;
    assert_eq!(stored_result(&config, &shown).await, format!("{text}\n\n{{\"pages\":3}}"));

    for count in [500, 100_000] {
        let rows = toolyard_core::RawJson::from(json!({"rows": (0..count).collect::<Vec<_>>()}));
        let mut pretty = ToolOutput::text(serde_json::to_string_pretty(&rows.to_value()).unwrap());
        pretty.structured = Some(rows);
        let stored = stored_result(&config, &call_with_output(pretty.clone(), &config).await).await;
        assert_eq!(stored, pretty.to_text(), "equal content is stored once, however long it is");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_model_was_not_shown_is_stored() {
    let model = Arc::new(SlowModel(Duration::ZERO, "Both say much.".to_owned()));
    let config = HubConfig { synthesizer: Some(model), ..HubConfig::default() };
    let hub = ToolHub::new(config.clone());
    let long = |source: &str| test_tool("search", source).with_behavior(Behavior::Answer(source.repeat(600)));
    register(&hub, &[long("a"), long("b")]);
    let output = hub.execute(&request("search"), &CallOptions::default()).await.unwrap();
    assert!(output.to_text().starts_with("Both say much.\n[showing 14 of "), "{}", output.to_text());
    let stored = stored_result(&config, &output).await;
    assert!(
        stored.starts_with("Both say much.") && stored.contains(&"a".repeat(600)) && stored.ends_with('b')
    );
}

/// Texts with and without word and sentence boundaries, of lengths around every limit.
fn any_text() -> impl Strategy<Value = String> {
    let length = prop_oneof![Just(299_usize), Just(300), Just(301), Just(302), 0..1_200_usize];
    (length, 0..3_u8).prop_map(|(length, pattern_index)| {
        let pattern =
            ["w", "wort ", "Satz. 句子。"].into_iter().nth(usize::from(pattern_index)).unwrap_or("w");
        pattern.chars().cycle().take(length).collect()
    })
}

fn any_budget() -> impl Strategy<Value = Budget> {
    prop_oneof![
        Just(Budget::Unlimited),
        Just(Budget::ByKind),
        (0..1_500_usize).prop_map(Budget::Characters),
        (295..312_usize).prop_map(Budget::Characters),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn shown_and_omitted_characters_add_up_to_the_whole(
        texts in proptest::collection::vec(any_text(), 1..4),
        model in proptest::option::of(any_text()),
        budget in any_budget(),
        structured: bool,
    ) {
        block_on(async {
            let synthesizer = model.map(|text| Arc::new(SlowModel(Duration::ZERO, text)) as Arc<dyn Synthesizer>);
            let config = HubConfig { synthesizer, ..HubConfig::default() };
            let hub = ToolHub::new(config.clone());
            for (at, text) in texts.iter().enumerate() {
                let mut output = ToolOutput::text(text.clone());
                output.structured = structured.then(|| json!({"text": text, "at": at}).into());
                let spec = ToolSpec::new("search", "").with_hints(toolyard_core::ToolHints::READ_ONLY);
                let info = SourceInfo::new(format!("s{at}"), toolyard_core::SourceKind::Mcp).trusted(true);
                hub.register(info, vec![Arc::new(FixedTool(spec, output))]);
            }
            let options = CallOptions::default().with_budget(budget);
            let output = hub.execute(&request("search"), &options).await.unwrap();
            let Some(omitted) = output.meta.truncation.clone() else {
                let all = output.to_text();
                prop_assert!(texts.len() > 1 || all == texts.concat(), "nothing is missing");
                return Ok(());
            };
            prop_assert_eq!(omitted.kept + omitted.omitted, omitted.total);
            let stored_result = stored_result(&config, &output).await;
            prop_assert_eq!(omitted.total, stored_result.chars().count());
            let notice = omitted.to_string();
            let text = output.to_text();
            let shown = text.strip_suffix(&notice).unwrap().trim_end_matches('\n');
            let ellipsis_chars = 2 * shown.matches(" …").count();
            prop_assert!(omitted.kept + ellipsis_chars >= shown.chars().count(), "{} + {ellipsis_chars} of {shown:?}", omitted.kept);
            prop_assert!(omitted.kept <= shown.chars().count());
            Ok(())
        })?;
    }

    #[test]
    fn slow_tools_models_and_stores_do_not_outlast_the_deadline(
        tools in proptest::collection::vec(0_u64..20_000, 1..4),
        model in 0_u64..40_000,
        results in 0_u64..40_000,
        timeout in 1_u64..40_000,
    ) {
        block_on(async {
            let slow_results = SlowResults(Duration::from_millis(results), MemoryResults::default());
            let model = SlowModel(Duration::from_millis(model), "m".repeat(900));
            let config = HubConfig { results: Arc::new(slow_results), synthesizer: Some(Arc::new(model)), ..HubConfig::default() };
            let hub = ToolHub::new(config);
            let test_tools: Vec<TestTool> = tools.iter().enumerate().map(|(at, delay)| {
                test_tool("search", &format!("s{at}")).with_delay_ms(*delay).with_behavior(Behavior::Answer("x".repeat(600)))
            }).collect();
            register(&hub, &test_tools);
            let timeout = Duration::from_millis(timeout);
            let started = Instant::now();
            let outcome = hub.execute(&request("search"), &CallOptions::default().with_timeout(timeout)).await;
            let took = started.elapsed();
            prop_assert!(took <= timeout + Duration::from_millis(1), "{took:?} of {timeout:?}");
            let in_time = tools.iter().any(|delay| Duration::from_millis(*delay) + Duration::from_millis(1) < timeout);
            prop_assert!(outcome.is_ok() || !in_time, "an output that came in time is returned");
            Ok(())
        })?;
    }
}
