//! Limits are never exceeded, no instance with calls is stopped for another one, and the least recently used one goes first.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const LIMITS: IsolationLimits =
    IsolationLimits { max_instances: 4, max_instances_per_caller: 2, idle_timeout: Duration::from_secs(60) };

fn pool() -> InstancePool {
    InstancePool { limits: LIMITS, ..InstancePool::default() }
}

fn key(caller: u8, server: u64) -> InstanceKey {
    InstanceKey { server, owner: ContentHash::of([caller]), session: None }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// The id of the instance that serves a call, with the one that it replaces.
fn admitted(admission: Admission) -> (InstanceId, Option<Replaced>) {
    match admission {
        Admission::Existing(id) => (id, None),
        Admission::New { id, replaced } => (id, replaced),
        Admission::Refused(limit) => panic!("{limit}"),
    }
}

#[test]
fn calls_of_one_key_share_an_instance_and_those_of_others_do_not() {
    let (mut pool, now) = (pool(), Instant::now());
    let (first, _) = admitted(pool.admit(&key(1, 1), now));
    assert_eq!(pool.admit(&key(1, 1), now), Admission::Existing(first));
    for other in [key(2, 1), key(1, 2), InstanceKey { session: Some(1), ..key(3, 1) }] {
        assert_ne!(admitted(pool.admit(&other, now)).0, first, "{other:?}");
    }
    assert_eq!((pool.active_count(1), pool.active_count(2)), (3, 1));
}

#[test]
fn the_least_recently_used_idle_instance_makes_room() {
    let (mut pool, start) = (pool(), Instant::now());
    let ids: Vec<InstanceId> = (1..=4)
        .map(|caller| {
            let (id, _) = admitted(pool.admit(&key(caller, 1), start));
            // The last one to be admitted ends its call first.
            pool.release(id, start + seconds(10 - u64::from(caller)));
            id
        })
        .collect();
    let busy = admitted(pool.admit(&key(4, 1), start + seconds(20))).0;
    assert_eq!(Some(&busy), ids.get(3));
    let (_, replaced) = admitted(pool.admit(&key(5, 1), start + seconds(20)));
    assert_eq!(replaced, Some(Replaced { id: ids[2], must_stop: true }), "caller 4 has a call");
}

#[test]
fn a_call_is_refused_while_all_instances_have_calls() {
    let (mut pool, now) = (pool(), Instant::now());
    let (own, _) = admitted(pool.admit(&key(1, 1), now));
    admitted(pool.admit(&key(1, 2), now));
    assert_eq!(pool.admit(&key(1, 3), now), Admission::Refused(InstanceLimit::Caller(2)));
    for caller in 2..=3 {
        admitted(pool.admit(&key(caller, 1), now));
    }
    assert_eq!(pool.admit(&key(4, 1), now), Admission::Refused(InstanceLimit::Total(4)));
    pool.release(own, now);
    assert_eq!(admitted(pool.admit(&key(4, 1), now)).1, Some(Replaced { id: own, must_stop: true }));
}

#[test]
fn the_place_of_a_stopping_instance_is_taken_over_once() {
    let (mut pool, now) = (pool(), Instant::now());
    let (first, _) = admitted(pool.admit(&key(1, 1), now));
    pool.release(first, now);
    assert!(pool.stop_idle(now + seconds(59)).is_empty());
    assert_eq!(pool.stop_idle(now + seconds(60)), [first]);
    assert_eq!(pool.next_idle_check(now), None, "nothing is active");
    let (second, replaced) = admitted(pool.admit(&key(1, 1), now));
    assert_eq!(
        replaced,
        Some(Replaced { id: first, must_stop: false }),
        "it starts when the first has ended"
    );
    assert_eq!(pool.admit(&key(1, 1), now), Admission::Existing(second));
    assert_eq!(admitted(pool.admit(&key(1, 2), now)).1, None);
    pool.finish_stop(first);
    assert_eq!(pool.ids_of(1), [second]);
}

#[test]
fn a_removed_server_loses_its_instances_even_with_calls() {
    let (mut pool, now) = (pool(), Instant::now());
    let (first, _) = admitted(pool.admit(&key(1, 1), now));
    admitted(pool.admit(&key(1, 2), now));
    assert!(pool.has_calls(1));
    assert_eq!(pool.stop_server(1), [first]);
    pool.release(first, now);
    assert!(!pool.has_calls(1) && pool.has_calls(2));
    assert!(pool.stop_server(1).is_empty(), "it is stopping already");
}

#[derive(Debug, Clone)]
enum Event {
    Admit(u8, u64),
    Release(usize),
    StopIdle,
    FinishStop(usize),
    Wait(u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0..6_u8, 0..3_u64).prop_map(|(caller, server)| Event::Admit(caller, server)),
        3 => any::<usize>().prop_map(Event::Release),
        1 => Just(Event::StopIdle),
        2 => any::<usize>().prop_map(Event::FinishStop),
        2 => (0..40_u64).prop_map(Event::Wait),
    ];
    proptest::collection::vec(event, 0..120)
}

