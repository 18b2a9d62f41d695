//! [`ClusterStatus`]: what the HTTP API and metrics show of the cluster that this gateway belongs to.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use toolyard_cluster::{ownership::SessionOwners, workers::WorkerProcessStatus};
use toolyard_core::{BoxFuture, LeaseCount, Peers as _, SourceId, redact, unix_millis};
use toolyard_gateway::{
    ClusterGateway, ClusterGauges, ClusterMemberState, ClusterProvider, ClusterReport, ClusterSessions,
    ClusterWorker, ClusterWorkerGroup, ToolAwaitingApproval, WorkerGroupState,
};
use toolyard_mcp_client::ToolApprovals;
use toolyard_nats::{ClusterMember, MemberState, NatsPeers};

use super::workers::WorkerSources;

/// How long a request waits for the store, which knows the owners of sessions.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The cluster as this gateway sees it.
pub(super) struct ClusterStatus {
    peers: Arc<NatsPeers>,
    owners: Arc<SessionOwners>,
    workers: Option<WorkerSources>,
}

impl ClusterStatus {
    pub(super) fn new(
        peers: Arc<NatsPeers>,
        owners: Arc<SessionOwners>,
        workers: Option<WorkerSources>,
    ) -> Self {
        Self { peers, owners, workers }
    }

    async fn report(&self, with_sessions: bool) -> ClusterReport {
        let sessions = if with_sessions { self.sessions().await } else { None };
        ClusterReport {
            nats_connected: self.peers.connection().is_connected(),
            gateways: gateways(
                self.peers.all_members(),
                self.peers.own_number(),
                sessions.as_deref().unwrap_or_default(),
                unix_millis(),
            ),
            workers: self.worker_groups(),
            sessions: sessions.map(|sessions| sessions.into_iter().map(session_view).collect()),
        }
    }

    /// The sessions of each gateway, if the store answers in time.
    async fn sessions(&self) -> Option<Vec<LeaseCount>> {
        match tokio::time::timeout(STORE_TIMEOUT, self.owners.count_sessions()).await {
            Ok(Ok(sessions)) => return Some(sessions),
            Ok(Err(error)) => tracing::warn!(%error, "the owners of sessions cannot be read"),
            Err(_elapsed) => {
                tracing::warn!(timeout = ?STORE_TIMEOUT, "the store does not say in time who owns sessions");
            }
        }
        None
    }

    fn worker_groups(&self) -> Vec<ClusterWorkerGroup> {
        let Some(workers) = &self.workers else { return Vec::new() };
        let (mut processes, now) = (workers.watch().processes(), unix_millis());
        let mut groups: BTreeMap<String, ClusterWorkerGroup> = BTreeMap::new();
        for (name, trusted, approvals) in workers.groups() {
            let found = processes.remove(name.as_str()).unwrap_or_default();
            groups.insert(name.clone(), worker_group(name, trusted, &approvals, &found, now));
        }
        // Groups whose tools are not known yet.
        for (name, found) in processes {
            let (name, trusted) = (name.to_string(), workers.trusts(&name));
            let group = worker_group(name.clone(), trusted, &ToolApprovals::default(), &found, now);
            groups.insert(name, group);
        }
        groups.into_values().collect()
    }
}

impl fmt::Debug for ClusterStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterStatus").finish_non_exhaustive()
    }
}

impl ClusterProvider for ClusterStatus {
    fn cluster(&self, with_sessions: bool) -> BoxFuture<'_, ClusterReport> {
        Box::pin(self.report(with_sessions))
    }

    fn gauges(&self) -> ClusterGauges {
        let ownership = self.owners.statistics();
        let worker_calls = self.workers.iter().flat_map(|workers| workers.outcomes().counts()).collect();
        let workers = self.workers.as_ref().map_or(0, |workers| workers.watch().process_count());
        ClusterGauges {
            is_connected: self.peers.connection().is_connected(),
            gateways: self.peers.members().len() as u64,
            workers: workers as u64,
            owned_sessions: ownership.owned as u64,
            session_takeovers: ownership.takeovers,
            lost_sessions: ownership.losses,
            forwarded_calls: self.owners.forwarded_calls().counts().to_vec(),
            worker_calls,
        }
    }
}

