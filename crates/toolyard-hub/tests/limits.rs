//! OutputLimits of time and length that hold for every answer: the deadline, and what is said of the part that is not shown.

#![expect(clippy::unwrap_used, reason = "a test helper fails its test")]

mod common;

use std::{sync::Arc, time::Duration};

use common::{Act, Ledger, Part, part, register, request};
use proptest::prelude::*;
use serde_json::json;
use tokio::time::{Instant, sleep};
use toolyard_core::{
    BoxFuture, CallContext, Caller, ErrorKind, ResultPage, ResultRef, Results, ResultsError, SourceInfo,
    SynthesisError, SynthesisRequest, Synthesizer, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec,
};
use toolyard_hub::{Budget, CallOptions, HubConfig, MemoryResults, RetryPolicy, ToolHub};

/// Keeps results, after a while.
struct SlowResults(Duration, MemoryResults);

impl Results for SlowResults {
    fn store<'a>(&'a self, whole: &'a str) -> BoxFuture<'a, Result<ResultRef, ResultsError>> {
        Box::pin(async move {
            sleep(self.0).await;
            self.1.store(whole).await
        })
    }

    fn read<'a>(
        &'a self,
        reference: &'a ResultRef,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<ResultPage, ResultsError>> {
        self.1.read(reference, offset, limit)
    }
}

/// A model that says the same of everything, after a while.
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

/// A tool with one answer.
struct Fixed(ToolSpec, ToolOutput);

impl Tool for Fixed {
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

/// A tool that shows signs of life so often, so many times, and answers when the last one is over.
struct Busy(ToolSpec, Duration, u32);

impl Tool for Busy {
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
                let patience = context.extendable_deadline.as_ref();
                patience.inspect(|patience| patience.record_activity(Instant::now().into_std()));
            }
            Ok(ToolOutput::text("x".repeat(1_000)))
        })
    }
}

#[derive(Debug)]
struct Somebody;

impl Caller for Somebody {
    fn session_id(&self) -> u64 {
        1
    }
}

