//! Promises that hold for every mix of candidates, delays and failures, shown on a paused clock.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test helper fails its test")]

mod common;

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use common::{Act, Ledger, Part, part, register, request};
use proptest::prelude::*;
use tokio::time::Instant;
use toolyard_core::{Capability, ErrorKind, RawJson, ToolCallRequest, ToolError, ToolHints, ToolOutput};
use toolyard_hub::{CallOptions, ToolHub};

/// Whether a scripted failure says that nothing happened.
const FAILURES: [ErrorKind; 5] = [
    ErrorKind::Failed,
    ErrorKind::ResponseLost,
    ErrorKind::Unavailable,
    ErrorKind::Timeout,
    ErrorKind::Internal,
];

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Answer("fine".to_owned())),
        4 => proptest::sample::select(FAILURES.to_vec()).prop_map(Act::Fail),
        1 => Just(Act::Hang),
        1 => Just(Act::Panic),
    ]
}

/// Ends, well or badly.
fn any_ending() -> impl Strategy<Value = Act> {
    prop_oneof![
        1 => Just(Act::Answer("fine".to_owned())),
        4 => proptest::sample::select(FAILURES.to_vec()).prop_map(Act::Fail),
        1 => Just(Act::Panic),
        1 => Just(Act::PanicAtOnce),
    ]
}

fn any_hints() -> impl Strategy<Value = ToolHints> {
    prop_oneof![Just(ToolHints::READ_ONLY), Just(ToolHints::IDEMPOTENT), Just(ToolHints::default())]
}

/// Up to eight sources of one tool, native, skills and servers, trusted and not.
fn any_parts(hints: impl Strategy<Value = ToolHints>) -> impl Strategy<Value = Vec<Part>> {
    parts_that(any_act(), hints, 0..40_000)
}

fn parts_that(
    acts: impl Strategy<Value = Act>,
    hints: impl Strategy<Value = ToolHints>,
    takes: std::ops::Range<u64>,
) -> impl Strategy<Value = Vec<Part>> {
    let one = (acts, hints, takes, 0..3_u8, proptest::bool::weighted(0.8));
    let tool = proptest::sample::select(vec!["calculate", "search", "fetch"]);
    (tool, proptest::collection::vec(one, 1..8)).prop_map(|(tool, ones)| {
        let parts = ones.into_iter().enumerate().map(|(at, (act, hints, takes, kind, trusted))| {
            let mut part = part(tool, &format!("s{at}")).act(act).takes(takes);
            part.hints = hints;
            part.trusted = trusted;
            if kind == 1 { part.skill() } else { part }
        });
        parts.collect()
    })
}

/// What one call did, seen from outside.
struct Seen {
    outcome: Result<ToolOutput, ToolError>,
    ledger: Arc<Ledger>,
    took: Duration,
    used: Vec<String>,
    skipped: Vec<String>,
}

/// The three ways to make a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Name,
    Capability,
    Either,
}

fn any_way() -> impl Strategy<Value = Way> {
    prop_oneof![Just(Way::Name), Just(Way::Capability), Just(Way::Either)]
}

/// Runs one call by name on a clock that jumps from event to event.
fn run(parts: &[Part], timeout: Duration) -> Seen {
    run_by(Way::Name, parts, timeout)
}

fn run_by(way: Way, parts: &[Part], timeout: Duration) -> Seen {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let hub = ToolHub::default();
        let ledger = register(&hub, parts);
        let tool = &parts[0].tool;
        let names = |candidates: &[Arc<toolyard_hub::ToolCandidate>]| {
            candidates.iter().map(|candidate| candidate.source_id().to_string()).collect::<Vec<_>>()
        };
        let snapshot = hub.snapshot();
        let found = snapshot.find(tool).unwrap();
        let (used, skipped) = (names(found.used), names(found.skipped));
        let started = Instant::now();
        let outcome = call_by(way, &hub, tool, timeout).await;
        Seen { outcome, ledger, took: started.elapsed(), used, skipped }
    })
}

