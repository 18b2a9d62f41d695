//! What the HTTP API shows and changes beyond the hub: statistics, the audit log, and agents in the store.

#[cfg(feature = "store")]
mod records;

use std::{fmt, sync::Arc};

use serde_json::Value;
use toolyard_core::{AgentOrigin, BoxFuture};
use toolyard_gateway::{
    AdminError, AdminProvider, AgentDefinition, AuditLogRecord, AuditLogVerification, AuditSelection,
    CallStatistics,
};

#[cfg(feature = "store")]
pub(crate) use records::StoredRecords;
#[cfg(feature = "store")]
use toolyard_gateway::StoreGauges;

use crate::{Agents, AgentsError, agents::ReloadableAgents, settings::AgentSettings};

impl crate::Toolyard {
    /// What the HTTP API shows and changes beyond the hub.
    pub(crate) fn admin(&self) -> ToolyardAdmin {
        ToolyardAdmin {
            agents: Arc::clone(&self.reloadable.agents),
            #[cfg(feature = "store")]
            records: self.stored_records(),
        }
    }
}

/// Provides what the HTTP API shows of a [`Toolyard`](crate::Toolyard).
pub(crate) struct ToolyardAdmin {
    pub(crate) agents: Arc<ReloadableAgents>,
    #[cfg(feature = "store")]
    pub(crate) records: Option<StoredRecords>,
}

impl fmt::Debug for ToolyardAdmin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolyardAdmin").field("agents", &self.agents).finish_non_exhaustive()
    }
}

impl AdminProvider for ToolyardAdmin {
    #[cfg(feature = "store")]
    fn statistics(&self) -> Vec<CallStatistics> {
        self.records.as_ref().map(StoredRecords::statistics).unwrap_or_default()
    }

    #[cfg(feature = "store")]
    fn store_gauges(&self) -> Option<StoreGauges> {
        self.records.as_ref().map(StoredRecords::gauges)
    }

    #[cfg(not(feature = "store"))]
    fn statistics(&self) -> Vec<CallStatistics> {
        Vec::new()
    }

    #[cfg(feature = "store")]
    fn audit(&self, selection: AuditSelection) -> BoxFuture<'_, Result<Vec<AuditLogRecord>, AdminError>> {
        Box::pin(async move { self.records.as_ref().ok_or(AdminError::NoStore)?.audit(selection).await })
    }

    #[cfg(not(feature = "store"))]
    fn audit(&self, _selection: AuditSelection) -> BoxFuture<'_, Result<Vec<AuditLogRecord>, AdminError>> {
        Box::pin(std::future::ready(Err(AdminError::NoStore)))
    }

    #[cfg(feature = "store")]
    fn verify_audit(&self) -> BoxFuture<'_, Result<AuditLogVerification, AdminError>> {
        Box::pin(async move { self.records.as_ref().ok_or(AdminError::NoStore)?.verify_audit().await })
    }

    #[cfg(not(feature = "store"))]
    fn verify_audit(&self) -> BoxFuture<'_, Result<AuditLogVerification, AdminError>> {
        Box::pin(std::future::ready(Err(AdminError::NoStore)))
    }

    fn agents(&self) -> BoxFuture<'_, Result<Vec<AgentDefinition>, AdminError>> {
        Box::pin(async move {
            let agents = self.agents.current();
            agents.refresh().await;
            agents.names().iter().map(|name| definition(&agents, name)).collect()
        })
    }

    fn add_agent<'a>(
        &'a self,
        name: &'a str,
        config: Value,
        by: &'a str,
    ) -> BoxFuture<'a, Result<AgentDefinition, AdminError>> {
        Box::pin(async move {
            let agents = self.agents.current();
            agents.add(name, &parse(config)?, by).await.map_err(change_error)?;
            definition(&agents, name)
        })
    }

    fn replace_agent<'a>(
        &'a self,
        name: &'a str,
        config: Value,
        by: &'a str,
    ) -> BoxFuture<'a, Result<AgentDefinition, AdminError>> {
        Box::pin(async move {
            let agents = self.agents.current();
            agents.replace(name, &parse(config)?, by).await.map_err(change_error)?;
            definition(&agents, name)
        })
    }

    fn remove_agent<'a>(&'a self, name: &'a str, by: &'a str) -> BoxFuture<'a, Result<(), AdminError>> {
        Box::pin(async move { self.agents.current().remove(name, by).await.map_err(change_error) })
    }
}

fn parse(config: Value) -> Result<AgentSettings, AdminError> {
    if !config.is_object() {
        return Err(AdminError::InvalidAgent("`config` must be an object".to_owned()));
    }
    serde_json::from_value(config)
        .map_err(|error| AdminError::InvalidAgent(format!("`config` is invalid: {error}")))
}

fn definition(agents: &Agents, name: &str) -> Result<AgentDefinition, AdminError> {
    let settings = agents.agent_settings(name).map_err(change_error)?;
    Ok(AgentDefinition {
        name: name.to_owned(),
        description: settings.description.clone(),
        model: settings.model.clone(),
        origin: agents.origin(name).unwrap_or(AgentOrigin::BuiltIn),
        config: serde_json::to_value(&settings).map_err(|error| AdminError::Storage(error.to_string()))?,
    })
}

fn change_error(error: AgentsError) -> AdminError {
    match error {
        AgentsError::Unknown { name, .. } => AdminError::UnknownAgent(name),
        AgentsError::Exists(name) => AdminError::AgentExists(name),
        AgentsError::ReadOnly(name) => AdminError::ReadOnlyAgent(name),
        AgentsError::InvalidName(_) => AdminError::InvalidAgent(error.to_string()),
        AgentsError::Storage(_) | AgentsError::Models(_) => AdminError::Storage(error.to_string()),
    }
}
