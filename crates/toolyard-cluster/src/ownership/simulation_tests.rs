//! Simulations of a cluster with a paused clock: callers count at a stateful server through any process, while processes die,
//! fall silent and join, messages are slow and the store is away. All that happens follows from a seed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use fastrand::Rng;
use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use toolyard_core::{
    BoxFuture, CallContext, CallerIdentity, ErrorKind, LeaseCount, RawJson, SessionLease, SessionLeases,
    SourceInfo, SourceKind, StorageError, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec,
};

use super::{
    OWNED_CALL_SERVICE, OwnedCallService, OwnedTools, OwnershipSettings, OwnershipStatistics, SessionOwners,
};
use crate::{
    ownership::owners::{Admission, Location},
    testing::{Death, MemoryCluster, MemoryPeers},
};

const LEASE: Duration = Duration::from_secs(10);
const DEADLINE: Duration = Duration::from_secs(15);
const PROCESSES: usize = 3;
const CALLERS: usize = 4;
const CALLS_PER_CALLER: usize = 12;
const GATEWAY_DIED: &str = "the gateway of the caller died";

/// Leases in memory, by the paused clock.
#[derive(Debug, Default)]
struct MemoryLeases(Mutex<LeaseTable>);

#[derive(Debug, Default)]
struct LeaseTable {
    leases: BTreeMap<String, (String, i64, Option<Instant>)>,
    users: BTreeMap<(String, String), i64>,
    away_until: Option<Instant>,
    rng: Rng,
}

impl MemoryLeases {
    fn with<T>(&self, act: impl FnOnce(&mut LeaseTable) -> T) -> Result<T, StorageError> {
        let mut table = self.0.lock();
        if table.away_until.is_some_and(|until| Instant::now() < until) {
            return Err(StorageError::new("the store is away"));
        }
        Ok(act(&mut table))
    }

    /// Who holds a lease, by the store's clock.
    fn holder(&self, name: &str) -> Option<String> {
        let table = self.0.lock();
        table
            .leases
            .get(name)
            .filter(|lease| lease.2.is_some_and(|until| Instant::now() < until))
            .map(|lease| lease.0.clone())
    }
}

/// Answers after a while, which differs from request to request. The request itself takes effect at once.
fn answer<'a, T: Send + 'a>(
    leases: &'a MemoryLeases,
    value: Result<T, StorageError>,
) -> BoxFuture<'a, Result<T, StorageError>> {
    let latency = leases.0.lock().rng.u64(1..300);
    Box::pin(async move {
        sleep(Duration::from_millis(latency)).await;
        value
    })
}

fn lease(name: &str, (holder, fence, until): &(String, i64, Option<Instant>)) -> SessionLease {
    let remaining = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
    SessionLease { name: name.to_owned(), holder: holder.clone(), fence: *fence, remaining }
}

impl SessionLeases for MemoryLeases {
    fn take_lease<'a>(
        &'a self,
        name: &'a str,
        holder: &'a str,
        duration: Duration,
    ) -> BoxFuture<'a, Result<SessionLease, StorageError>> {
        let now = Instant::now();
        answer(
            self,
            self.with(|table| {
                let entry = table.leases.entry(name.to_owned()).or_insert((String::new(), 0, None));
                let is_held = entry.2.is_some_and(|until| now < until);
                if !is_held {
                    *entry = (holder.to_owned(), entry.1 + 1, Some(now + duration));
                } else if entry.0 == holder {
                    entry.2 = Some(now + duration);
                }
                lease(name, entry)
            }),
        )
    }

    fn renew_leases<'a>(
        &'a self,
        holder: &'a str,
        duration: Duration,
    ) -> BoxFuture<'a, Result<Vec<SessionLease>, StorageError>> {
        let now = Instant::now();
        answer(
            self,
            self.with(|table| {
                let own = table
                    .leases
                    .iter_mut()
                    .filter(|(_, entry)| entry.0 == holder && entry.2.is_some_and(|until| now < until));
                own.map(|(name, entry)| {
                    entry.2 = Some(now + duration);
                    lease(name, entry)
                })
                .collect()
            }),
        )
    }

    fn release_lease<'a>(&'a self, name: &'a str, fence: i64) -> BoxFuture<'a, Result<(), StorageError>> {
        answer(
            self,
            self.with(|table| {
                if let Some(entry) = table.leases.get_mut(name).filter(|entry| entry.1 == fence) {
                    entry.2 = None;
                }
            }),
        )
    }

    fn lease<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<SessionLease>, StorageError>> {
        answer(self, self.with(|table| table.leases.get(name).map(|entry| lease(name, entry))))
    }

    fn record_session_user<'a>(
        &'a self,
        name: &'a str,
        fence: i64,
        user: &'a str,
    ) -> BoxFuture<'a, Result<(), StorageError>> {
        let now = Instant::now();
        let recorded = self.with(|table| {
            let entry = table.leases.get(name);
            if entry.is_none_or(|entry| entry.1 != fence || entry.2.is_none_or(|until| until <= now)) {
                return Err(StorageError::new("the lease is lost"));
            }
            table.users.insert((name.to_owned(), user.to_owned()), fence);
            Ok(())
        });
        answer(self, recorded.and_then(|recorded| recorded))
    }

    fn session_users<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<(String, i64)>, StorageError>> {
        answer(
            self,
            self.with(|table| {
                let users = table.users.iter().filter(|((session, _), _)| session == name);
                users.map(|((_, user), fence)| (user.clone(), *fence)).collect()
            }),
        )
    }

    fn count_leases<'a>(&'a self, _prefix: &'a str) -> BoxFuture<'a, Result<Vec<LeaseCount>, StorageError>> {
        answer(self, Ok(Vec::new()))
    }

    fn purge_leases(&self, _older_than: Duration) -> BoxFuture<'_, Result<u64, StorageError>> {
        answer(self, Ok(0))
    }
}

