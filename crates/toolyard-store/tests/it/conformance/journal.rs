//! Steps, leases and unknown outcomes.

use super::*;

pub(crate) async fn a_finished_step_is_reused(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let lease = new_run(&store, "one").await;
    assert_eq!(store.begin(&lease, &write_intent("a")).await, Ok(StepStart::Call));
    store.finish(&lease, "a", &done_with("written")).await.unwrap();
    let StepStart::Reuse(step) = store.begin(&lease, &write_intent("a")).await.unwrap() else {
        unreachable!()
    };
    assert_eq!(step.outcome.unwrap().get(), r#"{"text":"written"}"#);
    assert_eq!((step.state, step.redacted), (StepState::Done, false));
    let again = store.finish(&lease, "a", &done_with("twice")).await;
    assert!(again.is_err(), "a finished step cannot be finished again");

    store.release(&lease, RunState::Done).await.unwrap();
    assert_eq!(test_store.open().await.run(&lease.run).await.unwrap().state, RunState::Done);
    assert_eq!(store.runs(10).await.unwrap().len(), 1);
}

pub(crate) async fn an_interrupted_write_becomes_unknown(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let first = new_run(&store, "one").await;
    store.begin(&first, &write_intent("w")).await.unwrap();
    assert!(store.unknown_steps().await.unwrap().is_empty(), "its owner may still be running");
    expire_lease(&store, &first).await;
    assert_eq!(store.unknown_steps().await.unwrap().len(), 1, "its owner is gone");

    let second = store.claim(&first.run, "two", LEASE_DURATION).await.unwrap();
    for _ in 0..3 {
        let start = store.begin(&second, &write_intent("w")).await.unwrap();
        assert!(matches!(start, StepStart::Unknown(_)), "{start:?}");
    }
    let unknown = store.unknown_steps().await.unwrap();
    assert_eq!((unknown.len(), unknown[0].state), (1, StepState::Unknown));
    assert_eq!(store.unknown_steps_of(&first.run).await.unwrap(), unknown);
    let other = new_run(&store, "one").await;
    assert!(store.unknown_steps_of(&other.run).await.unwrap().is_empty(), "those of another run");
    // The tool claims to be repeatable now, but did not when it was called.
    assert!(matches!(store.begin(&second, &repeatable_intent("w")).await.unwrap(), StepStart::Unknown(_)));
}

pub(crate) async fn an_interrupted_read_is_repeated(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let first = new_run(&store, "one").await;
    store.begin(&first, &repeatable_intent("r")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(
        store.steps(&first.run).await.unwrap()[0].state,
        StepState::Started,
        "a running step is visible"
    );
    expire_lease(&store, &first).await;
    let second = store.claim(&first.run, "two", LEASE_DURATION).await.unwrap();
    assert_eq!(store.begin(&second, &repeatable_intent("r")).await, Ok(StepStart::Call));
    store.finish(&second, "r", &done_with("read")).await.unwrap();
    assert_eq!(store.steps(&first.run).await.unwrap()[0].fence, second.fence);
    assert!(store.unknown_steps().await.unwrap().is_empty());
}

pub(crate) async fn a_step_of_an_earlier_owner_is_unknown_and_resolvable_at_once(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let first = new_run(&store, "one").await;
    for step in ["w", "x"] {
        store.begin(&first, &write_intent(step)).await.unwrap();
    }
    expire_lease(&store, &first).await;
    // The new owner has not come to the steps yet.
    let second = store.claim(&first.run, "two", LEASE_DURATION).await.unwrap();
    store.begin(&second, &write_intent("own")).await.unwrap();
    let unknown: Vec<String> =
        store.unknown_steps().await.unwrap().into_iter().map(|step| step.step).collect();
    assert_eq!(unknown, ["w", "x"]);
    store.resolve(&first.run, "w", Resolution::Done, "ada").await.unwrap();
    store.resolve(&first.run, "x", Resolution::NotDone, "ada").await.unwrap();
    let own = store.resolve(&first.run, "own", Resolution::NotDone, "ada").await;
    assert!(matches!(own, Err(JournalError::NotResolvable { .. })), "its owner drives it: {own:?}");
    assert!(matches!(store.begin(&second, &write_intent("w")).await.unwrap(), StepStart::Reuse(_)));
    assert_eq!(store.begin(&second, &write_intent("x")).await, Ok(StepStart::Call));
}

pub(crate) async fn runs_that_no_process_drives_are_listed(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let unleased = async |kind: &str, since, limit| {
        let runs = store.unleased_runs(kind, since, limit).await.unwrap();
        runs.into_iter().map(|run| run.id).collect::<Vec<_>>()
    };
    let [driven, expired, released, done] = [
        new_run(&store, "a").await,
        new_run(&store, "b").await,
        new_run(&store, "c").await,
        new_run(&store, "d").await,
    ];
    expire_lease(&store, &expired).await;
    store.release(&released, RunState::Open).await.unwrap();
    store.release(&done, RunState::Done).await.unwrap();
    assert_eq!(unleased("test", 0, 10).await, [released.run.clone(), expired.run.clone()], "newest first");
    assert_eq!(unleased("test", 0, 1).await, [released.run]);
    assert!(unleased("other", 0, 10).await.is_empty());
    let created_at = store.run(&driven.run).await.unwrap().created_at;
    assert!(unleased("test", created_at + 60_000, 10).await.is_empty());
}

pub(crate) async fn a_run_whose_creator_stopped_waiting_is_not_created(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let mut other = sqlx::AnyConnection::connect(&test_store.url()).await.unwrap();
    let lock = match engine {
        Engine::Sqlite => "BEGIN IMMEDIATE",
        Engine::Postgres => "BEGIN; LOCK TABLE runs IN ACCESS EXCLUSIVE MODE",
    };
    other.execute(sqlx::raw_sql(lock)).await.unwrap();
    // Writers that wait for the lock, so that the next write waits in the queue.
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let store = store.clone();
        waiting.spawn(async move { store.create_run("waited", &RawJson::empty_object()).await.unwrap() });
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let detail = RawJson::empty_object();
    let abandoned = tokio::time::timeout(Duration::from_millis(50), store.create_run("abandoned", &detail));
    assert!(abandoned.await.is_err());
    other.execute(sqlx::raw_sql("ROLLBACK")).await.unwrap();
    waiting.join_all().await;
    store.create_run("later", &detail).await.unwrap();
    let mut kinds: Vec<String> = store.runs(10).await.unwrap().into_iter().map(|run| run.kind).collect();
    kinds.sort();
    assert_eq!(kinds, ["later", "waited", "waited", "waited"]);
}

pub(crate) async fn unknown_steps_are_resolved_manually(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let lease = new_run(&store, "one").await;
    for step in ["a", "b"] {
        store.begin(&lease, &write_intent(step)).await.unwrap();
        let unknown =
            FinishedStep { state: StepState::Unknown, result: json(serde_json::json!({"error": "lost"})) };
        store.finish(&lease, step, &unknown).await.unwrap();
    }
    store.resolve(&lease.run, "a", Resolution::Done, "ada").await.unwrap();
    store.resolve(&lease.run, "b", Resolution::NotDone, "ada").await.unwrap();
    assert!(matches!(store.begin(&lease, &write_intent("a")).await.unwrap(), StepStart::Reuse(_)));
    let resolution = store.steps(&lease.run).await.unwrap()[0].outcome.clone().unwrap();
    assert_eq!(
        resolution.get(),
        r#"{"resolved":{"resolution":"done","by":"ada"}}"#,
        "the user who resolved it is recorded"
    );
    assert!(resolution.read::<toolyard_core::StepResult>().unwrap().into_tool_result().is_ok());
    assert_eq!(store.begin(&lease, &write_intent("b")).await, Ok(StepStart::Call));
    let twice = store.resolve(&lease.run, "a", Resolution::NotDone, "bob").await;
    assert!(
        matches!(twice, Err(JournalError::NotResolvable { .. })),
        "only the first resolution counts: {twice:?}"
    );
}

pub(crate) async fn an_owner_with_an_expired_lease_cannot_write(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let old = new_run(&store, "one").await;
    store.begin(&old, &repeatable_intent("a")).await.unwrap();
    expire_lease(&store, &old).await;
    let new = store.claim(&old.run, "two", LEASE_DURATION).await.unwrap();
    assert!(new.fence > old.fence);
    let lost = Err(JournalError::LeaseLost(old.run.clone()));
    // For a repeatable call `begin` does not wait for the lease check; the outcome is rejected later.
    assert_eq!(store.begin(&old, &repeatable_intent("c")).await, Ok(StepStart::Call));
    assert_eq!(store.finish(&old, "c", &done_with("late")).await, lost);
    assert_eq!(
        store.begin(&old, &repeatable_intent("d")).await.map(|_| ()),
        lost,
        "the lost lease is known by now"
    );
    assert_eq!(store.finish(&old, "a", &done_with("late")).await, lost);
    assert_eq!(store.begin(&old, &write_intent("b")).await.map(|_| ()), lost);
    assert_eq!(store.finish(&old, "never begun", &done_with("late")).await, lost);
    assert_eq!(store.renew(&old, LEASE_DURATION).await, lost);
    assert_eq!(store.release(&old, RunState::Done).await, lost);
    let states: Vec<_> = store.steps(&old.run).await.unwrap().iter().map(|step| step.state).collect();
    assert!(states.iter().all(|state| *state == StepState::Started), "nothing was written: {states:?}");
    // The fencing number decides, even for the same owner.
    expire_lease(&store, &new).await;
    let third = store.claim(&old.run, "one", LEASE_DURATION).await.unwrap();
    assert_eq!(store.finish(&old, "a", &done_with("late")).await, lost);
    assert_eq!(store.begin(&third, &repeatable_intent("a")).await, Ok(StepStart::Call));
}

pub(crate) async fn a_lease_excludes_others_until_it_expires(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let lease = new_run(&store, "one").await;
    let held = store.claim(&lease.run, "two", LEASE_DURATION).await;
    assert_eq!(held, Err(JournalError::Leased { run: lease.run.clone(), owner: "one".to_owned() }));
    assert_eq!(store.claim_next("test", "two", LEASE_DURATION).await, Ok(None));
    store.renew(&lease, LEASE_DURATION).await.unwrap();
    let run = store.run(&lease.run).await.unwrap();
    assert!(run.leased && store.runs(1).await.unwrap()[0].leased);
    let count_since = async |kind: &str, at| store.runs_since(kind, at).await.unwrap().len();
    let at = run.created_at;
    assert_eq!(
        (count_since("test", at).await, count_since("test", at + 1).await, count_since("other", 0).await),
        (1, 0, 0)
    );
    store.renew(&lease, Duration::ZERO).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!store.run(&lease.run).await.unwrap().leased, "its lease expired");
    store.renew(&lease, LEASE_DURATION).await.unwrap();
    store.release(&lease, RunState::Open).await.unwrap();
    assert!(!store.run(&lease.run).await.unwrap().leased);
    assert!(store.claim_next("other", "two", LEASE_DURATION).await.unwrap().is_none());
    assert_eq!(store.claim_next("test", "two", LEASE_DURATION).await.unwrap().unwrap().run, lease.run);
}

pub(crate) async fn concurrent_claims_never_share_a_run(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    for _ in 0..40 {
        store.create_run("job", &RawJson::empty_object()).await.unwrap();
    }
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..8 {
        let store = test_store.open().await;
        workers.spawn(async move {
            let mut taken = Vec::new();
            while let Some(lease) =
                store.claim_next("job", &format!("w{worker}"), LEASE_DURATION).await.unwrap()
            {
                taken.push(lease.run);
            }
            taken
        });
    }
    let all: Vec<_> = workers.join_all().await.into_iter().flatten().collect();
    let distinct: HashSet<_> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (40, 40));
}

