//! Servers that are connected as the processes of a cluster, without a network between them.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::{sync::mpsc, task::AbortHandle};
use toolyard_core::{BoxFuture, Exchange, PeerError, PeerService, Peers};
use toolyard_mcp_server::PEER_SERVICE_NAME;

use crate::test_server::{ServerBuilder, TestServer};

#[derive(Default)]
pub(crate) struct MemoryCluster {
    processes: Mutex<HashMap<u64, Process>>,
    /// Messages that each process sent to others, to find out that it sent none.
    pub(crate) sent: Mutex<Vec<(u64, Vec<u8>)>>,
}

struct Process {
    service: Arc<dyn PeerService>,
    exchanges: Vec<AbortHandle>,
}

/// One process of the cluster.
pub(crate) struct MemoryPeers {
    cluster: Arc<MemoryCluster>,
    own_number: u64,
}

struct MemoryExchange {
    cluster: Arc<MemoryCluster>,
    other: u64,
    sender: mpsc::Sender<Vec<u8>>,
    receiver: mpsc::Receiver<Vec<u8>>,
}

impl MemoryCluster {
    /// Starts a server as a process of the cluster.
    pub(crate) async fn start(self: &Arc<Self>, own_number: u64, mut builder: ServerBuilder) -> TestServer {
        builder.config.peers = Some(self.peers(own_number));
        let server = builder.build().await;
        self.register(own_number, server.server.peer_service());
        server
    }

    pub(crate) fn peers(self: &Arc<Self>, own_number: u64) -> Arc<dyn Peers> {
        Arc::new(MemoryPeers { cluster: Arc::clone(self), own_number })
    }

    pub(crate) fn register(&self, number: u64, service: Arc<dyn PeerService>) {
        self.processes.lock().insert(number, Process { service, exchanges: Vec::new() });
    }

    /// Makes a process unreachable and ends its exchanges, as if it had been killed.
    pub(crate) fn kill(&self, number: u64) {
        let process = self.processes.lock().remove(&number).unwrap();
        for exchange in process.exchanges {
            exchange.abort();
        }
    }

    fn is_alive(&self, number: u64) -> bool {
        self.processes.lock().contains_key(&number)
    }
}

impl std::fmt::Debug for MemoryPeers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "MemoryPeers({})", self.own_number)
    }
}

impl Peers for MemoryPeers {
    fn own_number(&self) -> u64 {
        self.own_number
    }

    fn open<'a>(
        &'a self,
        process: u64,
        service: &'a str,
        request: Vec<u8>,
    ) -> BoxFuture<'a, Result<Box<dyn Exchange>, PeerError>> {
        Box::pin(async move {
            assert_eq!(service, PEER_SERVICE_NAME);
            self.cluster.sent.lock().push((self.own_number, request.clone()));
            let mut processes = self.cluster.processes.lock();
            let Some(other) = processes.get_mut(&process) else {
                return Err(PeerError::NotReached(format!("no process {process}")));
            };
            let ((to_other, from_here), (to_here, from_other)) = (mpsc::channel(4), mpsc::channel(4));
            let exchange = |other, sender, receiver| {
                let cluster = Arc::clone(&self.cluster);
                Box::new(MemoryExchange { cluster, other, sender, receiver })
            };
            let served = exchange(self.own_number, to_here, from_here);
            let serving = tokio::spawn(Arc::clone(&other.service).serve(request, served));
            other.exchanges.push(serving.abort_handle());
            Ok(exchange(process, to_other, from_other) as _)
        })
    }

    fn notify_all(&self, service: &str, message: Vec<u8>) {
        assert_eq!(service, PEER_SERVICE_NAME);
        self.cluster.sent.lock().push((self.own_number, message.clone()));
        for (number, process) in &*self.cluster.processes.lock() {
            if *number != self.own_number {
                process.service.notified(&message);
            }
        }
    }
}

impl Exchange for MemoryExchange {
    fn send(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PeerError>> {
        Box::pin(async move {
            self.sender.send(message).await.map_err(|_| PeerError::Lost("the exchange has ended".to_owned()))
        })
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, PeerError>> {
        Box::pin(async move {
            match self.receiver.recv().await {
                None if !self.cluster.is_alive(self.other) => {
                    Err(PeerError::Lost("the process was killed".to_owned()))
                }
                message => Ok(message),
            }
        })
    }
}
