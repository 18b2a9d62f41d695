//! [`MemoryCluster`]: several processes of a cluster within one test.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep_until},
};
use toolyard_core::{BoxFuture, Exchange, PeerError, PeerService, Peers};

pub use crate::workers::testing::MemoryWorkers;

/// Processes that reach each other in memory. Clones are the same cluster.
#[derive(Clone, Default)]
pub struct MemoryCluster(Arc<Mutex<ClusterState>>);

#[derive(Default)]
struct ClusterState {
    processes: HashMap<u64, Process>,
    delay: Duration,
}

struct Process {
    services: HashMap<String, Arc<dyn PeerService>>,
    /// Whether the process was killed.
    death: Death,
}

/// The death of a process. Unlike a `watch` channel, it wakes those that wait for it in the same order in every run.
#[derive(Debug, Clone, Default)]
pub struct Death(Arc<DeathState>);

#[derive(Debug, Default)]
struct DeathState {
    has_happened: AtomicBool,
    happens: Notify,
}

impl Death {
    /// The process dies.
    pub fn happen(&self) {
        self.0.has_happened.store(true, Ordering::SeqCst);
        self.0.happens.notify_waiters();
    }

    /// Whether the process is dead.
    pub fn has_happened(&self) -> bool {
        self.0.has_happened.load(Ordering::SeqCst)
    }

    /// Completes when the process dies.
    pub async fn wait(&self) {
        let mut happens = std::pin::pin!(self.0.happens.notified());
        happens.as_mut().enable();
        if !self.has_happened() {
            happens.await;
        }
    }
}

/// One process of a [`MemoryCluster`].
pub struct MemoryPeers {
    number: u64,
    cluster: MemoryCluster,
}

impl MemoryCluster {
    /// A cluster without processes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a process; one with this number that was there before counts as killed.
    pub fn join(&self, number: u64) -> Arc<MemoryPeers> {
        let process = Process { services: HashMap::new(), death: Death::default() };
        if let Some(previous) = self.state().processes.insert(number, process) {
            previous.death.happen();
        }
        Arc::new(MemoryPeers { number, cluster: self.clone() })
    }

    /// Kills a process: its exchanges are lost, what it serves is dropped, and it is not reached any more.
    pub fn kill(&self, number: u64) {
        if let Some(process) = self.state().processes.remove(&number) {
            process.death.happen();
        }
    }

    /// Delays every message from now on.
    pub fn set_delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    fn state(&self) -> MutexGuard<'_, ClusterState> {
        self.0.lock()
    }

    fn arrival(&self) -> Instant {
        Instant::now() + self.state().delay
    }
}

impl MemoryPeers {
    /// Serves this service to the other processes.
    pub fn serve(&self, service: &str, implementation: Arc<dyn PeerService>) {
        if let Some(process) = self.cluster.state().processes.get_mut(&self.number) {
            process.services.insert(service.to_owned(), implementation);
        }
    }

    fn connect(&self, process: u64, service: &str, request: Vec<u8>) -> Result<Box<dyn Exchange>, PeerError> {
        let not_reached =
            |number: u64, problem: &str| PeerError::NotReached(format!("process {number} {problem}"));
        let (service, deaths) = {
            let state = self.cluster.state();
            let own = state.processes.get(&self.number).ok_or_else(|| not_reached(self.number, "is dead"))?;
            let other = state.processes.get(&process).ok_or_else(|| not_reached(process, "is not there"))?;
            let service =
                other.services.get(service).ok_or_else(|| not_reached(process, "serves no such service"))?;
            (Arc::clone(service), [own.death.clone(), other.death.clone()])
        };
        let (near, far) = MemoryExchange::pair(&self.cluster, &deaths);
        let [_, death] = deaths;
        let arrival = self.cluster.arrival();
        tokio::spawn(async move {
            let serve = async {
                sleep_until(arrival).await;
                service.serve(request, Box::new(far)).await;
            };
            tokio::select! {
                biased;
                () = serve => {}
                () = death.wait() => {}
            }
        });
        Ok(Box::new(near))
    }
}

impl Peers for MemoryPeers {
    fn own_number(&self) -> u64 {
        self.number
    }

    fn members(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.cluster.state().processes.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    fn open<'a>(
        &'a self,
        process: u64,
        service: &'a str,
        request: Vec<u8>,
    ) -> BoxFuture<'a, Result<Box<dyn Exchange>, PeerError>> {
        Box::pin(std::future::ready(self.connect(process, service, request)))
    }

    fn notify_all(&self, service: &str, message: Vec<u8>) {
        let state = self.cluster.state();
        if !state.processes.contains_key(&self.number) {
            return;
        }
        let others = state.processes.iter().filter(|(number, _)| **number != self.number);
        let services: Vec<_> =
            others.filter_map(|(_, process)| process.services.get(service).map(Arc::clone)).collect();
        let arrival = Instant::now() + state.delay;
        tokio::spawn(async move {
            sleep_until(arrival).await;
            for service in services {
                service.notified(&message);
            }
        });
    }
}

/// One end of an exchange.
struct MemoryExchange {
    cluster: MemoryCluster,
    deaths: [Death; 2],
    sender: mpsc::UnboundedSender<(Instant, Vec<u8>)>,
    receiver: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>,
    /// A message that is still on its way.
    next: Option<(Instant, Vec<u8>)>,
}

impl MemoryExchange {
    fn pair(cluster: &MemoryCluster, deaths: &[Death; 2]) -> (Self, Self) {
        let (there, from_here) = mpsc::unbounded_channel();
        let (back, from_there) = mpsc::unbounded_channel();
        let end = |sender, receiver| Self {
            cluster: cluster.clone(),
            deaths: deaths.clone(),
            sender,
            receiver,
            next: None,
        };
        (end(there, from_there), end(back, from_here))
    }

    fn is_lost(&self) -> bool {
        self.deaths.iter().any(Death::has_happened)
    }
}

impl Exchange for MemoryExchange {
    fn send(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PeerError>> {
        let arrival = self.cluster.arrival();
        let is_sent = !self.is_lost() && self.sender.send((arrival, message)).is_ok();
        let result = if is_sent { Ok(()) } else { Err(PeerError::Lost("the exchange has ended".to_owned())) };
        Box::pin(std::future::ready(result))
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, PeerError>> {
        Box::pin(async move {
            let Self { deaths: [own, other], receiver, next, .. } = self;
            let message = async {
                if next.is_none() {
                    *next = receiver.recv().await;
                }
                // The message stays in its place while it is on its way, in case this future is dropped.
                let Some((arrival, _)) = next else { return None };
                sleep_until(*arrival).await;
                next.take().map(|(_, message)| message)
            };
            tokio::select! {
                biased;
                () = own.wait() => Err(PeerError::Lost("a process was killed".to_owned())),
                () = other.wait() => Err(PeerError::Lost("a process was killed".to_owned())),
                message = message => Ok(message),
            }
        })
    }
}

impl fmt::Debug for MemoryCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryCluster").finish_non_exhaustive()
    }
}

impl fmt::Debug for MemoryPeers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryPeers").field("number", &self.number).finish_non_exhaustive()
    }
}
