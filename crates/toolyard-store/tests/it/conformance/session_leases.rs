//! Leases of sessions, as several processes take them.

use std::collections::BTreeMap;

use proptest::{prelude::*, test_runner::TestRunner};
use sqlx::{AnyConnection, Connection as _, Executor as _};
use tokio::time::{Instant, sleep, timeout};
use toolyard_core::{SessionLease, SessionLeases as _};

use super::*;

const LONG: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn held_by(lease: &SessionLease) -> (&str, i64) {
    (&lease.holder, lease.fence)
}

/// Moves the end of all leases into the past, as if this time had passed.
async fn let_time_pass(connection: &mut AnyConnection, time: Duration) {
    let sql = format!("UPDATE session_leases SET lease_until = lease_until - {}", time.as_millis());
    connection.execute(sqlx::query(sqlx::AssertSqlSafe(sql))).await.unwrap();
}

async fn connect(test_store: &TestStore) -> AnyConnection {
    AnyConnection::connect(&test_store.url()).await.unwrap()
}

pub(crate) async fn a_session_lease_is_taken_renewed_and_released(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let (one, other) = (test_store.open().await, test_store.open().await);
    assert_eq!(one.lease("s").await, Ok(None));
    let first = one.take_lease("s", "one", LONG).await.unwrap();
    assert_eq!((first.name.as_str(), held_by(&first)), ("s", ("one", 1)));
    assert!(first.remaining <= LONG && first.remaining > LONG / 2, "{first:?}");
    let refused = other.take_lease("s", "other", LONG * 9).await.unwrap();
    assert_eq!(held_by(&refused), ("one", 1));
    assert!(refused.remaining <= LONG, "a request of another process does not renew: {refused:?}");

    let renewed = one.take_lease("s", "one", LONG * 2).await.unwrap();
    assert_eq!(held_by(&renewed), ("one", 1), "the same lease");
    assert!(renewed.remaining > LONG);
    let shorter = one.take_lease("s", "one", Duration::ZERO).await.unwrap();
    assert!(shorter.remaining > LONG, "a renewal does not shorten: {shorter:?}");
    let endless = one.take_lease("endless", "one", Duration::MAX).await.unwrap();
    assert!(endless.remaining > DAY * 365);

    other.release_lease("s", 2).await.unwrap();
    assert_eq!(held_by(&other.lease("s").await.unwrap().unwrap()), ("one", 1), "another fence");
    one.release_lease("s", 1).await.unwrap();
    assert_eq!(other.lease("s").await, Ok(None));
    assert_eq!(held_by(&one.take_lease("s", "one", LONG).await.unwrap()), ("one", 2), "a new lease");
    one.release_lease("s", 2).await.unwrap();
    assert_eq!(held_by(&other.take_lease("s", "other", LONG).await.unwrap()), ("other", 3));
    one.release_lease("s", 2).await.unwrap();
    assert_eq!(held_by(&one.lease("s").await.unwrap().unwrap()), ("other", 3), "a late release");
    assert_eq!(held_by(&one.take_lease("t", "one", LONG).await.unwrap()), ("one", 1), "another name");
}

pub(crate) async fn session_leases_are_counted_by_subject_and_holder(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    for (name, holder) in [
        ("mcp/notes", "one"),
        ("mcp/files/ada", "one"),
        ("mcp/files/bob", "one"),
        ("mcp/files/eve", "two"),
        ("mcp/files-of-others", "two"),
        ("refresh/notes", "one"),
        ("mcp/released", "one"),
    ] {
        store.take_lease(name, holder, LONG).await.unwrap();
    }
    store.release_lease("mcp/released", 1).await.unwrap();
    store.take_lease("mcp/over", "one", Duration::ZERO).await.unwrap();
    sleep(Duration::from_millis(5)).await;
    let counts = store.count_leases("mcp/").await.unwrap();
    let mut counts: Vec<_> =
        counts.iter().map(|count| (count.subject.as_str(), count.holder.as_str(), count.leases)).collect();
    // The order of texts depends on the database.
    counts.sort_unstable();
    assert_eq!(
        counts,
        [("files", "one", 2), ("files", "two", 1), ("files-of-others", "two", 1), ("notes", "one", 1)]
    );
    assert_eq!(store.count_leases("m%/").await, Ok(Vec::new()), "no pattern");
}

