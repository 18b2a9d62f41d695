//! Limits are never exceeded, no instance with calls is stopped for another one, the least recently used one goes first, and
//! waiting calls are served in their order.

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

/// The instance of a call for which there is a place.
fn admitted(admission: Admission) -> NewInstance {
    match admission {
        Admission::Existing(id) => NewInstance { id, must_stop: None, starts_after: Vec::new() },
        Admission::New(new) => new,
        Admission::Refused(limit) | Admission::Displaced(limit) => panic!("{limit}"),
    }
}

fn admit(pool: &mut InstancePool, key: &InstanceKey, now: Instant) -> InstanceId {
    admitted(pool.admit(key, now)).id
}

#[test]
fn calls_of_one_key_share_an_instance_and_those_of_others_do_not() {
    let (mut pool, now) = (pool(), Instant::now());
    let first = admit(&mut pool, &key(1, 1), now);
    assert_eq!(pool.admit(&key(1, 1), now), Admission::Existing(first));
    for other in [key(2, 1), key(1, 2), InstanceKey { session: Some(1), ..key(3, 1) }] {
        assert_ne!(admit(&mut pool, &other, now), first, "{other:?}");
    }
    assert_eq!((pool.active_count(1), pool.active_count(2)), (3, 1));
}

#[test]
fn the_least_recently_used_idle_instance_makes_room() {
    let (mut pool, start) = (pool(), Instant::now());
    let ids: Vec<InstanceId> = (1..=4)
        .map(|caller| {
            let id = admit(&mut pool, &key(caller, 1), start);
            // The last one to be admitted ends its call first.
            pool.release(id, start + seconds(10 - u64::from(caller)));
            id
        })
        .collect();
    let busy = admit(&mut pool, &key(4, 1), start + seconds(20));
    assert_eq!(Some(&busy), ids.get(3));
    let new = admitted(pool.admit(&key(5, 1), start + seconds(20)));
    assert_eq!((new.must_stop, new.starts_after), (Some(ids[2]), vec![ids[2]]), "caller 4 has a call");
}

#[test]
fn who_loses_an_instance_to_another_caller_is_told_once() {
    let (mut pool, now) = (pool(), Instant::now());
    for caller in 1..=4 {
        let id = admit(&mut pool, &key(caller, 1), now + seconds(caller.into()));
        pool.release(id, now + seconds(caller.into()));
    }
    let new = admitted(pool.admit(&key(5, 1), now + seconds(9)));
    assert_eq!(pool.admit(&key(1, 1), now + seconds(9)), Admission::Displaced(InstanceLimit::Total(4)));
    pool.finish_stop(new.must_stop.unwrap());
    // The second time, the caller meets a new instance, in the place of the next one.
    assert!(admitted(pool.admit(&key(1, 1), now + seconds(10))).must_stop.is_some());
    assert_eq!(pool.admit(&key(2, 1), now + seconds(10)), Admission::Displaced(InstanceLimit::Total(4)));
    assert_eq!(pool.counts(), (4, 2));
    for id in pool.stop_idle(now + seconds(100)) {
        pool.finish_stop(id);
    }
    admit(&mut pool, &key(3, 1), now + seconds(100));
}

#[test]
fn a_call_is_refused_while_all_instances_have_calls() {
    let (mut pool, now) = (pool(), Instant::now());
    let own = admit(&mut pool, &key(1, 1), now);
    admitted(pool.admit(&key(1, 2), now));
    assert_eq!(pool.admit(&key(1, 3), now), Admission::Refused(InstanceLimit::Caller(2)));
    for caller in 2..=3 {
        admitted(pool.admit(&key(caller, 1), now));
    }
    assert_eq!(pool.admit(&key(4, 1), now), Admission::Refused(InstanceLimit::Total(4)));
    pool.release(own, now);
    assert_eq!(admitted(pool.admit(&key(4, 1), now)).must_stop, Some(own));
}