/// Counts per session. A session exists in one process, until the process ends it.
struct CounterTool {
    spec: ToolSpec,
    process: u64,
    is_isolated: bool,
    sessions: Arc<Mutex<BTreeMap<String, (u64, u64)>>>,
    world: Arc<World>,
}

/// What all processes and callers share.
struct World {
    leases: Arc<MemoryLeases>,
    rng: Mutex<Rng>,
    /// What happened, in order. Equal for equal seeds.
    log: Mutex<Vec<String>>,
}

impl World {
    fn random(&self, bound: u64) -> u64 {
        self.rng.lock().u64(..bound)
    }

    fn note(&self, event: String) {
        self.log.lock().push(event);
    }
}

fn session_name(user: &str, is_isolated: bool) -> String {
    if is_isolated { format!("mcp/counter/{user}") } else { "mcp/counter".to_owned() }
}

impl Tool for CounterTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        _request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let user =
                context.identity.as_ref().map(|identity| identity.owner().to_string()).unwrap_or_default();
            let name = session_name(&user, self.is_isolated);
            // The safety of the cluster: only the owner by the store's clock begins a call.
            let holder = self.world.leases.holder(&name);
            assert_eq!(
                holder,
                Some(format!("{:016x}", self.process)),
                "{name} is called by another process than its owner"
            );
            let pause = self.world.random(40);
            sleep(Duration::from_millis(pause)).await;
            let new_instance = self.world.random(u64::MAX);
            let (instance, count) = {
                let mut sessions = self.sessions.lock();
                let (instance, count) = sessions.entry(name).or_insert((new_instance, 0));
                *count += 1;
                (*instance, *count)
            };
            Ok(ToolOutput::text(format!("{instance} {count}")))
        })
    }

    fn is_isolated(&self, _identity: Option<&CallerIdentity>) -> bool {
        self.is_isolated
    }

    fn is_stateful(&self) -> bool {
        true
    }
}

/// A process, which ends with this value.
struct Process {
    tool: Arc<dyn Tool>,
    peers: Arc<MemoryPeers>,
    death: Death,
    is_silent: Arc<Mutex<Option<Instant>>>,
    _tasks: JoinSet<()>,
}

impl Process {
    fn start(number: u64, cluster: &MemoryCluster, world: &Arc<World>, is_isolated: bool) -> Self {
        let peers = cluster.join(number);
        let sessions: Arc<Mutex<BTreeMap<String, (u64, u64)>>> = Arc::default();
        let ended = Arc::clone(&sessions);
        let settings = OwnershipSettings { lease: LEASE, idle: Duration::from_hours(1) };
        let leases = Arc::clone(&world.leases) as Arc<dyn SessionLeases>;
        let end_session = move |session: &str| -> BoxFuture<'static, ()> {
            ended.lock().remove(session);
            Box::pin(std::future::ready(()))
        };
        let owners =
            SessionOwners::new(Arc::clone(&peers) as _, leases, settings, end_session, |_| answered(true));
        let counter = CounterTool {
            spec: ToolSpec::new("count", "Counts."),
            process: number,
            is_isolated,
            sessions,
            world: Arc::clone(world),
        };
        let tools = Arc::new(OwnedTools::default());
        let source = SourceInfo::new("counter", SourceKind::Mcp);
        let mut owned = tools.replace(&source, vec![Arc::new(counter)], &owners);
        peers.serve(OWNED_CALL_SERVICE, Arc::new(OwnedCallService::new(Arc::clone(&owners), tools)));
        let mut tasks = JoinSet::new();
        let is_silent: Arc<Mutex<Option<Instant>>> = Arc::default();
        let silent = Arc::clone(&is_silent);
        tasks.spawn(async move {
            loop {
                sleep(LEASE / 4).await;
                let until = *silent.lock();
                if until.is_none_or(|until| until <= Instant::now()) {
                    owners.renew().await;
                }
            }
        });
        Self { tool: owned.remove(0), peers, death: Death::default(), is_silent, _tasks: tasks }
    }
}