/// The members, and processes that own sessions and do not answer: their leases end soon.
fn gateways(members: Vec<ClusterMember>, own: u64, sessions: &[LeaseCount], now: i64) -> Vec<ClusterGateway> {
    let silent = sessions.iter().map(|count| count.holder.clone());
    let silent = silent.map(|process| ClusterGateway {
        process,
        name: None,
        version: None,
        state: ClusterMemberState::Lost,
        is_this: false,
        last_seen_at: None,
    });
    let members = members.into_iter().map(|member| ClusterGateway {
        process: format!("{:016x}", member.number),
        name: member.name,
        version: Some(member.version),
        state: match member.state {
            MemberState::Seen => ClusterMemberState::Seen,
            MemberState::Leaving => ClusterMemberState::Leaving,
            MemberState::Lost => ClusterMemberState::Lost,
        },
        is_this: member.number == own,
        last_seen_at: Some(time_ago(now, member.silent_for)),
    });
    let by_process = silent.chain(members).map(|gateway| (gateway.process.clone(), gateway));
    by_process.collect::<BTreeMap<_, _>>().into_values().collect()
}

fn worker_group(
    name: String,
    trusted: bool,
    approvals: &ToolApprovals,
    processes: &[WorkerProcessStatus],
    now: i64,
) -> ClusterWorkerGroup {
    let has_process = processes.iter().any(|process| !process.is_lost);
    let awaiting = |tool: &toolyard_mcp_client::QuarantinedTool| ToolAwaitingApproval {
        tool: tool.name.clone(),
        reason: redact(&tool.reason).into_owned(),
    };
    ClusterWorkerGroup {
        source: format!("{}{name}", SourceId::WORKER_PREFIX),
        name,
        state: if has_process { WorkerGroupState::Available } else { WorkerGroupState::NoProcess },
        trusted,
        tools: approvals.approved().len(),
        awaiting_approval: approvals.quarantined.iter().map(awaiting).collect(),
        problem: approvals.problem_summary(),
        processes: processes.iter().map(|process| worker_view(process, now)).collect(),
    }
}

fn worker_view(status: &WorkerProcessStatus, now: i64) -> ClusterWorker {
    ClusterWorker {
        process: format!("{:016x}", status.process),
        name: status.name.as_deref().map(str::to_owned),
        state: if status.is_lost { ClusterMemberState::Lost } else { ClusterMemberState::Seen },
        last_seen_at: time_ago(now, status.silent_for),
        tools: status.tools,
        concurrency: status.concurrency,
        running_calls: status.running_calls,
    }
}

fn session_view(count: LeaseCount) -> ClusterSessions {
    ClusterSessions { server: count.subject, gateway: count.holder, sessions: count.leases }
}

fn time_ago(now: i64, ago: Duration) -> i64 {
    now.saturating_sub(i64::try_from(ago.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_that_does_not_answer_is_lost() {
        let member = ClusterMember {
            number: 1,
            name: Some("host:7".to_owned()),
            version: "1.0".to_owned(),
            state: MemberState::Seen,
            silent_for: Duration::from_secs(1),
        };
        let lease =
            |holder: &str| LeaseCount { subject: "notes".to_owned(), holder: holder.to_owned(), leases: 1 };
        let own = format!("{:016x}", 1);
        let found = gateways(vec![member], 1, &[lease(&own), lease("00ff")], 5_000);
        let states: Vec<_> =
            found.iter().map(|gateway| (gateway.process.as_str(), gateway.state, gateway.is_this)).collect();
        assert_eq!(
            states,
            [(own.as_str(), ClusterMemberState::Seen, true), ("00ff", ClusterMemberState::Lost, false)]
        );
        assert_eq!(found.first().and_then(|gateway| gateway.last_seen_at), Some(4_000));
    }
}
