//! The client of the HTTP API and the bodies of its responses.
//!
//! The bodies are the gateway's own types. Those about runs are [`run_views`]: tolerant shapes of what pages show of them.

mod client;
mod failure;
mod run_views;

pub(crate) use toolyard_gateway::responses::{
    AgentDefinition, AgentList, AuditLogRecord, AuditLogVerification, AuditPage, CallStatistics,
    ClusterMemberState, ClusterReport, ClusterWorker, ClusterWorkerGroup, HeldTool, ImportReport,
    ImportState, ImportableServer, Overview, ServerDetails, ServerList, ServerView, SettingOrigin,
    SettingValue, SettingsReport, StatisticsList, ToolCallResult, ToolDetails, ToolList, ToolView,
    WorkerGroupState,
};

pub(crate) use client::ApiClient;
pub(crate) use failure::ApiFailure;
pub(crate) use run_views::*;
