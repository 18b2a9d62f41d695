//! Groups of workers among the servers: what gateways stored about them, and the approval of their tools.

use serde_json::{Value, json};
use toolyard::name_user;
use toolyard_core::{SourceId, unix_millis};
use toolyard_hub::ToolHub;
use toolyard_mcp_client::{McpManager, PinnedSource, ServerPins, ToolApprovals};

use super::{
    approve::{ApprovalRequest, confirm_tools},
    print_unusable_tools,
};
use crate::{commands::serve::workers::worker_source, config::CliContext, error::CliError, terminal::Output};

/// What the list shows as the endpoint of a group.
const ENDPOINT: &str = "workers over NATS";

/// A group of workers, as gateways saw it last.
pub(super) struct WorkerGroup {
    source: PinnedSource,
    trusted: bool,
    seen_at: i64,
    approvals: ToolApprovals,
}

impl WorkerGroup {
    /// The groups that the settings name and that a gateway has seen.
    pub(super) async fn all(manager: &McpManager, context: &CliContext) -> Result<Vec<Self>, CliError> {
        let Some(settings) = &context.settings.cluster else { return Ok(Vec::new()) };
        let mut groups = Vec::new();
        for id in manager.cache().sources_with_prefix(SourceId::WORKER_PREFIX).await? {
            let name = id.as_str().strip_prefix(SourceId::WORKER_PREFIX).unwrap_or_default();
            if settings.uses_workers(name) {
                groups.extend(Self::find(manager, name, context).await?);
            }
        }
        Ok(groups)
    }

    /// A group by its name or source; none if no gateway has seen it.
    pub(super) async fn find(
        manager: &McpManager,
        name: &str,
        context: &CliContext,
    ) -> Result<Option<Self>, CliError> {
        let settings = context.settings.cluster.as_ref();
        let name = name.strip_prefix(SourceId::WORKER_PREFIX).unwrap_or(name);
        let source = worker_source(name, settings);
        let pins = manager.cache().pins(&source).await?;
        Ok(pins.map(|ServerPins { record, decision }| Self {
            source,
            trusted: settings.is_some_and(|settings| settings.trusts_workers(name)),
            seen_at: record.seen_at,
            approvals: ToolApprovals::from_decision(decision),
        }))
    }

    pub(super) fn row(&self) -> [String; 5] {
        [
            self.source.id.to_string(),
            self.state(),
            self.approvals.approved().len().to_string(),
            self.approvals.problem_summary().unwrap_or_default(),
            ENDPOINT.to_owned(),
        ]
    }

    pub(super) fn to_json(&self) -> Value {
        let approvals = &self.approvals;
        json!({
            "name": self.source.id,
            "state": "workers",
            "seen_at": self.seen_at,
            "endpoint": ENDPOINT,
            "trusted": self.trusted,
            "tools": approvals.approved().iter().map(|tool| &tool.spec.name).collect::<Vec<_>>(),
            "awaiting_approval": approvals.quarantined.iter().map(|tool| json!({
                "name": tool.name, "reason": tool.reason, "difference": tool.difference,
            })).collect::<Vec<_>>(),
            "rejected": approvals.rejected.iter().map(|tool| json!({
                "name": tool.name, "reason": tool.reason,
            })).collect::<Vec<_>>(),
        })
    }

    pub(super) fn show(&self, output: &Output) {
        if output.is_json() {
            return output.json(&self.to_json());
        }
        let id = &self.source.id;
        output.line(&format!("{id}   {}", self.state()));
        output.line(&format!("  Endpoint: {ENDPOINT}"));
        output.line(&format!("  Trusted: {}", if self.trusted { "yes" } else { "no" }));
        let names: Vec<&str> = self.approvals.approved().iter().map(|tool| &*tool.spec.name).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        output.line(&format!("  Tools: {names}"));
        print_unusable_tools(&self.approvals, output);
        if !self.approvals.quarantined.is_empty() {
            output.message(&format!("  hint: accept the change: toolyard servers approve {id}"));
        }
    }

    /// Approves tools as the gateways saw them last. Running gateways notice it within seconds.
    pub(super) async fn approve(
        &self,
        (manager, hub): (&McpManager, &ToolHub),
        request: &ApprovalRequest<'_>,
        context: &CliContext,
        output: &Output,
    ) -> Result<(), CliError> {
        let id = &self.source.id;
        if request.take_names {
            let hint = format!("pin it in toolyard.toml: [routing.pin] TOOL = \"{id}\"");
            return Err(CliError::usage("--take-names is for servers, not for workers").with_hint(hint));
        }
        let confirmed = confirm_tools(id, &self.approvals, request, context, output).await?;
        if !confirmed.is_empty() {
            let name_users = |tool: &str| name_user(hub, tool);
            let cache = manager.cache();
            cache.approve(&self.source, Some(&confirmed), &name_users, unix_millis()).await?;
        }
        let names: Vec<&String> = confirmed.iter().map(|(name, _)| name).collect();
        if output.is_json() {
            output.json(&json!({"server": id, "approved": names, "names": []}));
        } else if !names.is_empty() {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            output.message(&format!("approved {}; gateways use it within seconds", names.join(", ")));
        }
        Ok(())
    }

    fn state(&self) -> String {
        let seconds = unix_millis().saturating_sub(self.seen_at).max(0) / 1_000;
        match seconds {
            0..60 => "changed just now".to_owned(),
            60..3_600 => format!("changed {} min ago", seconds / 60),
            3_600..86_400 => format!("changed {} h ago", seconds / 3_600),
            _ => format!("changed {} d ago", seconds / 86_400),
        }
    }
}