#[test]
fn places_go_to_waiting_calls_in_their_order() {
    let (mut pool, now) = (pool(), Instant::now());
    let busy: Vec<InstanceId> = (1..=4).map(|caller| admit(&mut pool, &key(caller, 1), now)).collect();
    for caller in 5..=7 {
        assert_eq!(pool.admit(&key(caller, 1), now), Admission::Refused(InstanceLimit::Total(4)));
    }
    let (first, given_up, third) = (pool.wait(&key(5, 1)), pool.wait(&key(6, 1)), pool.wait(&key(7, 1)));
    assert!(pool.admit_waiting(now).is_empty());
    pool.stop_waiting(given_up);
    pool.release(busy[1], now);
    let served = pool.admit_waiting(now);
    assert_eq!(served.len(), 1);
    assert_eq!((served[0].0, admitted(served[0].1.clone()).must_stop), (first, Some(busy[1])));
    assert_eq!(pool.admit(&key(2, 1), now), Admission::Displaced(InstanceLimit::Total(4)), "it is told");
    assert_eq!(
        pool.admit(&key(2, 1), now),
        Admission::Refused(InstanceLimit::Total(4)),
        "a caller that goes on calling waits behind the others"
    );
    let again = pool.wait(&key(2, 1));
    pool.release(busy[0], now);
    pool.release(busy[2], now);
    let served: Vec<WaiterId> = pool.admit_waiting(now).into_iter().map(|(id, _)| id).collect();
    assert_eq!(served, [third, again]);
    assert!(!pool.has_waiting());
}

#[test]
fn a_caller_at_its_own_limit_does_not_hold_up_others() {
    let (mut pool, now) = (pool(), Instant::now());
    let own = admit(&mut pool, &key(1, 1), now);
    admitted(pool.admit(&key(1, 2), now));
    assert_eq!(pool.admit(&key(1, 3), now), Admission::Refused(InstanceLimit::Caller(2)));
    let waiter = pool.wait(&key(1, 3));
    assert!(pool.admit_waiting(now).is_empty());
    admitted(pool.admit(&key(2, 1), now));
    pool.release(own, now);
    assert_eq!(pool.admit_waiting(now).first().map(|(id, _)| *id), Some(waiter));
}

#[test]
fn an_instance_starts_after_all_earlier_ones_of_its_key() {
    let (mut pool, now) = (pool(), Instant::now());
    let ids: Vec<InstanceId> = (1..=4).map(|caller| admit(&mut pool, &key(caller, 1), now)).collect();
    for id in &ids {
        pool.release(*id, now);
    }
    let other = admitted(pool.admit(&key(5, 1), now));
    assert_eq!(other.must_stop, Some(ids[0]));
    assert_eq!(pool.admit(&key(1, 1), now), Admission::Displaced(InstanceLimit::Total(4)));
    let again = admitted(pool.admit(&key(1, 1), now));
    assert_eq!(again.starts_after, [ids[0], ids[1]], "the one whose place it takes, and its own earlier one");
}

#[test]
fn the_place_of_a_stopping_instance_is_taken_over_once() {
    let (mut pool, now) = (pool(), Instant::now());
    let first = admit(&mut pool, &key(1, 1), now);
    pool.release(first, now);
    assert!(pool.stop_idle(now + seconds(59)).is_empty());
    assert_eq!(pool.stop_idle(now + seconds(60)), [first]);
    assert_eq!(pool.next_idle_check(now), None, "nothing is active");
    let second = admitted(pool.admit(&key(1, 1), now));
    assert_eq!(
        (second.must_stop, second.starts_after),
        (None, vec![first]),
        "it starts when the first has ended"
    );
    let second = second.id;
    assert_eq!(pool.admit(&key(1, 1), now), Admission::Existing(second));
    assert!(admitted(pool.admit(&key(1, 2), now)).starts_after.is_empty());
    pool.finish_stop(first);
    assert_eq!(pool.ids_of(1), [second]);
}

#[test]
fn a_removed_server_loses_its_instances_even_with_calls() {
    let (mut pool, now) = (pool(), Instant::now());
    let first = admit(&mut pool, &key(1, 1), now);
    admitted(pool.admit(&key(1, 2), now));
    assert!(pool.has_calls(1));
    assert!(pool.stop_unused(1).is_empty(), "it has a call");
    pool.wait(&key(3, 1));
    assert_eq!(pool.stop_server(1), [first]);
    assert!(!pool.has_waiting());
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
    StopWaiting(usize),
    Wait(u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0..6_u8, 0..3_u64).prop_map(|(caller, server)| Event::Admit(caller, server)),
        3 => any::<usize>().prop_map(Event::Release),
        1 => Just(Event::StopIdle),
        2 => any::<usize>().prop_map(Event::FinishStop),
        1 => any::<usize>().prop_map(Event::StopWaiting),
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
    /// The instances whose ends each new one waits for.
    starts_after: BTreeMap<InstanceId, Vec<InstanceId>>,
    /// Caller, server and last use of each instance that has not ended.
    alive: BTreeMap<InstanceId, (u8, u64, Instant)>,
    /// Caller and server of each waiting call.
    waiting: BTreeMap<WaiterId, (u8, u64)>,
}

impl Model {
    fn is_idle(&self, id: InstanceId) -> bool {
        !self.calls.contains(&id) && !self.stopping.contains(&id)
    }