pub(crate) async fn a_session_lease_that_is_over_is_taken_with_a_larger_fence(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let short = Duration::from_millis(50);
    store.take_lease("s", "one", short).await.unwrap();
    sleep(short * 2).await;
    assert_eq!(store.lease("s").await, Ok(None));
    assert_eq!(store.renew_leases("one", LONG).await, Ok(vec![]), "too late to renew");
    assert_eq!(
        held_by(&store.take_lease("s", "one", short).await.unwrap()),
        ("one", 2),
        "also its last holder"
    );
    sleep(short * 2).await;
    assert_eq!(held_by(&store.take_lease("s", "other", LONG).await.unwrap()), ("other", 3));
    assert_eq!(held_by(&store.take_lease("s", "one", LONG).await.unwrap()), ("other", 3));
    store.release_lease("s", 2).await.unwrap();
    assert_eq!(held_by(&store.lease("s").await.unwrap().unwrap()), ("other", 3));
}

/// Leases end by release and by expiry while many processes want them.
pub(crate) async fn each_fence_of_a_session_lease_has_one_holder(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let stores = [test_store.open().await, test_store.open().await, test_store.open().await];
    let ends_at = Instant::now() + Duration::from_millis(1_500);
    let takers = (0..12_usize).map(|index| {
        let (store, holder) = (stores[index % 3].clone(), format!("process {index}"));
        tokio::spawn(async move {
            let mut seen = HashSet::new();
            while Instant::now() < ends_at {
                let lease = store.take_lease("s", &holder, Duration::from_millis(15)).await.unwrap();
                if lease.holder == holder && fastrand::bool() {
                    store.release_lease("s", lease.fence).await.unwrap();
                }
                seen.insert((lease.fence, lease.holder));
                sleep(Duration::from_millis(fastrand::u64(0..20))).await;
            }
            seen
        })
    });
    let mut holders: BTreeMap<i64, HashSet<String>> = BTreeMap::new();
    for taker in takers.collect::<Vec<_>>() {
        for (fence, holder) in taker.await.unwrap() {
            holders.entry(fence).or_default().insert(holder);
        }
    }
    assert!(holders.values().all(|holders| holders.len() == 1), "{holders:?}");
    let fences: Vec<i64> = holders.keys().copied().collect();
    assert!(fences.len() > 3, "{fences:?}");
    assert_eq!(
        fences,
        (1..=fences[fences.len() - 1]).collect::<Vec<_>>(),
        "every fence was given to a holder"
    );
}

pub(crate) async fn all_session_leases_of_a_holder_are_renewed_together(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    for index in 0..200 {
        store.take_lease(&format!("s{index:03}"), "one", LONG).await.unwrap();
    }
    store.take_lease("other", "other", LONG).await.unwrap();
    store.take_lease("expired", "one", Duration::ZERO).await.unwrap();
    store.take_lease("released", "one", LONG).await.unwrap();
    store.release_lease("released", 1).await.unwrap();
    sleep(Duration::from_millis(10)).await;
    let renewed = store.renew_leases("one", LONG * 10).await.unwrap();
    assert_eq!(renewed.len(), 200);
    for (index, lease) in renewed.iter().enumerate() {
        assert_eq!((lease.name.as_str(), held_by(lease)), (format!("s{index:03}").as_str(), ("one", 1)));
        assert!(lease.remaining > LONG * 9 && lease.remaining <= LONG * 10, "{lease:?}");
    }
    assert!(store.lease("other").await.unwrap().unwrap().remaining <= LONG);
    let shorter = store.renew_leases("one", Duration::ZERO).await.unwrap();
    assert!(shorter.iter().all(|lease| lease.remaining > LONG * 9), "a renewal does not shorten");
    assert_eq!(store.renew_leases("nobody", LONG).await, Ok(vec![]));
}