/// What the processes of instances do, as the decisions require.
#[derive(Debug, Default)]
struct Model {
    /// The calls in flight, by instance.
    calls: Vec<InstanceId>,
    /// Instances that are being stopped.
    stopping: BTreeSet<InstanceId>,
    /// The instance whose end each new one waits for.
    waits_for: BTreeMap<InstanceId, InstanceId>,
    /// Owner and last use of each instance that has not ended.
    alive: BTreeMap<InstanceId, (u8, Instant)>,
}

impl Model {
    fn is_idle(&self, id: InstanceId) -> bool {
        !self.calls.contains(&id) && !self.stopping.contains(&id)
    }

    fn is_waiting(&self, id: InstanceId) -> bool {
        self.waits_for.get(&id).is_some_and(|previous| self.alive.contains_key(previous))
    }

    /// Stopping instances that can end: one that still waits for another ends after that.
    fn ending(&self) -> impl Iterator<Item = InstanceId> {
        self.stopping.iter().copied().filter(|id| !self.is_waiting(*id))
    }

    /// Instances that have a process: all that wait for no other one.
    fn processes(&self, owner: Option<u8>) -> usize {
        let has_process = |id: &InstanceId| !self.is_waiting(*id);
        let alive = self.alive.iter().filter(|(_, (caller, _))| owner.is_none_or(|owner| owner == *caller));
        alive.filter(|(id, _)| has_process(id)).count()
    }

    /// The idle instance of these callers that was not used for the longest time.
    fn least_recently_used(&self, owner: Option<u8>) -> Option<InstanceId> {
        let idle = self
            .alive
            .iter()
            .filter(|(id, (caller, _))| self.is_idle(**id) && owner.is_none_or(|owner| owner == *caller));
        idle.map(|(id, (_, last_used))| (*last_used, *id)).min().map(|(_, id)| id)
    }

    fn check_admission(&self, admission: Admission, caller: u8) {
        match admission {
            Admission::New { replaced: Some(Replaced { id, must_stop: true }), .. } => {
                assert!(self.is_idle(id), "{id:?} has calls or is stopping");
                let expected = [self.least_recently_used(Some(caller)), self.least_recently_used(None)];
                assert!(expected.contains(&Some(id)), "{id:?} instead of {expected:?}");
            }
            Admission::New { replaced: Some(Replaced { id, must_stop: false }), .. } => {
                assert!(self.stopping.contains(&id));
                assert!(!self.waits_for.values().any(|taken| *taken == id), "the place is taken");
            }
            Admission::Refused(InstanceLimit::Caller(_)) => {
                assert_eq!(self.least_recently_used(Some(caller)), None);
            }
            Admission::Refused(InstanceLimit::Total(_)) => assert_eq!(self.least_recently_used(None), None),
            Admission::New { replaced: None, .. } | Admission::Existing(_) => {}
        }
    }
}

proptest! {
    #[test]
    fn limits_hold_and_calls_are_never_interrupted(events in events()) {
        let (mut pool, mut model, mut now) = (pool(), Model::default(), Instant::now());
        for event in events {
            match event {
                Event::Admit(caller, server) => {
                    let admission = pool.admit(&key(caller, server), now);
                    model.check_admission(admission, caller);
                    if let Admission::New { id, replaced: Some(replaced) } = admission {
                        model.stopping.insert(replaced.id);
                        model.waits_for.insert(id, replaced.id);
                    }
                    if let Admission::New { id, .. } | Admission::Existing(id) = admission {
                        prop_assert!(!model.stopping.contains(&id));
                        model.alive.insert(id, (caller, now));
                        model.calls.push(id);
                    }
                }
                Event::Release(at) if !model.calls.is_empty() => {
                    let id = model.calls.swap_remove(at % model.calls.len());
                    pool.release(id, now);
                    model.alive.get_mut(&id).unwrap().1 = now;
                }
                Event::StopIdle => {
                    for id in pool.stop_idle(now) {
                        prop_assert!(model.is_idle(id));
                        prop_assert!(now - model.alive[&id].1 >= LIMITS.idle_timeout);
                        model.stopping.insert(id);
                    }
                    prop_assert!(pool.next_idle_check(now).is_none_or(|at| at > now));
                }
                Event::FinishStop(at) if model.ending().count() > 0 => {
                    let id = model.ending().nth(at % model.ending().count()).unwrap();
                    pool.finish_stop(id);
                    model.stopping.remove(&id);
                    model.alive.remove(&id);
                }
                Event::Wait(count) => now += seconds(count),
                Event::Release(_) | Event::FinishStop(_) => {}
            }
            prop_assert!(model.processes(None) <= LIMITS.max_instances);
            for caller in 0..6 {
                prop_assert!(model.processes(Some(caller)) <= LIMITS.max_instances_per_caller);
            }
        }
    }
}
