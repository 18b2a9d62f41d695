//! Texts of the page of the cluster.

use crate::api::{ClusterMemberState, WorkerGroupState};

texts! { ClusterText {
    title: "Cluster", "集群";
    lead: "The gateways and workers of this cluster, as this gateway sees them.", "此网关所看到的集群网关与工作进程。";
    not_offered: "This gateway is in no cluster.", "此网关不属于任何集群。";
    not_offered_hint: "A cluster needs PostgreSQL, NATS and [cluster] in the settings.", "集群需要 PostgreSQL、NATS 以及设置中的 [cluster]。";
    nats_connected: "Connected to NATS", "已连接 NATS";
    nats_away: "Not connected to NATS", "未连接 NATS";
    nats_away_hint: "This gateway learns of no other process, and forwarded calls fail.", "此网关收不到其他进程的消息，转发的调用会失败。";
    summary_gateways: "Gateways: {}", "网关：{}";
    summary_workers: "Worker processes: {}", "工作进程：{}";
    gateways: "Gateways", "网关";
    gateway: "Gateway", "网关";
    this_gateway: "this gateway", "当前网关";
    version: "Version", "版本";
    sessions: "Sessions", "会话";
    sessions_help: "Sessions with stateful servers that a gateway owns.", "网关持有的有状态服务器会话。";
    sessions_unknown: "The store does not say which gateway owns which session.", "存储未返回会话的归属。";
    no_sessions: "No gateway owns a session with a stateful server.", "没有网关持有有状态服务器的会话。";
    last_seen: "Last seen", "最近出现";
    workers: "Workers", "工作进程";
    no_workers: "No worker has announced itself.", "尚无工作进程上线。";
    no_workers_hint: "Start one with toolyard worker NAME, and name its group in [cluster] workers.", "使用 toolyard worker NAME 启动，并在 [cluster] workers 中列出其组名。";
    group: "Group", "组";
    process: "Process", "进程";
    processes: "Processes", "进程数";
    calls: "Running calls", "执行中的调用";
    calls_help: "Calls that it was executing when it was last seen, of those that it executes at the same time at most.", "最近出现时正在执行的调用数与并发上限。";
    awaiting: "Awaiting approval: {}", "待批准：{}";
    approve_hint: "Changed definitions are approved with toolyard servers approve.", "定义变更后需用 toolyard servers approve 批准。";
    more: "{} more are not shown.", "另有 {} 项未显示。";
    state_seen: "Seen", "在线";
    state_leaving: "Leaving", "正在退出";
    state_lost: "Lost", "失联";
    state_available: "Available", "可用";
    state_no_process: "No process", "没有进程";
} }

impl ClusterText {
    /// The name of the state of a process.
    pub(crate) fn member_state(&self, state: &ClusterMemberState) -> &'static str {
        match state {
            ClusterMemberState::Seen => self.state_seen,
            ClusterMemberState::Leaving => self.state_leaving,
            ClusterMemberState::Lost => self.state_lost,
        }
    }

    /// The name of the state of a group of workers.
    pub(crate) fn group_state(&self, state: &WorkerGroupState) -> &'static str {
        match state {
            WorkerGroupState::Available => self.state_available,
            WorkerGroupState::NoProcess => self.state_no_process,
        }
    }
}