type Processes = Arc<Mutex<Vec<Process>>>;

/// One caller: calls at random processes, and checks that what it sees makes sense.
async fn call_again_and_again(caller: usize, processes: Processes, world: Arc<World>) {
    let identity = Arc::new(CallerIdentity::principal("https://issuer.example", &format!("caller-{caller}")));
    let mut seen: Option<(u64, u64)> = None;
    // Whether it may have been told that its session is lost: an answer that its own gateway did not deliver is not seen here.
    let (mut was_told, mut may_be_told) = (false, false);
    for _ in 0..CALLS_PER_CALLER {
        sleep(Duration::from_millis(world.random(3_000))).await;
        let (tool, death) = {
            let processes = processes.lock();
            let index = usize::try_from(world.random(processes.len() as u64)).unwrap();
            (Arc::clone(&processes[index].tool), processes[index].death.clone())
        };
        let request =
            ToolCallRequest { id: "1".to_owned(), ..ToolCallRequest::new("count", RawJson::empty_object()) };
        let mut context = CallContext::until((Instant::now() + DEADLINE).into_std());
        context.identity = Some(Arc::clone(&identity));
        let call = async {
            tokio::select! {
                biased;
                outcome = tool.call(&request, &context) => outcome,
                () = death.wait() => Err(ToolError::new(ErrorKind::ResponseLost, GATEWAY_DIED)),
            }
        };
        let outcome =
            timeout(DEADLINE + Duration::from_millis(250), call).await.expect("a call ends by its deadline");
        world.note(format!("{:?} caller {caller}: {outcome:?}", Instant::now()));
        match outcome {
            Ok(output) => {
                let text = output.to_text();
                let (instance, count) =
                    text.split_once(' ').map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).unwrap();
                match seen {
                    Some((before, counted)) if before == instance => {
                        assert!(!was_told, "told of a loss that did not happen");
                        assert!(count > counted, "{count} after {counted}");
                    }
                    Some(_) => assert!(was_told || may_be_told, "the state was lost and nobody was told"),
                    None => {}
                }
                seen = Some((instance, count));
                (was_told, may_be_told) = (false, false);
            }
            Err(error) => match error.kind() {
                ErrorKind::SessionLost => was_told = true,
                ErrorKind::ResponseLost if error.message() == GATEWAY_DIED => may_be_told = true,
                ErrorKind::ResponseLost | ErrorKind::Unavailable => {}
                kind => panic!("{kind:?}: {error}"),
            },
        }
    }
}

/// Kills, silences and replaces processes, slows messages, and takes the store away.
async fn cause_trouble(processes: Processes, cluster: MemoryCluster, world: Arc<World>, is_isolated: bool) {
    let mut next = PROCESSES as u64;
    loop {
        sleep(Duration::from_millis(500 + world.random(6_000))).await;
        let victim = usize::try_from(world.random(PROCESSES as u64)).unwrap();
        match world.random(4) {
            0 => {
                next += 1;
                let process = Process::start(next, &cluster, &world, is_isolated);
                let killed = std::mem::replace(&mut processes.lock()[victim], process);
                let number = toolyard_core::Peers::own_number(&*killed.peers);
                world.note(format!("killed {number}, started {next}"));
                killed.death.happen();
                cluster.kill(number);
            }
            1 => {
                let silence = Duration::from_millis(world.random(25_000));
                *processes.lock()[victim].is_silent.lock() = Some(Instant::now() + silence);
            }
            2 => cluster.set_delay(Duration::from_millis(world.random(80))),
            _ => {
                let outage = Duration::from_millis(world.random(20_000));
                world.leases.0.lock().away_until = Some(Instant::now() + outage);
            }
        }
    }
}

/// Runs a simulation, and returns what happened.
fn simulate(seed: u64, has_trouble: bool) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let is_isolated = seed.is_multiple_of(2);
        let world = Arc::new(World {
            leases: Arc::new(MemoryLeases(Mutex::new(LeaseTable {
                rng: Rng::with_seed(seed),
                ..LeaseTable::default()
            }))),
            rng: Mutex::new(Rng::with_seed(seed)),
            log: Mutex::default(),
        });
        let start = Instant::now();
        let cluster = MemoryCluster::new();
        let numbers = 0..PROCESSES as u64;
        let processes: Vec<Process> =
            numbers.map(|number| Process::start(number, &cluster, &world, is_isolated)).collect();
        let processes: Processes = Arc::new(Mutex::new(processes));
        let trouble = cause_trouble(Arc::clone(&processes), cluster, Arc::clone(&world), is_isolated);
        let trouble = tokio::spawn(async move {
            if has_trouble {
                trouble.await;
            }
        });
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            callers.spawn(call_again_and_again(caller, Arc::clone(&processes), Arc::clone(&world)));
        }
        while let Some(ended) = callers.join_next().await {
            if let Err(error) = ended {
                panic!("seed {seed}: {error}\n{}", world.log.lock().join("\n"));
            }
        }
        trouble.abort();
        let mut log = std::mem::take(&mut *world.log.lock());
        // Only differences of times are the same in two runs.
        log.push(format!("{:?}", start.elapsed()));
        log.iter_mut().for_each(|line| {
            if let Some((_, event)) = line.split_once(" caller ") {
                *line = event.to_owned();
            }
        });
        log
    })
}