pub(crate) async fn a_thousand_concurrent_steps_are_all_stored(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let lease = Arc::new(new_run(&store, "one").await);
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..1_000 {
        let (store, lease) = (store.clone(), Arc::clone(&lease));
        writers.spawn(async move {
            let step = format!("s{number}");
            let intent = if number % 2 == 0 { repeatable_intent(&step) } else { write_intent(&step) };
            store.begin(&lease, &intent).await.unwrap();
            store.finish(&lease, &step, &done_with(&step)).await.unwrap();
        });
    }
    writers.join_all().await;
    let steps = test_store.open().await.steps(&lease.run).await.unwrap();
    assert_eq!(steps.len(), 1_000);
    for step in steps {
        assert_eq!(step.outcome.unwrap().to_value()["text"], step.step, "outcomes are never mixed up");
    }
}

pub(crate) async fn unknown_runs_are_rejected(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let run = RunId::from("nowhere");
    assert_eq!(store.run(&run).await, Err(JournalError::UnknownRun(run.clone())));
    assert_eq!(store.claim(&run, "one", LEASE_DURATION).await, Err(JournalError::UnknownRun(run.clone())));
    let lease = toolyard_core::Lease { run: run.clone(), owner: "one".to_owned(), fence: 1 };
    assert_eq!(store.begin(&lease, &write_intent("a")).await, Err(JournalError::UnknownRun(run)));
}

