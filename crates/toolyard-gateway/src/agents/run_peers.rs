//! Runs across the processes of a cluster: notices about them, and their live updates at a process that does not drive them.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{sync::broadcast, time::timeout};
use toolyard_agent::RunUpdate;
use toolyard_core::{BoxFuture, Exchange, PeerService, RunId};

use super::{
    active_runs::{ActiveRuns, MAX_BUFFERED_UPDATES},
    run_notice::{RUN_PEER_SERVICE, RunNotice, claim_delay, parse_notice},
    service::AgentService,
};

/// How long the process that drives a run may take to answer.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Stands between the name of an owner and its number in the cluster.
const NUMBER_SEPARATOR: char = '@';

/// A request for the updates of a run.
#[derive(Debug, Serialize, Deserialize)]
struct FollowRequest {
    run: RunId,
}

/// The first message of the process that drives the run; updates follow. A process that does not drive it ends the exchange.
const SUBSCRIBED: &[u8] = b"subscribed";

/// The name under which a process of a cluster claims runs: others find the number of the process in it.
pub fn cluster_owner(name: &str, number: u64) -> String {
    format!("{name}{NUMBER_SEPARATOR}{number:016x}")
}

fn number_of_owner(owner: &str) -> Option<u64> {
    u64::from_str_radix(owner.rsplit_once(NUMBER_SEPARATOR)?.1, 16).ok()
}

impl AgentService {
    /// What this process does for the others of its cluster; to be registered as [`RUN_PEER_SERVICE`].
    pub fn peer_service(&self) -> Arc<dyn PeerService> {
        Arc::new(RunPeerService(Arc::clone(&self.0)))
    }
}

struct RunPeerService(Arc<ActiveRuns>);

impl PeerService for RunPeerService {
    fn serve(self: Arc<Self>, request: Vec<u8>, exchange: Box<dyn Exchange>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Ok(FollowRequest { run }) = serde_json::from_slice(&request) {
                send_updates(&self.0, &run, exchange).await;
            }
        })
    }

    fn notified(&self, message: &[u8]) {
        let runs = &self.0;
        let Some((notice, run)) = parse_notice(message) else { return };
        match (notice, runs.find(&run)) {
            (_, Some(active)) => active.cancel.check_decisions(),
            (RunNotice::Decided, None) => {}
            (RunNotice::Queued, None) => {
                let Some(peers) = &runs.config.peers else { return };
                let delay = claim_delay(&run, peers.own_number(), &peers.members());
                let runs = Arc::clone(runs);
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    runs.queue.push(run);
                });
            }
        }
    }
}

/// Sends the updates of a run until it ends here, or the other side has enough. One that is too slow reads the log instead.
async fn send_updates(runs: &ActiveRuns, run: &RunId, mut exchange: Box<dyn Exchange>) {
    let Some(mut updates) = runs.find(run).map(|active| active.subscribe()) else { return };
    if exchange.send(SUBSCRIBED.to_vec()).await.is_err() {
        return;
    }
    loop {
        let update = tokio::select! {
            update = updates.recv() => update,
            received = exchange.receive() => match received {
                Ok(Some(_)) => continue,
                Ok(None) | Err(_) => return,
            },
        };
        let Ok(update) = update else { return };
        let Ok(message) = serde_json::to_vec(&*update) else { continue };
        if exchange.send(message).await.is_err() {
            return;
        }
    }
}

impl ActiveRuns {
    /// The updates of a run that another process of the cluster drives, from now on. The receiver is closed when they end or get
    /// lost. `None` if no process is known to drive the run.
    pub(super) async fn subscribe_at_peer(&self, run: &RunId) -> Option<broadcast::Receiver<Arc<RunUpdate>>> {
        let peers = self.config.peers.as_ref()?;
        let record = self.config.log.run(run).await.ok().filter(|record| record.leased)?;
        let number =
            number_of_owner(record.owner.as_deref()?).filter(|number| *number != peers.own_number())?;
        let request = serde_json::to_vec(&FollowRequest { run: run.clone() }).ok()?;
        let subscribing = async {
            let mut exchange = peers.open(number, RUN_PEER_SERVICE, request).await.ok()?;
            let first = exchange.receive().await.ok()??;
            (first == SUBSCRIBED).then_some(exchange)
        };
        let exchange = timeout(SUBSCRIBE_TIMEOUT, subscribing).await.ok()??;
        let sender = broadcast::Sender::new(MAX_BUFFERED_UPDATES);
        let receiver = sender.subscribe();
        tokio::spawn(receive_updates(exchange, sender));
        Some(receiver)
    }
}

async fn receive_updates(mut exchange: Box<dyn Exchange>, sender: broadcast::Sender<Arc<RunUpdate>>) {
    loop {
        let received = tokio::select! {
            received = exchange.receive() => received,
            () = sender.closed() => return,
        };
        let Ok(Some(message)) = received else { return };
        // A process of another version may send what this one does not know; what is logged is read from the log.
        let Ok(update) = serde_json::from_slice(&message) else { continue };
        if sender.send(Arc::new(update)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_of_a_cluster_names_its_number() {
        assert_eq!(number_of_owner(&cluster_owner("toolyard-7-ab", u64::MAX)), Some(u64::MAX));
        assert_eq!(number_of_owner(&cluster_owner("a@b", 12)), Some(12));
        for other in ["toolyard-7-ab", "", "@", "a@z", "toolyard-7-ab@000000000000000c-creates"] {
            assert_eq!(number_of_owner(other), None, "{other}");
        }
    }
}