async fn call_by(way: Way, hub: &ToolHub, tool: &str, timeout: Duration) -> Result<ToolOutput, ToolError> {
    let options = CallOptions::default().with_timeout(timeout);
    let capability = Capability::from(match tool {
        "fetch" => "read",
        other => other,
    });
    match way {
        Way::Name => hub.execute(&request(tool), &options).await,
        Way::Capability => hub.execute_by_capability(&capability, RawJson::empty_object(), &options).await,
        Way::Either => hub.execute_or_by_capability(&request(tool), &capability, &options).await,
    }
}

/// Like [`any_parts`], and some of the sources have a tool of another name with the same capability.
fn any_mixed_parts(hints: impl Strategy<Value = ToolHints>) -> impl Strategy<Value = Vec<Part>> {
    let others = proptest::collection::vec(any::<bool>(), 8);
    (any_parts(hints), others).prop_map(|(mut parts, others)| {
        for (part, other) in parts.iter_mut().zip(others).skip(1) {
            if other {
                part.tool.push_str("_more");
            }
        }
        parts
    })
}

/// Panics of scripted tools are part of the game; their messages would only hide real ones.
fn quietly() {
    std::panic::set_hook(Box::new(|_| {}));
}

const THIRTY: Duration = Duration::from_secs(30);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn no_candidate_is_lost(parts in any_parts(Just(ToolHints::READ_ONLY))) {
        quietly();
        let seen = run(&parts, THIRTY);
        let known: HashSet<&String> = seen.used.iter().chain(&seen.skipped).collect();
        prop_assert_eq!(known.len(), parts.len(), "each source is either used or listed as passed over");
        let called: HashSet<String> = seen.ledger.calls().into_iter().collect();
        let usable: HashSet<String> = seen.used.into_iter().collect();
        prop_assert!(called.is_subset(&usable), "nobody who was not selected is called");
        // Where all failed with time to spare, every equal was asked.
        if seen.outcome.is_err() && seen.took < THIRTY {
            prop_assert_eq!(called, usable);
        }
    }

    /// Up to seven candidates that end within a second each, one after another if need be.
    #[test]
    fn a_success_in_time_is_never_missed(
        parts in parts_that(any_ending(), Just(ToolHints::READ_ONLY), 0..1_000),
        way in any_way(),
    ) {
        quietly();
        let seen = run_by(way, &parts, THIRTY);
        let all_trusted: Vec<&str> = parts.iter().filter(|part| part.trusted).map(|part| part.source.as_str()).collect();
        let may_answer = |part: &Part| match way {
            // By capability all trusted tools may answer, of which at most eight are picked.
            Way::Capability => all_trusted.contains(&part.source.as_str()),
            Way::Name | Way::Either => seen.used.contains(&part.source),
        };
        let succeeds = parts.iter().any(|part| matches!(part.act, Act::Answer(_)) && may_answer(part));
        let wanted = match way {
            Way::Capability => !all_trusted.is_empty(),
            Way::Name | Way::Either => true,
        };
        if wanted {
            prop_assert_eq!(seen.outcome.is_ok(), succeeds, "{:?}", seen.outcome);
        }
    }

    #[test]
    fn the_first_success_wins_and_every_loser_is_dropped(
        delays in proptest::collection::vec((1_u64..20_000, any::<bool>()), 2..8)
    ) {
        let parts: Vec<Part> = delays.iter().enumerate().map(|(at, (takes, succeeds))| {
            let part = part("calculate", &format!("s{at}")).takes(*takes);
            if *succeeds { part } else { part.act(Act::Fail(ErrorKind::Failed)) }
        }).collect();
        let seen = run(&parts, Duration::from_secs(1_000));
        let in_batch = delays.len().min(3);
        let winner = delays[..in_batch].iter().enumerate().filter(|(_, (_, ok))| *ok).min_by_key(|(_, (takes, _))| *takes);
        if let Some((at, (takes, _))) = winner {
            let fastest = delays[..in_batch].iter().filter(|(t, ok)| *ok && t == takes).count();
            let output = seen.outcome.unwrap();
            if fastest == 1 {
                prop_assert_eq!(output.to_text(), format!("s{at}"));
            }
            prop_assert!(seen.took < Duration::from_millis(takes + 2));
            let slower = delays[..in_batch].iter().filter(|(t, _)| t > takes).count();
            prop_assert!(seen.ledger.dropped_unfinished.load(Ordering::SeqCst) >= slower);
        }
        prop_assert_eq!(seen.ledger.still_running(), 0);
    }

    #[test]
    fn at_most_three_run_at_once(parts in any_parts(any_hints())) {
        quietly();
        let seen = run(&parts, THIRTY);
        let most = seen.ledger.most_running.load(Ordering::SeqCst);
        prop_assert!(most <= 3, "{most} ran at once");
        if parts.iter().filter(|part| seen.used.contains(&part.source)).any(|part| part.hints == ToolHints::default()) {
            prop_assert!(most <= 1, "with a writer among them, one at a time");
        }
    }

    #[test]
    fn what_is_not_idempotent_is_called_at_most_once(parts in any_parts(Just(ToolHints::default()))) {
        quietly();
        let seen = run(&parts, THIRTY);
        let reached = |source: &String| {
            // "Unavailable" is the one failure that says nothing was sent.
            !parts.iter().any(|part| part.source == *source && matches!(part.act, Act::Fail(ErrorKind::Unavailable)))
        };
        let calls = seen.ledger.calls();
        prop_assert!(calls.iter().filter(|source| reached(source)).count() <= 1, "{calls:?}");
        let distinct: HashSet<&String> = calls.iter().collect();
        prop_assert_eq!(distinct.len(), calls.len(), "nobody is called twice");
    }

    #[test]
    fn untrusted_hints_never_cause_a_second_call(parts in any_parts(any_hints())) {
        quietly();
        let untrusted: Vec<Part> = parts.into_iter().map(Part::untrusted).collect();
        let seen = run(&untrusted, THIRTY);
        prop_assert!(seen.ledger.calls().len() <= 1);
    }

    #[test]
    fn a_deadline_is_never_exceeded_by_more_than_a_tick(parts in any_parts(any_hints()), timeout in 0_u64..60_000) {
        quietly();
        let timeout = Duration::from_millis(timeout);
        let seen = run(&parts, timeout);
        prop_assert!(seen.took <= timeout + Duration::from_millis(1), "{:?} of {timeout:?}", seen.took);
        prop_assert_eq!(seen.ledger.still_running(), 0);
    }

    #[test]
    fn results_never_mix_between_calls(calls in proptest::collection::vec((0..3_usize, 0_u32..1_000_000), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let hub = ToolHub::default();
            let tools = ["calculate", "fetch", "get_time"];
            let sources = [("a", 30), ("b", 10), ("c", 20)];
            let parts: Vec<Part> = tools.iter().flat_map(|tool| sources.map(|(source, takes)| {
                part(tool, source).takes(takes).act(Act::Echo)
            })).collect();
            register(&hub, &parts);
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
    fn a_dropped_call_drops_all_work(parts in any_parts(any_hints()), after in 0_u64..30_000) {
        quietly();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let running = runtime.block_on(async {
            let hub = ToolHub::default();
            let ledger = register(&hub, &parts);
            let request = request(&parts[0].tool);
            let options = CallOptions::default();
            let _ = tokio::time::timeout(Duration::from_millis(after), hub.execute(&request, &options)).await;
            ledger.still_running()
        });
        prop_assert_eq!(running, 0);
    }
}

/// Whether a call to this part certainly did nothing.
fn without_effect(part: &Part) -> bool {
    (part.trusted && part.hints == ToolHints::READ_ONLY)
        || matches!(part.act, Act::Fail(ErrorKind::Unavailable))
}

fn reads(part: &Part) -> bool {
    part.trusted && part.hints == ToolHints::READ_ONLY
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn every_way_keeps_time_and_drops_all_losers(
        parts in any_mixed_parts(any_hints()), way in any_way(), timeout in 0_u64..60_000
    ) {
        quietly();
        let timeout = Duration::from_millis(timeout);
        let seen = run_by(way, &parts, timeout);
        prop_assert!(seen.took <= timeout + Duration::from_millis(1), "{:?} of {timeout:?}", seen.took);
        prop_assert_eq!(seen.ledger.still_running(), 0);
        let most = seen.ledger.most_running.load(Ordering::SeqCst);
        prop_assert!(most <= 3, "{most} ran at once");
    }

    #[test]
    fn by_no_way_anything_is_done_twice(parts in any_mixed_parts(any_hints()), way in any_way()) {
        quietly();
        let seen = run_by(way, &parts, THIRTY);
        let calls = seen.ledger.calls();
        let part_of = |source: &String| parts.iter().find(|part| part.source == *source).unwrap();
        let repeatable = |part: &Part| part.trusted && part.hints != ToolHints::default();
        for source in &calls {
            let times = calls.iter().filter(|other| *other == source).count();
            prop_assert!(times == 1 || repeatable(part_of(source)), "{source} of {calls:?}");
        }
        // After something that may have written, nobody of another name is asked any more.
        if let Some(at) = calls.iter().position(|source| !without_effect(part_of(source)))
            && way == Way::Either
        {
            let rest = &calls[at..];
            prop_assert!(rest.iter().all(|source| part_of(source).tool == parts[0].tool), "{calls:?}");
        }
    }

    #[test]
    fn by_no_way_anybody_unselected_is_called(parts in any_mixed_parts(any_hints()), way in any_way()) {
        quietly();
        let seen = run_by(way, &parts, THIRTY);
        let called: HashSet<String> = seen.ledger.calls().into_iter().collect();
        let named = |source: &String| seen.used.contains(source);
        let reading = |source: &String| parts.iter().any(|part| part.source == *source && reads(part));
        match way {
            Way::Name => prop_assert!(called.iter().all(named), "{called:?}"),
            Way::Capability if parts.iter().any(reads) => prop_assert!(called.iter().all(reading), "{called:?}"),
            Way::Capability => {
                let trusted = parts.iter().filter(|part| part.trusted).count();
                let alone = if trusted > 0 { trusted } else { parts.len() };
                prop_assert_eq!(called.len(), usize::from(alone == 1), "{:?}", called);
                let refused = seen.outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::Refused);
                prop_assert_eq!(refused, alone > 1);
            }
            Way::Either => {
                let substitute = |source: &String| {
                    parts.iter().any(|part| part.source == *source && reads(part) && part.tool != parts[0].tool)
                };
                prop_assert!(called.iter().all(|source| named(source) || substitute(source)), "{called:?}");
            }
        }
    }

    #[test]
    fn by_no_way_untrusted_hints_cause_a_second_call(parts in any_mixed_parts(any_hints()), way in any_way()) {
        quietly();
        let untrusted: Vec<Part> = parts.into_iter().map(Part::untrusted).collect();
        let seen = run_by(way, &untrusted, THIRTY);
        prop_assert!(seen.ledger.calls().len() <= 1);
    }
}

#[test]
fn a_retry_happens_only_where_it_is_safe() {
    let calls = |part: Part| run(&[part], THIRTY).ledger.calls().len();
    let lost = || part("fetch", "a").act(Act::Fail(ErrorKind::ResponseLost));
    assert_eq!(calls(lost()), 3, "read-only and trusted: three attempts");
    assert_eq!(calls(lost().writes()), 1, "a write is never repeated");
    assert_eq!(calls(lost().untrusted()), 1, "its own word is not enough");
    assert_eq!(
        calls(part("fetch", "a").act(Act::Fail(ErrorKind::Failed))),
        1,
        "the tool said no: asking again is no help"
    );
}

#[test]
fn an_unknown_outcome_is_said_and_nobody_else_is_asked() {
    let seen = run(&[part("fetch", "a").writes().act(Act::Hang), part("fetch", "b").writes()], THIRTY);
    let error = seen.outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(seen.ledger.calls(), ["a"]);
}