/// A process that lost its connection within a transaction locks a row until the database notices.
#[tokio::test]
async fn a_locked_row_does_not_delay_the_renewal_of_others_on_postgres() {
    let test_store = TestStore::new(Engine::Postgres).await;
    let store = test_store.open().await;
    for name in ["a", "b", "c"] {
        store.take_lease(name, "one", LONG).await.unwrap();
    }
    let mut stalled = connect(&test_store).await;
    stalled.execute("BEGIN").await.unwrap();
    stalled.execute("SELECT name FROM session_leases WHERE name = 'b' FOR UPDATE").await.unwrap();
    let renewal = timeout(Duration::from_secs(3), store.renew_leases("one", LONG * 3)).await.unwrap();
    let is_renewed = renewal.unwrap().iter().map(|lease| lease.remaining > LONG * 2).collect::<Vec<_>>();
    assert_eq!(is_renewed, [true, false, true], "the locked lease is still held, with the time it has left");
    stalled.execute("ROLLBACK").await.unwrap();
    let renewed = store.renew_leases("one", LONG * 3).await.unwrap();
    assert!(renewed.iter().all(|lease| lease.remaining > LONG * 2));
}

pub(crate) async fn users_are_recorded_under_the_present_fence_only(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let error = store.record_session_user("s", 1, "alice").await.unwrap_err();
    assert!(!error.is_outcome_unknown());
    assert!(error.to_string().contains("the lease of `s` with the fencing number 1"), "{error}");

    store.take_lease("s", "one", LONG).await.unwrap();
    store.take_lease("other", "one", LONG).await.unwrap();
    for user in ["alice", "bob", "alice"] {
        store.record_session_user("s", 1, user).await.unwrap();
    }
    store.record_session_user("other", 1, "carol").await.unwrap();
    assert!(store.record_session_user("s", 2, "dave").await.is_err(), "a fence that does not exist yet");
    store.release_lease("s", 1).await.unwrap();
    assert!(store.record_session_user("s", 1, "dave").await.is_err(), "released");
    store.take_lease("s", "other", LONG).await.unwrap();
    store.record_session_user("s", 2, "bob").await.unwrap();
    assert!(store.record_session_user("s", 1, "dave").await.is_err(), "taken over");
    let users = [("alice".to_owned(), 1), ("bob".to_owned(), 2)];
    assert_eq!(store.session_users("s").await.unwrap(), users, "each with the latest session");
    let_time_pass(&mut connect(&test_store).await, LONG * 2).await;
    assert!(store.record_session_user("s", 2, "dave").await.is_err(), "expired");
    assert_eq!(store.session_users("s").await.unwrap(), users);
    assert_eq!(store.session_users("unknown").await.unwrap(), []);
}

/// The lease expires while its holder records a user: the next holder must see that user.
#[tokio::test]
async fn a_lease_is_not_taken_over_while_a_user_is_recorded_on_postgres() {
    let test_store = TestStore::new(Engine::Postgres).await;
    let (store, other) = (test_store.open().await, test_store.open().await);
    store.take_lease("s", "one", Duration::from_secs(1)).await.unwrap();
    // Delays the record after it has found the lease.
    let mut delay = connect(&test_store).await;
    delay.execute("BEGIN").await.unwrap();
    delay.execute("INSERT INTO session_users VALUES ('s', 'alice', 1)").await.unwrap();
    let record = tokio::spawn(async move { store.record_session_user("s", 1, "alice").await });
    sleep(Duration::from_millis(1_200)).await;
    assert_eq!(other.lease("s").await, Ok(None), "expired");
    let takeover = timeout(Duration::from_millis(300), other.take_lease("s", "other", LONG)).await;
    assert!(takeover.is_err(), "{takeover:?}");
    delay.execute("ROLLBACK").await.unwrap();
    record.await.unwrap().unwrap();
    assert_eq!(held_by(&other.take_lease("s", "other", LONG).await.unwrap()), ("other", 2));
    assert_eq!(other.session_users("s").await.unwrap(), [("alice".to_owned(), 1)]);
}