    fn is_waiting(&self, id: InstanceId) -> bool {
        self.starts_after.get(&id).is_some_and(|earlier| earlier.iter().any(|id| self.alive.contains_key(id)))
    }

    /// Stopping instances that can end: one that still waits for another ends after that.
    fn ending(&self) -> impl Iterator<Item = InstanceId> {
        self.stopping.iter().copied().filter(|id| !self.is_waiting(*id))
    }

    /// Caller and server of the instances that have a process: all that wait for no other one.
    fn processes(&self) -> impl Iterator<Item = (u8, u64)> {
        let alive = self.alive.iter().filter(|(id, _)| !self.is_waiting(**id));
        alive.map(|(_, (caller, server, _))| (*caller, *server))
    }

    /// The idle instance of these callers that was not used for the longest time.
    fn least_recently_used(&self, owner: Option<u8>) -> Option<InstanceId> {
        let idle = self
            .alive
            .iter()
            .filter(|(id, (caller, ..))| self.is_idle(**id) && owner.is_none_or(|owner| owner == *caller));
        idle.map(|(id, (.., last_used))| (*last_used, *id)).min().map(|(_, id)| id)
    }

    /// Checks an admission and carries it out.
    fn apply(&mut self, admission: &Admission, caller: u8, server: u64, now: Instant) {
        let id = match admission {
            Admission::Refused(InstanceLimit::Caller(_)) => {
                return assert_eq!(self.least_recently_used(Some(caller)), None);
            }
            Admission::Refused(InstanceLimit::Total(_)) => {
                return assert_eq!(self.least_recently_used(None), None);
            }
            Admission::Displaced(_) => {
                return assert!(!self.alive.iter().any(|(id, (owner, known, _))| {
                    (*owner, *known) == (caller, server) && !self.stopping.contains(id)
                }));
            }
            Admission::Existing(id) => *id,
            Admission::New(new) => {
                if let Some(stopped) = new.must_stop {
                    assert!(self.is_idle(stopped), "{stopped:?} has calls or is stopping");
                    let expected = [self.least_recently_used(Some(caller)), self.least_recently_used(None)];
                    assert!(expected.contains(&Some(stopped)), "{stopped:?} instead of {expected:?}");
                    self.stopping.insert(stopped);
                }
                assert!(new.starts_after.iter().all(|id| self.stopping.contains(id)));
                self.starts_after.insert(new.id, new.starts_after.clone());
                new.id
            }
        };
        assert!(!self.stopping.contains(&id));
        self.alive.insert(id, (caller, server, now));
        self.calls.push(id);
    }

    fn serve_waiting(&mut self, pool: &mut InstancePool, now: Instant) {
        for (waiter, admission) in pool.admit_waiting(now) {
            let (caller, server) = self.waiting.remove(&waiter).unwrap();
            self.apply(&admission, caller, server, now);
        }
        assert!(pool.admit_waiting(now).is_empty(), "all for which there is a place are served at once");
    }

    fn check_limits(&self) {
        assert!(self.processes().count() <= LIMITS.max_instances);
        for caller in 0..6 {
            let own: Vec<u64> =
                self.processes().filter(|(owner, _)| *owner == caller).map(|(_, server)| server).collect();
            assert!(own.len() <= LIMITS.max_instances_per_caller);
            let distinct: BTreeSet<&u64> = own.iter().collect();
            assert_eq!(distinct.len(), own.len(), "two processes of one server and caller");
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
                    model.apply(&admission, caller, server, now);
                    if matches!(admission, Admission::Refused(_)) {
                        model.waiting.insert(pool.wait(&key(caller, server)), (caller, server));
                    }
                }
                Event::Release(at) if !model.calls.is_empty() => {
                    let id = model.calls.swap_remove(at % model.calls.len());
                    pool.release(id, now);
                    model.alive.get_mut(&id).unwrap().2 = now;
                }
                Event::StopIdle => {
                    for id in pool.stop_idle(now) {
                        prop_assert!(model.is_idle(id));
                        prop_assert!(now - model.alive[&id].2 >= LIMITS.idle_timeout);
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
                Event::StopWaiting(at) if !model.waiting.is_empty() => {
                    let waiter = *model.waiting.keys().nth(at % model.waiting.len()).unwrap();
                    pool.stop_waiting(waiter);
                    model.waiting.remove(&waiter);
                }
                Event::Wait(count) => now += seconds(count),
                Event::Release(_) | Event::FinishStop(_) | Event::StopWaiting(_) => {}
            }
            model.serve_waiting(&mut pool, now);
            model.check_limits();
        }
    }
}
