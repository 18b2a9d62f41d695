//! The tools of workers in a gateway: which definitions are approved, and how they are registered with the hub.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use toolyard::{name_user, settings::ClusterSettings};
use toolyard_cluster::{
    CallOutcomes,
    workers::{WorkerSink, WorkerTool, WorkerWatch},
};
use toolyard_core::{
    BoxFuture, ContentHash, RawJson, SourceId, SourceInfo, SourceKind, StoredDefinition, Tool, WorkerNetwork,
    WorkerObserver, unix_millis,
};
use toolyard_hub::ToolHub;
use toolyard_mcp::definition::{ValidTool, ValidationRules, validate_tool};
use toolyard_mcp_client::{CacheError, PinnedSource, ServerCache, ToolApprovals};

use crate::error::CliError;

/// How often the store is asked whether the operator approved a tool that is held.
const APPROVAL_CHECK_INTERVAL: Duration = Duration::from_secs(3);

/// The pinned source of a group of workers.
pub(in crate::commands) fn worker_source(group: &str, settings: Option<&ClusterSettings>) -> PinnedSource {
    let id = format!("{}{group}", SourceId::WORKER_PREFIX);
    let fingerprint = ContentHash::of(&id);
    PinnedSource::new(id, fingerprint, settings.is_some_and(|settings| settings.trusts_workers(group)))
}

/// The groups of workers whose tools a gateway serves.
#[derive(Clone)]
pub(super) struct WorkerSources {
    watch: Arc<WorkerWatch>,
    registry: Arc<WorkerRegistry>,
}

impl WorkerSources {
    /// Registers the tools that are known from earlier, as those of servers are before they are started.
    pub(super) async fn load(
        hub: Arc<ToolHub>,
        cache: ServerCache,
        network: Arc<dyn WorkerNetwork>,
        settings: ClusterSettings,
    ) -> Result<Self, CliError> {
        let watch = Arc::new(WorkerWatch::new(Arc::clone(&network), settings.workers.clone()));
        let registry = WorkerRegistry {
            hub,
            cache,
            network,
            settings,
            groups: Mutex::default(),
            outcomes: Arc::default(),
        };
        registry.load().await?;
        Ok(Self { watch, registry: Arc::new(registry) })
    }

    pub(super) fn observer(&self) -> Arc<dyn WorkerObserver> {
        Arc::clone(&self.watch) as _
    }

    /// Keeps the tools up to date. Never completes.
    pub(super) async fn follow(&self) {
        self.watch.run(&*self.registry).await;
    }

    pub(super) fn watch(&self) -> &WorkerWatch {
        &self.watch
    }

    /// What became of the calls of all tools.
    pub(super) fn outcomes(&self) -> &CallOutcomes {
        &self.registry.outcomes
    }

    /// The groups whose tools were seen, by name, and whether their declarations are believed.
    pub(super) fn groups(&self) -> Vec<(String, bool, ToolApprovals)> {
        let groups = self.registry.groups();
        groups
            .iter()
            .map(|(name, state)| (name.clone(), self.trusts(name), state.approvals.clone()))
            .collect()
    }

    /// Whether the declarations of a group about the effects of its tools are believed.
    pub(super) fn trusts(&self, group: &str) -> bool {
        self.registry.settings.trusts_workers(group)
    }
}

struct WorkerRegistry {
    hub: Arc<ToolHub>,
    cache: ServerCache,
    network: Arc<dyn WorkerNetwork>,
    settings: ClusterSettings,
    groups: Mutex<BTreeMap<String, GroupState>>,
    outcomes: Arc<CallOutcomes>,
}

/// What is registered of a group.
struct GroupState {
    approvals: ToolApprovals,
    processes: usize,
    checked_at: Instant,
}

impl WorkerRegistry {
    async fn load(&self) -> Result<(), CliError> {
        let known = self.cache.sources_with_prefix(SourceId::WORKER_PREFIX).await?;
        let groups = known.iter().filter_map(|id| id.as_str().strip_prefix(SourceId::WORKER_PREFIX));
        let groups: Vec<&str> = groups.filter(|group| self.settings.uses_workers(group)).collect();
        let sources: Vec<PinnedSource> = groups.iter().map(|group| self.source(group)).collect();
        let mut approvals = self.cache.approvals(&sources).await?;
        for (group, source) in groups.into_iter().zip(&sources) {
            if let Some(approvals) = approvals.remove(&source.id) {
                self.register(group, approvals, 0);
            }
        }
        Ok(())
    }

    fn source(&self, group: &str) -> PinnedSource {
        worker_source(group, Some(&self.settings))
    }