pub(crate) async fn ended_session_leases_are_purged_with_their_users(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    for name in ["expired", "released", "held"] {
        store.take_lease(name, "one", LONG).await.unwrap();
        store.record_session_user(name, 1, "alice").await.unwrap();
        store.record_session_user(name, 1, "bob").await.unwrap();
    }
    store.release_lease("released", 1).await.unwrap();
    let mut connection = connect(&test_store).await;
    let_time_pass(&mut connection, DAY * 29).await;
    assert_eq!(held_by(&store.take_lease("held", "one", DAY * 9).await.unwrap()), ("one", 2));
    assert_eq!(store.purge_leases(DAY * 30).await, Ok(0));
    store.vacuum(&Retention::default(), "test").await.unwrap();
    assert_eq!(store.session_users("expired").await.unwrap().len(), 2);
    assert_eq!(store.purge_leases(DAY * 28).await, Ok(2));
    for name in ["expired", "released"] {
        assert_eq!(store.session_users(name).await.unwrap(), []);
        assert_eq!(held_by(&store.take_lease(name, "one", LONG).await.unwrap()), ("one", 1));
    }
    assert_eq!(store.session_users("held").await.unwrap().len(), 2, "a lease that is held stays");

    let_time_pass(&mut connection, DAY * 31).await;
    store.vacuum(&Retention::default(), "test").await.unwrap();
    assert_eq!(held_by(&store.take_lease("expired", "one", LONG).await.unwrap()), ("one", 1));
    assert_eq!(
        held_by(&store.take_lease("held", "one", LONG).await.unwrap()),
        ("one", 3),
        "ended 22 days ago"
    );
}

pub(crate) async fn session_leases_survive_export_and_import(engine: Engine) {
    let (from, to) = (TestStore::new(engine).await, TestStore::new(engine).await);
    let (store, copy) = (from.open().await, to.open().await);
    store.take_lease("held", "one", LONG).await.unwrap();
    store.record_session_user("held", 1, "alice").await.unwrap();
    store.take_lease("released", "one", LONG).await.unwrap();
    store.release_lease("released", 1).await.unwrap();
    let mut export = Vec::new();
    store.export(&mut export).await.unwrap();
    copy.import(&mut Cursor::new(&export)).await.unwrap();
    assert_eq!(held_by(&copy.lease("held").await.unwrap().unwrap()), ("one", 1));
    assert_eq!(copy.session_users("held").await.unwrap(), [("alice".to_owned(), 1)]);
    assert_eq!(held_by(&copy.take_lease("released", "two", LONG).await.unwrap()), ("two", 2));
}

