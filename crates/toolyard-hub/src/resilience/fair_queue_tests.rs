//! Callers take turns, and no caller occupies all slots.

use proptest::prelude::*;

use super::*;

fn caller(name: &str) -> Arc<str> {
    Arc::from(name)
}

/// Starts as many calls as possible; the others are not queued.
fn fill<W>(queue: &mut FairQueue<W>, caller: &Arc<str>) -> Vec<Ticket> {
    std::iter::from_fn(|| queue.try_start(caller, false)).collect()
}

#[test]
fn every_caller_leaves_slots_for_the_next() {
    let mut queue = FairQueue::<()>::new(12);
    let a = fill(&mut queue, &caller("a"));
    assert_eq!(a.len(), 6);
    assert_eq!(fill(&mut queue, &caller("b")).len(), 3);
    assert_eq!(fill(&mut queue, &caller("c")).len(), 2);
    assert!(queue.try_start(&caller("d"), false).is_some());
    assert!(queue.try_start(&caller("e"), false).is_none(), "all slots are occupied");
    queue.finish(a[0]);
    assert!(queue.try_start(&caller("a"), false).is_none(), "`a` occupies more than is free");
    assert!(queue.try_start(&caller("e"), false).is_some());
}

#[test]
fn exclusive_calls_of_two_callers_alternate() {
    let mut queue = FairQueue::new(12);
    let (a, b) = (caller("a"), caller("b"));
    let mut running = queue.try_start(&a, true).unwrap();
    let mut tickets = HashMap::new();
    for number in 0..100 {
        let (ticket, admitted) = queue.enqueue(&a, true, number);
        assert!(admitted.is_empty());
        tickets.insert(number, ticket);
    }
    for number in 100..103 {
        tickets.insert(number, queue.enqueue(&b, true, number).0);
    }
    let mut order = Vec::new();
    for _ in 0..7 {
        let admitted = queue.finish(running);
        assert_eq!(admitted.len(), 1, "one at a time");
        running = tickets.remove(&admitted[0]).unwrap();
        order.push(admitted[0]);
    }
    assert_eq!(order, [100, 0, 101, 1, 102, 2, 3]);
}

#[test]
fn a_waiting_exclusive_call_keeps_later_calls_from_starting() {
    let mut queue = FairQueue::new(12);
    let (a, b) = (caller("a"), caller("b"));
    let reader = queue.try_start(&a, false).unwrap();
    let (writer, admitted) = queue.enqueue(&b, true, "writer");
    assert!(admitted.is_empty() && queue.try_start(&a, false).is_none());
    let (_, admitted) = queue.enqueue(&a, false, "reader");
    assert!(admitted.is_empty());
    assert_eq!(queue.finish(reader), ["writer"]);
    assert_eq!(queue.finish(writer), ["reader"]);
}

/// Readers overlap, so that one always runs: every caller is new, or two take turns.
#[test]
fn a_stream_of_readers_does_not_pass_a_waiting_writer_forever() {
    for (names, had_turn) in [(1_000, true), (1_000, false), (2, true), (2, false)] {
        let mut queue = FairQueue::new(12);
        let writer = caller("writer");
        let own_reader = had_turn.then(|| queue.try_start(&writer, false).unwrap());
        let mut running = queue.try_start(&caller("0"), false).unwrap();
        queue.enqueue(&writer, true, "writer");
        if let Some(reader) = own_reader {
            queue.finish(reader);
        }
        let passed = (1..100).take_while(|number| {
            let (next, admitted) = queue.enqueue(&caller(&(number % names).to_string()), false, "reader");
            let before = std::mem::replace(&mut running, next);
            admitted == ["reader"] && queue.finish(before).is_empty()
        });
        assert!(passed.count() <= 3, "{names} {had_turn}");
    }
}

#[test]
fn callers_without_calls_are_forgotten() {
    let mut queue = FairQueue::<()>::new(1_024);
    let busy: Vec<_> =
        (0..100).map(|number| queue.try_start(&caller(&format!("busy {number}")), false).unwrap()).collect();
    for number in 0..10_000 {
        let ticket = queue.try_start(&caller(&number.to_string()), false).unwrap();
        queue.finish(ticket);
    }
    assert!(queue.callers.queues.len() <= 201, "{}", queue.callers.queues.len());
    assert_eq!(queue.running, busy.len());
    for ticket in busy {
        queue.finish(ticket);
    }
    assert_eq!(queue.running, 0);
    queue.callers.forget_idle();
    assert!(queue.callers.by_name.is_empty());
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Call {
        caller: usize,
        exclusive: bool,
    },
    /// Ends the call with this index, modulo the number of calls: a running or a waiting one.
    End(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let call = (0_usize..5, prop::bool::weighted(0.1))
        .prop_map(|(caller, exclusive)| Step::Call { caller, exclusive });
    let step = prop_oneof![3 => call, 2 => any::<usize>().prop_map(Step::End)];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn every_call_runs_within_the_limit_and_none_is_forgotten(steps in steps()) {
        const SLOTS: usize = 8;
        let names: Vec<Arc<str>> = ["a", "b", "c", "d", "e"].map(Arc::from).to_vec();
        let mut queue = FairQueue::new(SLOTS);
        // Every call that has not ended: number, ticket, exclusive, running.
        let mut calls: Vec<(usize, Ticket, bool, bool)> = Vec::new();
        // At the end, everything that runs is finished until nothing is left.
        let drain = std::iter::repeat_n(Step::End(0), 400);
        for (number, step) in steps.into_iter().chain(drain).enumerate() {
            let admitted = match step {
                Step::Call { caller, exclusive } => {
                    let (ticket, admitted) = queue.enqueue(&names[caller], exclusive, number);
                    calls.push((number, ticket, exclusive, false));
                    admitted
                }
                Step::End(_) if calls.is_empty() => Vec::new(),
                Step::End(index) => {
                    let (_, ticket, ..) = calls.remove(index % calls.len());
                    queue.finish(ticket)
                }
            };
            for number in admitted {
                let call = calls.iter_mut().find(|call| call.0 == number).unwrap();
                prop_assert!(!std::mem::replace(&mut call.3, true), "admitted once");
            }
            let running = calls.iter().filter(|call| call.3).count();
            let exclusive = calls.iter().filter(|call| call.3 && call.2).count();
            prop_assert!(running <= SLOTS && (exclusive == 0 || running == 1));
            prop_assert!(calls.is_empty() || running > 0, "a slot is free and a call waits");
        }
        prop_assert!(calls.is_empty() && queue.running == 0 && queue.waiting.is_empty());
    }

    /// Whatever the number of calls of other callers, a caller without calls finds a free slot.
    #[test]
    fn a_new_caller_starts_at_once_while_six_others_call_without_limit(
        calls in prop::collection::vec(0_usize..6, 0..300),
    ) {
        let names: Vec<Arc<str>> = ["a", "b", "c", "d", "e", "f"].map(Arc::from).to_vec();
        let mut queue = FairQueue::new(64);
        for name in calls {
            queue.enqueue(&names[name], false, "hog");
        }
        let (_, admitted) = queue.enqueue(&caller("new"), false, "new");
        prop_assert_eq!(admitted, ["new"]);
    }
}