    fn groups(&self) -> MutexGuard<'_, BTreeMap<String, GroupState>> {
        self.groups.lock()
    }

    fn register(&self, group: &str, approvals: ToolApprovals, processes: usize) {
        let source = self.source(group);
        let tool = |tool: &toolyard_mcp_client::ApprovedTool| -> Arc<dyn Tool> {
            let network = Arc::clone(&self.network);
            let tool = WorkerTool::new(group, tool.spec.clone(), tool.pin, tool.claim.clone(), network);
            Arc::new(tool.counted_in(Arc::clone(&self.outcomes)))
        };
        let tools = approvals.approved().iter().map(|approved| tool(approved)).collect();
        let info =
            SourceInfo::new(source.id.clone(), SourceKind::Mcp).trusted(self.settings.trusts_workers(group));
        self.hub.register_with_quarantined(info, tools, approvals.quarantine_notices());
        if processes > 0 {
            self.hub.report_ready(&source.id);
        }
        let state = GroupState { approvals, processes, checked_at: Instant::now() };
        self.groups().insert(group.to_owned(), state);
    }

    /// Decides about the definitions of a group and registers the approved ones.
    async fn update(
        &self,
        group: &str,
        definitions: Vec<RawJson>,
        processes: usize,
    ) -> Result<(), CacheError> {
        let source = self.source(group);
        let history = self.cache.definitions(&source).await?;
        let chosen = choose_definitions(group, definitions, &history);
        let name_users = |tool: &str| name_user(&self.hub, tool);
        let decision = self.cache.update_tools(&source, None, chosen, &name_users, unix_millis()).await?;
        let approvals = ToolApprovals::from_decision(decision);
        let has_changed = self.groups().get(group).is_none_or(|state| state.approvals != approvals);
        if has_changed {
            let problem =
                approvals.problem_summary().map(|problem| format!(", {problem}")).unwrap_or_default();
            tracing::info!(group, "workers serve {} tools{problem}", approvals.approved().len());
            self.register(group, approvals, processes);
        }
        Ok(())
    }

    /// Registers what the operator approved meanwhile, with a command or at another gateway.
    async fn check_approvals(&self, group: &str) -> Result<(), CacheError> {
        let Some(pins) = self.cache.pins(&self.source(group)).await? else { return Ok(()) };
        let approvals = ToolApprovals::from_decision(pins.decision);
        let processes = match self.groups().get_mut(group) {
            Some(state) if state.approvals != approvals => state.processes,
            Some(state) => {
                state.checked_at = Instant::now();
                return Ok(());
            }
            None => return Ok(()),
        };
        self.register(group, approvals, processes);
        Ok(())
    }

    /// Groups with tools that are held, whose approvals were not read lately.
    fn groups_to_check(&self) -> Vec<String> {
        let groups = self.groups();
        let is_due = |state: &GroupState| {
            !state.approvals.quarantined.is_empty() && state.checked_at.elapsed() >= APPROVAL_CHECK_INTERVAL
        };
        groups.iter().filter(|(_, state)| is_due(state)).map(|(group, _)| group.clone()).collect()
    }
}

impl WorkerSink for WorkerRegistry {
    fn offered<'a>(
        &'a self,
        group: &'a str,
        definitions: Vec<RawJson>,
        processes: usize,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let before = {
                let mut groups = self.groups();
                groups.get_mut(group).map(|state| std::mem::replace(&mut state.processes, processes))
            };
            if processes == 0 {
                if before.is_some_and(|before| before > 0) {
                    // As for a server that is down, the tools stay: their calls say what is missing.
                    tracing::warn!(group, "no worker of the group is left; calls of its tools fail");
                }
                return true;
            }
            if before == Some(0) {
                self.hub.report_ready(&self.source(group).id);
            }
            let updated = self.update(group, definitions, processes).await;
            if let Err(error) = &updated {
                tracing::warn!(group, %error, "the tools of workers cannot be registered; trying again");
            }
            updated.is_ok()
        })
    }

    fn tick(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            for group in self.groups_to_check() {
                if let Err(error) = self.check_approvals(&group).await {
                    tracing::warn!(group, %error, "the approvals of a group of workers cannot be read");
                }
            }
        })
    }
}

/// One definition of each tool. If processes differ, an approved definition is preferred; a new one is shown to the operator when
/// no process has an approved one any more. Invalid definitions stay, to be reported.
fn choose_definitions(group: &str, definitions: Vec<RawJson>, history: &[StoredDefinition]) -> Vec<RawJson> {
    let approved: HashSet<(&str, ContentHash)> = history
        .iter()
        .filter(|stored| stored.approved)
        .map(|stored| (stored.tool.as_str(), stored.hash))
        .collect();
    let mut by_name: BTreeMap<Arc<str>, Vec<ValidTool>> = BTreeMap::new();
    let mut chosen = Vec::new();
    for definition in definitions {
        match validate_tool(&definition, ValidationRules::default()) {
            Ok(tool) => by_name.entry(Arc::clone(&tool.spec.name)).or_default().push(tool),
            Err(_) => chosen.push(definition),
        }
    }
    for (name, mut tools) in by_name {
        // All gateways choose the same.
        tools.sort_by_key(|tool| (!approved.contains(&(&*name, tool.hash)), tool.hash));
        if tools.iter().any(|tool| tools.first().is_some_and(|first| first.hash != tool.hash)) {
            tracing::warn!(group, tool = %name, "workers of one group have different definitions of a tool");
        }
        chosen.extend(tools.into_iter().next().map(|tool| tool.definition));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(description: &str) -> RawJson {
        RawJson::from_value(
            &json!({"name": "t", "description": description, "inputSchema": {"type": "object"}}),
        )
    }

    #[test]
    fn of_two_definitions_the_approved_one_is_chosen() {
        let hash = |definition: &RawJson| validate_tool(definition, ValidationRules::default()).unwrap().hash;
        let (a, b) = (definition("A"), definition("B"));
        for approved in [&a, &b] {
            let stored = StoredDefinition {
                tool: "t".to_owned(),
                hash: hash(approved),
                definition: approved.clone(),
                approved: true,
                first_seen_at: 1,
            };
            let chosen = choose_definitions("office", vec![a.clone(), b.clone()], &[stored]);
            assert_eq!(chosen, std::slice::from_ref(approved));
        }
        let either = choose_definitions("office", vec![a.clone(), b.clone()], &[]);
        assert_eq!(either, choose_definitions("office", vec![b, a], &[]), "all gateways choose the same");
    }

    #[test]
    fn an_invalid_definition_is_left_to_the_pins() {
        let invalid = RawJson::from_value(&json!({"name": "t", "inputSchema": true}));
        assert_eq!(choose_definitions("office", vec![invalid.clone()], &[]), [invalid]);
    }
}