/// A deadlock or a lock that times out would fail an operation.
pub(crate) async fn operations_on_session_leases_never_block_each_other_for_good(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let stores = [test_store.open().await, test_store.open().await];
    let ends_at = Instant::now() + Duration::from_secs(2);
    let workers = (0..12_usize).map(|index| {
        // Several tasks of one process use the same holder.
        let (store, holder) = (stores[index % 2].clone(), format!("process {}", index % 2));
        tokio::spawn(async move {
            while Instant::now() < ends_at {
                let name = format!("s{}", fastrand::u8(0..6));
                match index / 2 {
                    0 => drop(store.renew_leases(&holder, Duration::from_millis(30)).await.unwrap()),
                    1 => drop(store.purge_leases(Duration::ZERO).await.unwrap()),
                    _ => {
                        let lease =
                            store.take_lease(&name, &holder, Duration::from_millis(20)).await.unwrap();
                        let recorded = store.record_session_user(&name, lease.fence, "alice").await;
                        if let Err(error) = recorded {
                            assert!(error.to_string().starts_with("lost the lease of"), "{error}");
                        }
                        if fastrand::bool() {
                            store.release_lease(&name, lease.fence).await.unwrap();
                        }
                    }
                }
                sleep(Duration::from_millis(fastrand::u64(0..5))).await;
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
}

/// While another process writes, requests time out: none of them takes a lease later that nobody knows of.
#[tokio::test]
async fn abandoned_requests_for_a_lease_of_a_locked_sqlite_store_take_nothing() {
    let test_store = TestStore::new(Engine::Sqlite).await;
    let store = test_store.open().await;
    store.take_lease("other", "one", LONG).await.unwrap();
    let mut writer = connect(&test_store).await;
    writer.execute("BEGIN IMMEDIATE").await.unwrap();
    // The writer waits for the lock with the first of them.
    for name in ["first", "second", "third"] {
        assert!(timeout(Duration::from_millis(100), store.take_lease(name, "one", LONG)).await.is_err());
    }
    writer.execute("COMMIT").await.unwrap();
    assert_eq!(held_by(&store.take_lease("other", "one", LONG).await.unwrap()), ("one", 1));
    for name in ["second", "third"] {
        assert_eq!(store.lease(name).await, Ok(None));
    }
}

/// An operation on one of a few leases; numbers are indices or thousands of seconds.
#[derive(Debug, Clone)]
enum Operation {
    Take { name: u8, holder: u8, duration: u64 },
    Renew { holder: u8, duration: u64 },
    Release { name: u8, fence_back: i64 },
    RecordUser { name: u8, fence_back: i64, user: u8 },
    Purge { older_than: u64 },
    Wait { time: u64 },
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let index = || 0..3_u8;
    let fence_back = || prop_oneof![4 => Just(0_i64), 1 => 1..3_i64, 1 => Just(-1)];
    prop_oneof![
        6 => (index(), index(), 0..6_u64).prop_map(|(name, holder, duration)| Operation::Take { name, holder, duration }),
        2 => (index(), 0..6_u64).prop_map(|(holder, duration)| Operation::Renew { holder, duration }),
        2 => (index(), fence_back()).prop_map(|(name, fence_back)| Operation::Release { name, fence_back }),
        4 => (index(), fence_back(), index()).prop_map(|(name, fence_back, user)| Operation::RecordUser { name, fence_back, user }),
        1 => (0..8_u64).prop_map(|older_than| Operation::Purge { older_than }),
        3 => (1..5_u64).prop_map(|time| Operation::Wait { time }),
    ]
}

/// What the store should hold. Times are seconds.
#[derive(Debug, Default)]
struct Model {
    now: i64,
    leases: BTreeMap<String, ModelLease>,
}

#[derive(Debug, Default)]
struct ModelLease {
    holder: Option<String>,
    fence: i64,
    until: i64,
    users: BTreeMap<String, i64>,
}

impl ModelLease {
    fn is_held(&self, now: i64) -> bool {
        self.holder.is_some() && self.until >= now
    }

    fn held(&self) -> (String, i64) {
        (self.holder.clone().unwrap_or_default(), self.fence)
    }
}

/// Waits last whole thousands of seconds and leases half a thousand more, so that the time that a test takes does not matter.
fn lease_seconds(thousands: u64) -> u64 {
    thousands * 1_000 + 500
}

/// Applies an operation to the store and to the model, and compares their answers.
async fn apply(store: &Store, connection: &mut AnyConnection, model: &mut Model, operation: &Operation) {
    let now = model.now;
    let fence_of = |model: &Model, name: &str| model.leases.get(name).map_or(0, |lease| lease.fence);
    match operation {
        Operation::Take { name, holder, duration } => {
            let (name, holder) = (format!("s{name}"), format!("p{holder}"));
            let seconds = lease_seconds(*duration);
            let taken = store.take_lease(&name, &holder, Duration::from_secs(seconds)).await.unwrap();
            let lease = model.leases.entry(name).or_default();
            let until = now + i64::try_from(seconds).unwrap();
            if !lease.is_held(now) {
                (lease.holder, lease.fence, lease.until) = (Some(holder), lease.fence + 1, until);
            } else if lease.holder.as_ref() == Some(&holder) {
                lease.until = lease.until.max(until);
            }
            assert_eq!((taken.holder, taken.fence), lease.held());
        }
        Operation::Renew { holder, duration } => {
            let (holder, seconds) = (format!("p{holder}"), lease_seconds(*duration));
            let renewed = store.renew_leases(&holder, Duration::from_secs(seconds)).await.unwrap();
            let mut expected = Vec::new();
            for (name, lease) in &mut model.leases {
                if lease.is_held(now) && lease.holder.as_ref() == Some(&holder) {
                    lease.until = lease.until.max(now + i64::try_from(seconds).unwrap());
                    expected.push((name.clone(), lease.fence));
                }
            }
            assert_eq!(
                renewed.into_iter().map(|lease| (lease.name, lease.fence)).collect::<Vec<_>>(),
                expected
            );
        }
        Operation::Release { name, fence_back } => {
            let name = format!("s{name}");
            let fence = fence_of(model, &name) - fence_back;
            store.release_lease(&name, fence).await.unwrap();
            if let Some(lease) = model.leases.get_mut(&name).filter(|lease| lease.fence == fence) {
                lease.until = if lease.holder.is_some() { lease.until.min(now) } else { lease.until };
                lease.holder = None;
            }
        }
        Operation::RecordUser { name, fence_back, user } => {
            let (name, user) = (format!("s{name}"), format!("u{user}"));
            let fence = fence_of(model, &name) - fence_back;
            let recorded = store.record_session_user(&name, fence, &user).await;
            let lease =
                model.leases.get_mut(&name).filter(|lease| lease.is_held(now) && lease.fence == fence);
            assert_eq!(recorded.is_ok(), lease.is_some());
            lease.map(|lease| lease.users.insert(user, fence));
        }
        Operation::Purge { older_than } => {
            let seconds = older_than * 1_000 + 250;
            let purged = store.purge_leases(Duration::from_secs(seconds)).await.unwrap();
            let before = model.leases.len();
            model.leases.retain(|_, lease| lease.until >= now - i64::try_from(seconds).unwrap());
            assert_eq!(purged, u64::try_from(before - model.leases.len()).unwrap());
        }
        Operation::Wait { time } => {
            let_time_pass(connection, Duration::from_secs(time * 1_000)).await;
            model.now += i64::try_from(time * 1_000).unwrap();
        }
    }
}

/// Compares what can be read.
async fn compare(store: &Store, model: &Model) {
    for name in ["s0", "s1", "s2"] {
        let expected = model.leases.get(name);
        let held = store.lease(name).await.unwrap();
        let expected_lease = expected.filter(|lease| lease.is_held(model.now));
        assert_eq!(
            held.map(|lease| (lease.holder, lease.fence)),
            expected_lease.map(ModelLease::held),
            "{name}"
        );
        let users: Vec<(String, i64)> =
            expected.map(|lease| lease.users.clone().into_iter().collect()).unwrap_or_default();
        assert_eq!(store.session_users(name).await.unwrap(), users, "{name}");
    }
}

pub(crate) async fn session_leases_behave_like_a_model(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let mut connection = connect(&test_store).await;
    let runtime = tokio::runtime::Handle::current();
    let outcome = tokio::task::block_in_place(|| {
        let mut runner =
            TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) });
        let connection = std::cell::RefCell::new(&mut connection);
        runner.run(&proptest::collection::vec(any_operation(), 1..50), |operations| {
            let connection = &mut **connection.borrow_mut();
            runtime.block_on(async {
                connection.execute("DELETE FROM session_users").await.unwrap();
                connection.execute("DELETE FROM session_leases").await.unwrap();
                let mut model = Model::default();
                for operation in &operations {
                    apply(&store, connection, &mut model, operation).await;
                    compare(&store, &model).await;
                }
            });
            Ok(())
        })
    });
    outcome.unwrap();
}
