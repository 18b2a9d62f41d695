//! [`MemoryWorkers`]: gateways and workers that reach each other within one test.

use std::{collections::HashMap, fmt, sync::Arc};

use parking_lot::Mutex;
use toolyard_core::{
    BoxFuture, Exchange, PeerError, PeerService, Peers as _, WorkerEndpoint, WorkerNetwork, WorkerObserver,
    WorkerTransport,
};

use super::{CALL_SERVICE, CATALOGUE_SERVICE, Worker};
use crate::testing::{MemoryCluster, MemoryPeers};

/// The number of the gateway among the processes.
const GATEWAY: u64 = 0;

/// A network of one gateway and any number of workers. Clones are the same network.
#[derive(Clone)]
pub struct MemoryWorkers {
    cluster: MemoryCluster,
    gateway: Arc<MemoryPeers>,
    state: Arc<Mutex<NetworkState>>,
}

#[derive(Default)]
struct NetworkState {
    observer: Option<Arc<dyn WorkerObserver>>,
    catalogues: HashMap<u64, Arc<dyn PeerService>>,
    /// The processes that serve an endpoint, in turn.
    endpoints: HashMap<(String, WorkerEndpoint), Vec<u64>>,
    is_disconnected: bool,
}

impl fmt::Debug for MemoryWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryWorkers").finish_non_exhaustive()
    }
}

impl Default for MemoryWorkers {
    fn default() -> Self {
        let cluster = MemoryCluster::new();
        Self { gateway: cluster.join(GATEWAY), cluster, state: Arc::default() }
    }
}

impl MemoryWorkers {
    /// Sets who receives announcements.
    pub fn observe(&self, observer: Arc<dyn WorkerObserver>) {
        self.state.lock().observer = Some(observer);
    }

    /// Starts a worker without tools.
    pub fn start(&self, group: &str, process: u64, concurrency: u32) -> Arc<Worker> {
        let transport = MemoryTransport { group: group.to_owned(), process, network: self.clone() };
        let worker = Arc::new(Worker::new(process, Arc::new(transport), concurrency));
        let peers = self.cluster.join(process);
        peers.serve(CALL_SERVICE, worker.call_service());
        peers.serve(CATALOGUE_SERVICE, worker.catalogue_service());
        self.state.lock().catalogues.insert(process, worker.catalogue_service());
        worker
    }

    /// Kills a worker: its exchanges are lost, and it is not reached any more.
    pub fn kill(&self, process: u64) {
        self.cluster.kill(process);
        let mut state = self.state.lock();
        state.catalogues.remove(&process);
        state.endpoints.values_mut().for_each(|processes| processes.retain(|other| *other != process));
    }

    /// Cuts the gateway off: it reaches no worker.
    pub fn disconnect(&self) {
        self.state.lock().is_disconnected = true;
    }

    /// Delivers an announcement, of a worker or of somebody else.
    pub fn announce(&self, group: &str, announcement: &[u8]) {
        let observer = self.state.lock().observer.clone();
        if let Some(observer) = observer {
            observer.announced(group, announcement);
        }
    }
}

impl WorkerNetwork for MemoryWorkers {
    fn request_announcements(&self) {
        let catalogues: Vec<_> = self.state.lock().catalogues.values().cloned().collect();
        catalogues.iter().for_each(|catalogue| catalogue.notified(&[]));
    }

    fn is_connected(&self) -> bool {
        !self.state.lock().is_disconnected
    }

    fn open_process<'a>(
        &'a self,
        _group: &'a str,
        process: u64,
    ) -> BoxFuture<'a, Result<Box<dyn Exchange>, PeerError>> {
        self.gateway.open(process, CATALOGUE_SERVICE, Vec::new())
    }

    fn open_tool<'a>(
        &'a self,
        group: &'a str,
        endpoint: &'a WorkerEndpoint,
        request: Vec<u8>,
    ) -> BoxFuture<'a, Result<Box<dyn Exchange>, PeerError>> {
        let next = {
            let mut state = self.state.lock();
            let is_disconnected = state.is_disconnected;
            let processes = state.endpoints.get_mut(&(group.to_owned(), endpoint.clone()));
            processes.filter(|processes| !is_disconnected && !processes.is_empty()).and_then(|processes| {
                processes.rotate_left(1);
                processes.last().copied()
            })
        };
        match next {
            Some(process) => self.gateway.open(process, CALL_SERVICE, request),
            None => Box::pin(std::future::ready(Err(PeerError::NotReached("no responders".to_owned())))),
        }
    }
}

#[derive(Debug)]
struct MemoryTransport {
    group: String,
    process: u64,
    network: MemoryWorkers,
}

impl WorkerTransport for MemoryTransport {
    fn announce(&self, announcement: Vec<u8>) -> BoxFuture<'_, ()> {
        self.network.announce(&self.group, &announcement);
        Box::pin(std::future::ready(()))
    }

    fn serve<'a>(&'a self, endpoints: &'a [WorkerEndpoint]) -> BoxFuture<'a, Result<(), PeerError>> {
        let mut state = self.network.state.lock();
        state.endpoints.values_mut().for_each(|processes| processes.retain(|other| *other != self.process));
        for endpoint in endpoints {
            let key = (self.group.clone(), endpoint.clone());
            state.endpoints.entry(key).or_default().push(self.process);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}
