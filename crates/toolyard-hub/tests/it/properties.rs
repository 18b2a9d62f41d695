//! Invariants of calls with any mix of candidates, delays and failures, on a paused clock.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use proptest::prelude::*;
use tokio::time::Instant;
use toolyard_core::{Capability, ErrorKind, RawJson, ToolCallRequest, ToolError, ToolHints, ToolOutput};
use toolyard_hub::{CallOptions, DecisionLog, PendingEffect, ToolHub};

use crate::common::{Behavior, CallLog, TestTool, register, request, test_tool};

/// The errors of scripted failures.
const FAILURES: [ErrorKind; 5] = [
    ErrorKind::Failed,
    ErrorKind::ResponseLost,
    ErrorKind::Unavailable,
    ErrorKind::Timeout,
    ErrorKind::Internal,
];

fn any_behavior() -> impl Strategy<Value = Behavior> {
    prop_oneof![
        3 => Just(Behavior::Answer("fine".to_owned())),
        4 => proptest::sample::select(FAILURES.to_vec()).prop_map(Behavior::Fail),
        1 => Just(Behavior::Hang),
        1 => Just(Behavior::Panic),
    ]
}

/// A behavior that ends: success, failure or panic.
fn any_finite_behavior() -> impl Strategy<Value = Behavior> {
    prop_oneof![
        1 => Just(Behavior::Answer("fine".to_owned())),
        4 => proptest::sample::select(FAILURES.to_vec()).prop_map(Behavior::Fail),
        1 => Just(Behavior::Panic),
        1 => Just(Behavior::PanicBeforeFuture),
    ]
}

fn any_hints() -> impl Strategy<Value = ToolHints> {
    prop_oneof![Just(ToolHints::READ_ONLY), Just(ToolHints::IDEMPOTENT), Just(ToolHints::default())]
}

/// Up to eight sources of one tool, native, skills and servers, trusted and not.
fn any_tools(hints: impl Strategy<Value = ToolHints>) -> impl Strategy<Value = Vec<TestTool>> {
    tools_with(any_behavior(), hints, 0..40_000)
}

fn tools_with(
    behaviors: impl Strategy<Value = Behavior>,
    hints: impl Strategy<Value = ToolHints>,
    delay: std::ops::Range<u64>,
) -> impl Strategy<Value = Vec<TestTool>> {
    let generated_tool = (behaviors, hints, delay, 0..3_u8, proptest::bool::weighted(0.8));
    let tool = proptest::sample::select(vec!["calculate", "search", "fetch"]);
    (tool, proptest::collection::vec(generated_tool, 1..8)).prop_map(|(tool, generated)| {
        let test_tools =
            generated.into_iter().enumerate().map(|(at, (behavior, hints, delay, kind, trusted))| {
                let mut test_tool =
                    test_tool(tool, &format!("s{at}")).with_behavior(behavior).with_delay_ms(delay);
                test_tool.hints = hints;
                test_tool.trusted = trusted;
                if kind == 1 { test_tool.skill() } else { test_tool }
            });
        test_tools.collect()
    })
}

/// What was observed of a call.
struct ObservedCall {
    outcome: Result<ToolOutput, ToolError>,
    call_log: Arc<CallLog>,
    took: Duration,
    used: Vec<String>,
    skipped: Vec<String>,
}

/// How a call selects its tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selection {
    Name,
    Capability,
    NameOrCapability,
}

fn any_selection() -> impl Strategy<Value = Selection> {
    prop_oneof![Just(Selection::Name), Just(Selection::Capability), Just(Selection::NameOrCapability)]
}

/// Runs one call by name on a clock that jumps from event to event.
fn run(test_tools: &[TestTool], timeout: Duration) -> ObservedCall {
    run_selecting(Selection::Name, test_tools, timeout)
}

fn run_selecting(selection: Selection, test_tools: &[TestTool], timeout: Duration) -> ObservedCall {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let hub = ToolHub::default();
        let call_log = register(&hub, test_tools);
        let tool = &test_tools[0].tool;
        let names = |candidates: &[Arc<toolyard_hub::ToolCandidate>]| {
            candidates.iter().map(|candidate| candidate.source_id().to_string()).collect::<Vec<_>>()
        };
        let snapshot = hub.snapshot();
        let found = snapshot.find(tool).unwrap();
        let (used, skipped) = (names(found.equivalents), names(found.others));
        let started = Instant::now();
        let outcome = call_selecting(selection, &hub, tool, timeout).await;
        ObservedCall { outcome, call_log, took: started.elapsed(), used, skipped }
    })
}

