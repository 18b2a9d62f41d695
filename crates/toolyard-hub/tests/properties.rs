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
use toolyard_core::{ErrorKind, ToolCallRequest, ToolError, ToolHints, ToolOutput};
use toolyard_hub::{CallOptions, ToolHub};

/// Whether a scripted failure says that nothing happened.
const FAILURES: [ErrorKind; 5] =
    [ErrorKind::Failed, ErrorKind::Lost, ErrorKind::Unavailable, ErrorKind::Timeout, ErrorKind::Internal];

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Answer("fine".to_owned())),
        4 => proptest::sample::select(FAILURES.to_vec()).prop_map(Act::Fail),
        1 => Just(Act::Hang),
        1 => Just(Act::Panic),
    ]
}

fn any_hints() -> impl Strategy<Value = ToolHints> {
    prop_oneof![Just(ToolHints::READ_ONLY), Just(ToolHints::IDEMPOTENT), Just(ToolHints::default())]
}

/// Up to eight sources of one tool, native, skills and servers, trusted and not.
fn any_parts(hints: impl Strategy<Value = ToolHints>) -> impl Strategy<Value = Vec<Part>> {
    let one = (any_act(), hints, 0_u64..40_000, 0..3_u8, proptest::bool::weighted(0.8));
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
    passed_over: Vec<String>,
}

/// Runs one call on a clock that jumps from event to event.
fn run(parts: &[Part], timeout: Duration) -> Seen {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let hub = ToolHub::default();
        let ledger = register(&hub, parts);
        let tool = &parts[0].tool;
        let collisions = hub.snapshot().collisions();
        let names = |candidates: &[Arc<toolyard_hub::ToolCandidate>]| {
            candidates.iter().map(|candidate| candidate.source_id().to_string()).collect::<Vec<_>>()
        };
        let (used, passed_over) = match collisions.first() {
            Some(collision) => (names(&collision.used), names(&collision.passed_over)),
            None => (names(&hub.specs()), Vec::new()),
        };
        let started = Instant::now();
        let outcome = hub.execute(&request(tool), &CallOptions::default().with_timeout(timeout)).await;
        Seen { outcome, ledger, took: started.elapsed(), used, passed_over }
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
        let known: HashSet<&String> = seen.used.iter().chain(&seen.passed_over).collect();
        prop_assert_eq!(known.len(), parts.len(), "each source is either used or listed as passed over");
        let called: HashSet<String> = seen.ledger.calls().into_iter().collect();
        let usable: HashSet<String> = seen.used.into_iter().collect();
        prop_assert!(called.is_subset(&usable), "nobody who was not selected is called");
        // Where all failed with time to spare, every equal was asked.
        if seen.outcome.is_err() && seen.took < THIRTY {
            prop_assert_eq!(called, usable);
        }
    }

    #[test]
    fn a_success_in_time_is_never_missed(parts in any_parts(Just(ToolHints::READ_ONLY))) {
        quietly();
        let seen = run(&parts, THIRTY);
        let instant_success = parts.iter().any(|part| {
            matches!(part.act, Act::Answer(_)) && part.takes < Duration::from_secs(1) && seen.used.contains(&part.source)
        });
        let others_fail_at_once = parts.iter().all(|part| {
            part.takes < Duration::from_secs(1) && !matches!(part.act, Act::Hang)
        });
        if instant_success && others_fail_at_once {
            prop_assert!(seen.outcome.is_ok());
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

#[test]
fn a_retry_happens_only_where_it_is_safe() {
    let calls = |part: Part| run(&[part], THIRTY).ledger.calls().len();
    let lost = || part("fetch", "a").act(Act::Fail(ErrorKind::Lost));
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