async fn busy(pause: u64, signs: u32, options: &CallOptions) -> (Result<ToolOutput, ToolError>, Duration) {
    let hub = ToolHub::default();
    let tool = Busy(ToolSpec::new("describe", ""), Duration::from_secs(pause), signs);
    hub.register(SourceInfo::native(), vec![Arc::new(tool)]);
    let started = Instant::now();
    (hub.execute(&request("describe"), options).await, started.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_shows_signs_of_life_outlives_its_deadline_for_who_hears_of_them() {
    let heard = CallOptions::default().with_caller(Arc::new(Somebody));
    let (answered, elapsed) = busy(20, 10, &heard).await;
    let output = answered.unwrap();
    assert!(output.meta.truncation.unwrap().reference.is_some(), "there is still time to keep it");
    assert_eq!(elapsed, Duration::from_secs(200));
    for (pause, signs, options, end) in
        [(31, 10, &heard, 30), (20, 1_000, &heard, 600), (20, 10, &CallOptions::default(), 30)]
    {
        let (answered, elapsed) = busy(pause, signs, options).await;
        assert_eq!(answered.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
        assert_eq!(elapsed, Duration::from_secs(end));
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(work)
}

async fn answer_of(output: ToolOutput, config: &HubConfig) -> ToolOutput {
    let hub = ToolHub::new(config.clone());
    hub.register(SourceInfo::native(), vec![Arc::new(Fixed(ToolSpec::new("describe", ""), output))]);
    hub.execute(&request("describe"), &CallOptions::default()).await.unwrap()
}

async fn whole(config: &HubConfig, output: &ToolOutput) -> String {
    let reference = output.meta.truncation.as_ref().unwrap().reference.as_ref().unwrap();
    config.results.read(reference, 0, usize::MAX).await.unwrap().text
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_kept_in_time_is_said_to_be_lost() {
    let results = Arc::new(SlowResults(Duration::from_secs(60), MemoryResults::default()));
    let hub = ToolHub::new(HubConfig { results, ..HubConfig::default() });
    register(&hub, &[part("describe", "a").act(Act::Answer("x".repeat(1_000)))]);
    let started = Instant::now();
    let output = hub.execute(&request("describe"), &CallOptions::default()).await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    assert!(output.to_text().ends_with("the whole could not be kept]"), "{}", output.to_text());
}

#[tokio::test(start_paused = true)]
async fn no_timeout_is_too_long() {
    let hub = ToolHub::default();
    register(&hub, &[part("describe", "a")]);
    let options = CallOptions::default().with_timeout(Duration::MAX);
    assert_eq!(hub.execute(&request("describe"), &options).await.unwrap().to_text(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_shorter_attempt_leaves_time_for_another() {
    let hanging = |parts: &[Part], attempt_timeout| {
        let retry = RetryPolicy { attempt_timeout, ..RetryPolicy::default() };
        let hub = ToolHub::new(HubConfig { retry, ..HubConfig::default() });
        let ledger: Arc<Ledger> = register(&hub, parts);
        (hub, ledger)
    };
    let (hub, ledger) = hanging(&[part("fetch", "a").act(Act::Hang)], Some(Duration::from_secs(5)));
    let error = hub.execute(&request("fetch"), &CallOptions::default()).await.unwrap_err();
    assert_eq!((error.kind(), ledger.calls().len()), (ErrorKind::Timeout, 3));
    assert_eq!(error.message(), "did not answer within 5 s");

    let (hub, ledger) = hanging(&[part("fetch", "a").act(Act::Hang)], None);
    assert!(hub.execute(&request("fetch"), &CallOptions::default()).await.is_err());
    assert_eq!(ledger.calls().len(), 1, "one attempt may use all the time");

    let writer = part("fetch", "a").writes().takes(9_000);
    let (hub, _) = hanging(&[writer], Some(Duration::from_secs(5)));
    assert!(hub.execute(&request("fetch"), &CallOptions::default()).await.is_ok(), "a write is let finish");
}

#[tokio::test(start_paused = true)]
async fn long_json_beside_a_short_text_is_cut_too() {
    let config = HubConfig::default();
    let rows: Vec<String> = (0..50_000).map(|at| format!("this is row number {at}")).collect();
    let json = toolyard_core::RawJson::from(json!({ "rows": rows }));
    assert!(json.get().len() > 1 << 20);
    let mut output = ToolOutput::text("50,000 rows");
    output.structured = Some(json.clone());
    let shown = answer_of(output, &config).await;
    assert_eq!(shown.structured, None);
    let text = shown.to_text();
    assert!(text.starts_with("50,000 rows\n[showing 11 of ") && text.len() < 200, "{text}");
    assert_eq!(whole(&config, &shown).await, json.get());
    assert_eq!(shown.to_json(), json!(text), "one text, not a list of blocks");

    let mut short = ToolOutput::text("two rows");
    short.structured = Some(json!({"rows": [1, 2]}).into());
    assert_eq!(answer_of(short, &config).await.to_json(), json!({"rows": [1, 2]}));
}

#[tokio::test(start_paused = true)]
async fn json_that_says_something_else_than_a_long_text_is_kept_with_it() {
    let config = HubConfig::default();
    let text = "Another sentence of the report. ".repeat(40);
    let mut output = ToolOutput::text(text.clone());
    output.structured = Some(json!({"pages": 3}).into());
    let shown = answer_of(output, &config).await;
    assert_eq!(whole(&config, &shown).await, format!("{text}\n\n{{\"pages\":3}}"));

    let rows = toolyard_core::RawJson::from(json!({"rows": (0..500).collect::<Vec<_>>()}));
    let mut pretty = ToolOutput::text(serde_json::to_string_pretty(&rows.to_value()).unwrap());
    pretty.structured = Some(rows);
    let kept = whole(&config, &answer_of(pretty.clone(), &config).await).await;
    assert_eq!(kept, pretty.to_text(), "the same facts are kept once");
}

#[tokio::test(start_paused = true)]
async fn what_a_model_was_not_shown_can_be_read() {
    let model = Arc::new(SlowModel(Duration::ZERO, "Both say much.".to_owned()));
    let config = HubConfig { synthesizer: Some(model), ..HubConfig::default() };
    let hub = ToolHub::new(config.clone());
    let long = |source: &str| part("search", source).act(Act::Answer(source.repeat(600)));
    register(&hub, &[long("a"), long("b")]);
    let output = hub.execute(&request("search"), &CallOptions::default()).await.unwrap();
    assert!(output.to_text().starts_with("Both say much.\n[showing 14 of "), "{}", output.to_text());
    let kept = whole(&config, &output).await;
    assert!(kept.starts_with("Both say much.") && kept.contains(&"a".repeat(600)) && kept.ends_with('b'));
}

/// Texts with and without places to pause, as long as matters around every limit.
fn any_text() -> impl Strategy<Value = String> {
    let length = prop_oneof![Just(299_usize), Just(300), Just(301), Just(302), 0..1_200_usize];
    (length, 0..3_u8).prop_map(|(length, how)| {
        let pattern = ["w", "wort ", "Satz. 句子。"].into_iter().nth(usize::from(how)).unwrap_or("w");
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
    fn what_is_shown_and_what_is_not_make_up_the_whole(
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
                hub.register(info, vec![Arc::new(Fixed(spec, output))]);
            }
            let options = CallOptions::default().with_budget(budget);
            let output = hub.execute(&request("search"), &options).await.unwrap();
            let Some(omitted) = output.meta.truncation.clone() else {
                let all = output.to_text();
                prop_assert!(texts.len() > 1 || all == texts.concat(), "nothing is missing");
                return Ok(());
            };
            prop_assert_eq!(omitted.kept + omitted.omitted, omitted.total);
            let whole = whole(&config, &output).await;
            prop_assert_eq!(omitted.total, whole.chars().count());
            let residual = omitted.to_string();
            let text = output.to_text();
            let shown = text.strip_suffix(&residual).unwrap().trim_end_matches('\n');
            let marks = 2 * shown.matches(" …").count();
            prop_assert!(omitted.kept + marks >= shown.chars().count(), "{} + {marks} of {shown:?}", omitted.kept);
            prop_assert!(omitted.kept <= shown.chars().count());
            Ok(())
        })?;
    }

    #[test]
    fn nothing_slow_outlasts_the_deadline(
        tools in proptest::collection::vec(0_u64..20_000, 1..4),
        model in 0_u64..40_000,
        results in 0_u64..40_000,
        timeout in 1_u64..40_000,
    ) {
        block_on(async {
            let keeps = SlowResults(Duration::from_millis(results), MemoryResults::default());
            let model = SlowModel(Duration::from_millis(model), "m".repeat(900));
            let config = HubConfig { results: Arc::new(keeps), synthesizer: Some(Arc::new(model)), ..HubConfig::default() };
            let hub = ToolHub::new(config);
            let parts: Vec<Part> = tools.iter().enumerate().map(|(at, takes)| {
                part("search", &format!("s{at}")).takes(*takes).act(Act::Answer("x".repeat(600)))
            }).collect();
            register(&hub, &parts);
            let timeout = Duration::from_millis(timeout);
            let started = Instant::now();
            let outcome = hub.execute(&request("search"), &CallOptions::default().with_timeout(timeout)).await;
            let took = started.elapsed();
            prop_assert!(took <= timeout + Duration::from_millis(1), "{took:?} of {timeout:?}");
            let in_time = tools.iter().any(|takes| Duration::from_millis(*takes) + Duration::from_millis(1) < timeout);
            prop_assert!(outcome.is_ok() || !in_time, "an answer that came in time is shown, kept or not");
            Ok(())
        })?;
    }
}