async fn call_selecting(
    selection: Selection,
    hub: &ToolHub,
    tool: &str,
    timeout: Duration,
) -> Result<ToolOutput, ToolError> {
    let options = CallOptions::default().with_timeout(timeout);
    let capability = Capability::from(match tool {
        "fetch" => "read",
        other => other,
    });
    match selection {
        Selection::Name => hub.execute(&request(tool), &options).await,
        Selection::Capability => {
            hub.execute_by_capability(&capability, RawJson::empty_object(), &options).await
        }
        Selection::NameOrCapability => {
            hub.execute_or_by_capability(&request(tool), &capability, &options).await
        }
    }
}

/// Like [`any_tools`], and some of the sources have a tool of another name with the same capability.
fn any_mixed_tools(hints: impl Strategy<Value = ToolHints>) -> impl Strategy<Value = Vec<TestTool>> {
    let others = proptest::collection::vec(any::<bool>(), 8);
    (any_tools(hints), others).prop_map(|(mut test_tools, others)| {
        for (test_tool, other) in test_tools.iter_mut().zip(others).skip(1) {
            if other {
                test_tool.tool.push_str("_more");
            }
        }
        test_tools
    })
}

/// Hides the messages of scripted panics, which would bury those of real ones.
fn silence_panics() {
    std::panic::set_hook(Box::new(|_| {}));
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn no_candidate_is_lost(test_tools in any_tools(Just(ToolHints::READ_ONLY))) {
        silence_panics();
        let observed = run(&test_tools, DEFAULT_TIMEOUT);
        let known: HashSet<&String> = observed.used.iter().chain(&observed.skipped).collect();
        prop_assert_eq!(known.len(), test_tools.len(), "each source is either used or listed as skipped");
        let called: HashSet<String> = observed.call_log.calls().into_iter().collect();
        let usable: HashSet<String> = observed.used.into_iter().collect();
        prop_assert!(called.is_subset(&usable), "only selected candidates are called");
        // If all failed before the deadline, every equivalent source was called.
        if observed.outcome.is_err() && observed.took < DEFAULT_TIMEOUT {
            prop_assert_eq!(called, usable);
        }
    }

    /// Up to seven candidates that each end within a second, so that all can be tried in time.
    #[test]
    fn a_success_in_time_is_never_missed(
        test_tools in tools_with(any_finite_behavior(), Just(ToolHints::READ_ONLY), 0..1_000),
        selection in any_selection(),
    ) {
        silence_panics();
        let observed = run_selecting(selection, &test_tools, DEFAULT_TIMEOUT);
        let all_trusted: Vec<&str> = test_tools.iter().filter(|test_tool| test_tool.trusted).map(|test_tool| test_tool.source.as_str()).collect();
        let may_answer = |test_tool: &TestTool| match selection {
            // By capability, all trusted tools are candidates.
            Selection::Capability => all_trusted.contains(&test_tool.source.as_str()),
            Selection::Name | Selection::NameOrCapability => observed.used.contains(&test_tool.source),
        };
        let succeeds = test_tools.iter().any(|test_tool| matches!(test_tool.behavior, Behavior::Answer(_)) && may_answer(test_tool));
        let has_candidate = match selection {
            Selection::Capability => !all_trusted.is_empty(),
            Selection::Name | Selection::NameOrCapability => true,
        };
        if has_candidate {
            prop_assert_eq!(observed.outcome.is_ok(), succeeds, "{:?}", observed.outcome);
        }
    }

    #[test]
    fn the_first_success_wins_and_every_loser_is_dropped(
        delays in proptest::collection::vec((1_u64..20_000, any::<bool>()), 2..8)
    ) {
        let test_tools: Vec<TestTool> = delays.iter().enumerate().map(|(at, (delay, succeeds))| {
            let test_tool = test_tool("calculate", &format!("s{at}")).with_delay_ms(*delay);
            if *succeeds { test_tool } else { test_tool.with_behavior(Behavior::Fail(ErrorKind::Failed)) }
        }).collect();
        let observed = run(&test_tools, Duration::from_secs(1_000));
        let in_batch = delays.len().min(3);
        let winner = delays[..in_batch].iter().enumerate().filter(|(_, (_, ok))| *ok).min_by_key(|(_, (delay, _))| *delay);
        if let Some((at, (delay, _))) = winner {
            let fastest = delays[..in_batch].iter().filter(|(t, ok)| *ok && t == delay).count();
            let output = observed.outcome.unwrap();
            if fastest == 1 {
                prop_assert_eq!(output.to_text(), format!("s{at}"));
            }
            prop_assert!(observed.took < Duration::from_millis(delay + 2));
            let slower = delays[..in_batch].iter().filter(|(t, _)| t > delay).count();
            prop_assert!(observed.call_log.dropped_unfinished.load(Ordering::SeqCst) >= slower);
        }
        prop_assert_eq!(observed.call_log.still_running(), 0);
    }

    #[test]
    fn at_most_three_run_at_once(test_tools in any_tools(any_hints())) {
        silence_panics();
        let observed = run(&test_tools, DEFAULT_TIMEOUT);
        let max_running = observed.call_log.max_running.load(Ordering::SeqCst);
        prop_assert!(max_running <= 3, "{max_running} ran at once");
        if test_tools.iter().filter(|test_tool| observed.used.contains(&test_tool.source)).any(|test_tool| test_tool.hints == ToolHints::default()) {
            prop_assert!(max_running <= 1, "with a writing tool among them, one at a time");
        }
    }

    #[test]
    fn a_tool_that_is_not_idempotent_is_called_at_most_once(test_tools in any_tools(Just(ToolHints::default()))) {
        silence_panics();
        let observed = run(&test_tools, DEFAULT_TIMEOUT);
        let reached = |source: &String| {
            // "Unavailable" is the one failure that says nothing was sent.
            !test_tools.iter().any(|test_tool| test_tool.source == *source && matches!(test_tool.behavior, Behavior::Fail(ErrorKind::Unavailable)))
        };
        let calls = observed.call_log.calls();
        prop_assert!(calls.iter().filter(|source| reached(source)).count() <= 1, "{calls:?}");
        let distinct: HashSet<&String> = calls.iter().collect();
        prop_assert_eq!(distinct.len(), calls.len(), "no candidate is called twice");
    }

    #[test]
    fn a_write_is_repeated_only_while_nothing_of_it_was_sent(
        unsent in 0_usize..5, kind in proptest::sample::select(FAILURES.to_vec()), trusted: bool
    ) {
        let mut test_tool = test_tool("store", "a").writes().with_behavior(Behavior::NeverSent(unsent, kind));
        test_tool.trusted = trusted;
        let observed = run(&[test_tool], DEFAULT_TIMEOUT);
        // Three attempts at most, and none after the one that was sent.
        prop_assert_eq!(observed.call_log.calls().len(), (unsent + 1).min(3));
        let mut error = observed.outcome.unwrap_err();
        prop_assert!(!error.take_never_sent(), "the mark is about one attempt: {error:?}");
    }

    #[test]
    fn untrusted_hints_never_cause_a_second_call(test_tools in any_tools(any_hints())) {
        silence_panics();
        let untrusted: Vec<TestTool> = test_tools.into_iter().map(TestTool::untrusted).collect();
        let observed = run(&untrusted, DEFAULT_TIMEOUT);
        prop_assert!(observed.call_log.calls().len() <= 1);
    }

    #[test]
    fn a_deadline_is_exceeded_by_at_most_a_millisecond(test_tools in any_tools(any_hints()), timeout in 0_u64..60_000) {
        silence_panics();
        let timeout = Duration::from_millis(timeout);
        let observed = run(&test_tools, timeout);
        prop_assert!(observed.took <= timeout + Duration::from_millis(1), "{:?} of {timeout:?}", observed.took);
        prop_assert_eq!(observed.call_log.still_running(), 0);
    }

    #[test]
    fn results_never_mix_between_calls(calls in proptest::collection::vec((0..3_usize, 0_u32..1_000_000), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let hub = ToolHub::default();
            let tools = ["calculate", "fetch", "get_time"];
            let sources = [("a", 30), ("b", 10), ("c", 20)];
            let test_tools: Vec<TestTool> = tools.iter().flat_map(|tool| sources.map(|(source, delay)| {
                test_tool(tool, source).with_delay_ms(delay).with_behavior(Behavior::Echo)
            })).collect();
            register(&hub, &test_tools);
            let options = CallOptions::default();
            let requests: Vec<ToolCallRequest> = calls.iter().map(|(tool, value)| {
                ToolCallRequest::new(tools[*tool], serde_json::json!({"value": value}))
            }).collect();
            let outcomes = futures_util::future::join_all(requests.iter().map(|request| hub.execute(request, &options))).await;
            for (request, outcome) in requests.iter().zip(outcomes) {
                prop_assert_eq!(outcome.unwrap().to_text(), request.arguments.get());
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_dropped_call_drops_all_work(test_tools in any_tools(any_hints()), after in 0_u64..30_000) {
        silence_panics();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let running = runtime.block_on(async {
            let hub = ToolHub::default();
            let call_log = register(&hub, &test_tools);
            let request = request(&test_tools[0].tool);
            let options = CallOptions::default();
            let _ = tokio::time::timeout(Duration::from_millis(after), hub.execute(&request, &options)).await;
            call_log.still_running()
        });
        prop_assert_eq!(running, 0);
    }
}

/// Whether a call to this part certainly did nothing.
fn without_effect(test_tool: &TestTool) -> bool {
    (test_tool.trusted && test_tool.hints == ToolHints::READ_ONLY)
        || matches!(test_tool.behavior, Behavior::Fail(ErrorKind::Unavailable))
}

fn is_trusted_reader(test_tool: &TestTool) -> bool {
    test_tool.trusted && test_tool.hints == ToolHints::READ_ONLY
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn every_selection_keeps_the_deadline_and_drops_all_losers(
        test_tools in any_mixed_tools(any_hints()), selection in any_selection(), timeout in 0_u64..60_000
    ) {
        silence_panics();
        let timeout = Duration::from_millis(timeout);
        let observed = run_selecting(selection, &test_tools, timeout);
        prop_assert!(observed.took <= timeout + Duration::from_millis(1), "{:?} of {timeout:?}", observed.took);
        prop_assert_eq!(observed.call_log.still_running(), 0);
        let max_running = observed.call_log.max_running.load(Ordering::SeqCst);
        prop_assert!(max_running <= 3, "{max_running} ran at once");
    }

    #[test]
    fn no_selection_repeats_a_call_that_is_not_repeatable(test_tools in any_mixed_tools(any_hints()), selection in any_selection()) {
        silence_panics();
        let observed = run_selecting(selection, &test_tools, DEFAULT_TIMEOUT);
        let calls = observed.call_log.calls();
        let part_of = |source: &String| test_tools.iter().find(|test_tool| test_tool.source == *source).unwrap();
        let repeatable = |test_tool: &TestTool| test_tool.trusted && test_tool.hints != ToolHints::default();
        for source in &calls {
            let times = calls.iter().filter(|other| *other == source).count();
            prop_assert!(times == 1 || repeatable(part_of(source)), "{source} of {calls:?}");
        }
        // After a call that may have written, no tool of another name is called.
        if let Some(at) = calls.iter().position(|source| !without_effect(part_of(source)))
            && selection == Selection::NameOrCapability
        {
            let rest = &calls[at..];
            prop_assert!(rest.iter().all(|source| part_of(source).tool == test_tools[0].tool), "{calls:?}");
        }
    }

    #[test]
    fn no_selection_calls_an_unselected_tool(test_tools in any_mixed_tools(any_hints()), selection in any_selection()) {
        silence_panics();
        let observed = run_selecting(selection, &test_tools, DEFAULT_TIMEOUT);
        let called: HashSet<String> = observed.call_log.calls().into_iter().collect();
        let is_selected = |source: &String| observed.used.contains(source);
        let is_reader = |source: &String| test_tools.iter().any(|test_tool| test_tool.source == *source && is_trusted_reader(test_tool));
        match selection {
            Selection::Name => prop_assert!(called.iter().all(is_selected), "{called:?}"),
            Selection::Capability if test_tools.iter().any(is_trusted_reader) => prop_assert!(called.iter().all(is_reader), "{called:?}"),
            Selection::Capability => {
                let trusted = test_tools.iter().filter(|test_tool| test_tool.trusted).count();
                let candidate_count = if trusted > 0 { trusted } else { test_tools.len() };
                prop_assert_eq!(called.len(), usize::from(candidate_count == 1), "{:?}", called);
                let refused = observed.outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::Refused);
                prop_assert_eq!(refused, candidate_count > 1);
            }
            Selection::NameOrCapability => {
                let substitute = |source: &String| {
                    test_tools.iter().any(|test_tool| test_tool.source == *source && is_trusted_reader(test_tool) && test_tool.tool != test_tools[0].tool)
                };
                prop_assert!(called.iter().all(|source| is_selected(source) || substitute(source)), "{called:?}");
            }
        }
    }

    #[test]
    fn no_selection_lets_untrusted_hints_cause_a_second_call(test_tools in any_mixed_tools(any_hints()), selection in any_selection()) {
        silence_panics();
        let untrusted: Vec<TestTool> = test_tools.into_iter().map(TestTool::untrusted).collect();
        let observed = run_selecting(selection, &untrusted, DEFAULT_TIMEOUT);
        prop_assert!(observed.call_log.calls().len() <= 1);
    }
}

#[test]
fn a_retry_happens_only_where_it_is_safe() {
    let calls = |test_tool: TestTool| run(&[test_tool], DEFAULT_TIMEOUT).call_log.calls().len();
    let lost = || test_tool("fetch", "a").with_behavior(Behavior::Fail(ErrorKind::ResponseLost));
    assert_eq!(calls(lost()), 3, "read-only and trusted: three attempts");
    assert_eq!(calls(lost().writes()), 1, "a write is never repeated");
    assert_eq!(calls(lost().untrusted()), 1, "hints of an untrusted source do not count");
    assert_eq!(
        calls(test_tool("fetch", "a").with_behavior(Behavior::Fail(ErrorKind::Failed))),
        1,
        "the tool itself failed: a repetition would not help"
    );
}

#[test]
fn a_write_with_equivalents_is_tried_once_at_each_until_it_is_sent() {
    let unsent = |source: &str| {
        test_tool("store", source).writes().with_behavior(Behavior::NeverSent(9, ErrorKind::Failed))
    };
    let observed = run(&[unsent("a"), unsent("b")], DEFAULT_TIMEOUT);
    assert_eq!(observed.call_log.calls(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_an_unsent_write_is_explained_and_has_no_pending_effect() {
    let hub = ToolHub::default();
    let store = test_tool("store", "a").writes().with_behavior(Behavior::NeverSent(9, ErrorKind::Failed));
    register(&hub, &[store]);
    let (decisions, effect) = (Arc::new(DecisionLog::default()), Arc::new(PendingEffect::default()));
    let options = CallOptions::default()
        .with_decision_log(Arc::clone(&decisions))
        .with_pending_effect(Arc::clone(&effect));
    // The first attempt takes 10 ms, and the pause after it at least 100 ms.
    let request = request("store");
    let dropped = tokio::time::timeout(Duration::from_millis(50), hub.execute(&request, &options)).await;
    assert!(dropped.is_err() && !effect.has_started());
    let decisions = decisions.decisions();
    let retry = decisions.iter().find(|decision| decision.stage == "retry").unwrap();
    assert_eq!(retry.detail, "attempt 2 of 3 after a pause: nothing was sent");
}

#[test]
fn an_unknown_outcome_is_reported_and_no_other_source_is_called() {
    let observed = run(
        &[test_tool("fetch", "a").writes().with_behavior(Behavior::Hang), test_tool("fetch", "b").writes()],
        DEFAULT_TIMEOUT,
    );
    let error = observed.outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(observed.call_log.calls(), ["a"]);
}

#[test]
fn an_unsafe_equivalent_is_not_called_after_a_possible_effect_of_an_idempotent_one() {
    for kind in [ErrorKind::ResponseLost, ErrorKind::Failed] {
        let idempotent = test_tool("store", "a").idempotent().with_behavior(Behavior::Fail(kind));
        let observed = run(&[idempotent, test_tool("store", "b").writes()], DEFAULT_TIMEOUT);
        assert_eq!(observed.outcome.unwrap_err().kind(), kind);
        assert_eq!(observed.call_log.calls(), ["a"]);
    }
}

#[test]
fn no_error_claims_that_nothing_was_sent_after_a_possible_effect() {
    let store = |source: &str, behavior| test_tool("store", source).idempotent().with_behavior(behavior);
    // Another attempt was sent.
    let turns = vec![ErrorKind::ResponseLost, ErrorKind::Unavailable];
    let error = run(&[store("a", Behavior::FailInTurn(turns))], DEFAULT_TIMEOUT).outcome.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::ResponseLost, 3));
    assert_eq!(error.hint(), Some("the last attempt failed: as scripted"));
    // The call was sent to another source.
    let unreachable = store("a", Behavior::Fail(ErrorKind::Unavailable));
    let lost = store("b", Behavior::Fail(ErrorKind::ResponseLost));
    let error = run(&[unreachable, lost], DEFAULT_TIMEOUT).outcome.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::ResponseLost, 2));
    assert_eq!(error.hint(), Some("also failed: store (a): as scripted"));
}