#[test]
fn callers_see_consistent_state_or_are_told_whatever_happens() {
    let seeds: u64 =
        std::env::var("TOOLYARD_SIMULATION_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1_000);
    let (mut outcomes, mut told) = (0, 0);
    for seed in 0..seeds {
        let log = simulate(seed, true);
        outcomes += log.iter().filter(|line| line.contains("Ok(")).count();
        told += log.iter().filter(|line| line.contains("SessionLost")).count();
    }
    // The simulation is worth something only if most calls succeed and some sessions are lost.
    let calls = usize::try_from(seeds).unwrap() * CALLERS * CALLS_PER_CALLER;
    assert!(outcomes * 2 > calls && told * 100 > calls, "{outcomes} succeeded, {told} told, of {calls}");
}

#[test]
fn a_seed_replays_identically() {
    for seed in 0..20 {
        let (one, other) = (simulate(seed, true), simulate(seed, true));
        let difference = one.iter().zip(&other).position(|(one, other)| one != other);
        assert_eq!(
            difference,
            None,
            "seed {seed}: {:?} and {:?}",
            difference.map(|at| &one[at]),
            difference.map(|at| &other[at])
        );
        assert_eq!(one.len(), other.len(), "seed {seed}");
    }
}

#[test]
fn without_trouble_every_call_succeeds() {
    for seed in 0..100 {
        let log = simulate(seed, false);
        let failed: Vec<&String> = log.iter().filter(|line| line.contains("Err(")).collect();
        assert!(failed.is_empty(), "seed {seed}: {failed:?}");
    }
}

fn answered<T: Send + 'static>(value: T) -> BoxFuture<'static, T> {
    Box::pin(std::future::ready(value))
}

/// Two processes that share leases.
fn two_owners(has_state: bool) -> (Arc<SessionOwners>, Arc<SessionOwners>) {
    let (cluster, leases) = (MemoryCluster::default(), Arc::new(MemoryLeases::default()));
    let owners = |number| {
        let settings = OwnershipSettings { lease: LEASE, idle: Duration::from_hours(1) };
        let leases = Arc::clone(&leases) as Arc<dyn SessionLeases>;
        let (end_session, has_state) = (|_: &str| answered(()), move |_: &str| answered(has_state));
        SessionOwners::new(cluster.join(number) as _, leases, settings, end_session, has_state)
    };
    (owners(1), owners(2))
}

#[tokio::test(start_paused = true)]
async fn a_caller_is_told_of_a_lost_session_only_if_it_had_state() {
    for has_state in [true, false] {
        let (one, two) = two_owners(has_state);
        let Location::Here(fence) = one.take("session").await.unwrap() else { panic!("the session is free") };
        let admission = one.admit("session", fence, "ada").await.unwrap();
        assert!(matches!(admission, Admission::Admitted(_)), "{admission:?}");
        sleep(LEASE + Duration::from_secs(1)).await;
        let Location::Here(fence) = two.take("session").await.unwrap() else { panic!("the lease is over") };
        let admission = two.admit("session", fence, "ada").await.unwrap();
        assert_eq!(matches!(admission, Admission::SessionLost(_)), has_state, "{admission:?}");
        assert_eq!(matches!(admission, Admission::Admitted(_)), !has_state, "{admission:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn sessions_that_go_to_another_process_are_counted() {
    let (one, two) = two_owners(true);
    let statistics = |owners: &SessionOwners| {
        let OwnershipStatistics { owned, takeovers, losses } = owners.statistics();
        (owned, takeovers, losses)
    };
    one.take("session").await.unwrap();
    assert_eq!(
        (statistics(&one), statistics(&two)),
        ((1, 0, 0), (0, 0, 0)),
        "the first owner takes over nothing"
    );
    // It does not renew its lease.
    sleep(LEASE + Duration::from_secs(1)).await;
    two.take("session").await.unwrap();
    one.take("session").await.unwrap();
    assert_eq!((statistics(&one), statistics(&two)), ((0, 0, 1), (1, 1, 0)));
}