pub(crate) async fn runs_are_listed_page_by_page(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let mut created = Vec::new();
    for _ in 0..5 {
        created.push(store.create_run("agent", &RawJson::empty_object()).await.unwrap());
        store.create_run("call", &RawJson::empty_object()).await.unwrap();
    }
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = store.runs_page("agent", after.as_ref(), 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        listed.extend(page.into_iter().map(|run| run.id));
    }
    let newest_first = store.runs(100).await.unwrap().into_iter().filter(|run| run.kind == "agent");
    assert_eq!(listed, newest_first.map(|run| run.id).collect::<Vec<_>>());
    assert_eq!(listed.len(), created.len());
    assert!(store.runs_page("agent", Some(&RunId::from("none")), 2).await.is_err());
}

pub(crate) async fn runs_of_an_owner_are_listed_page_by_page(engine: Engine) {
    let test_store = TestStore::new(engine).await;
    let store = test_store.open().await;
    let [ada, eve] = ["ada", "eve"].map(|name| ContentHash::of_parts([name.as_bytes()]));
    let mut of_ada = Vec::new();
    for _ in 0..3 {
        for owner in [&ada, &eve] {
            let detail = RawJson::from(serde_json::json!({"agent": "assistant", "owner": owner}));
            let run = store.create_run("agent", &detail).await.unwrap();
            if owner == &ada {
                of_ada.insert(0, run);
            }
        }
        store.create_run("agent", &RawJson::empty_object()).await.unwrap();
    }
    let first = store.runs_page_of_owner("agent", &ada, None, 2).await.unwrap();
    let first: Vec<RunId> = first.into_iter().map(|run| run.id).collect();
    assert_eq!(first, of_ada[..2]);
    let rest = store.runs_page_of_owner("agent", &ada, first.last(), 2).await.unwrap();
    assert_eq!(rest.into_iter().map(|run| run.id).collect::<Vec<_>>(), of_ada[2..]);
    assert!(store.runs_page_of_owner("call", &ada, None, 2).await.unwrap().is_empty());
}
