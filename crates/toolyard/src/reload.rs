//! Replaces settings while connections, calls and runs go on.

use std::{path::PathBuf, sync::Arc};

use arc_swap::ArcSwap;
use toolyard_core::{SourceId, SourceKind};
use toolyard_hub::{HubSettings, OutputLimits, RetryPolicy};
use toolyard_mcp_client::{ConfigChanges, config::McpServerConfig};
use toolyard_tools::skill::LoadedSkills;

use crate::{
    Agents, Error, Models, Settings, SettingsError, SkillEnvironment, Toolyard, agents::ReloadableAgents,
    policy::hub_policy, synthesis::synthesizer, toolyard::load_skills,
};

/// New settings, and what was read along with them.
#[derive(Debug)]
pub struct ReloadedSettings {
    /// The settings.
    pub settings: Settings,
    /// The models of the settings.
    pub models: Models,
    /// The MCP servers.
    pub servers: Vec<McpServerConfig>,
    /// Where skills are found.
    pub skill_environment: Option<SkillEnvironment>,
}

/// What a reload replaces or compares with.
#[derive(Debug)]
pub(crate) struct Reloadable {
    /// The agents that clients use.
    pub(crate) agents: Arc<ReloadableAgents>,
    /// What relative paths of policy files are relative to; `None` if the application brought the policy, which stays then.
    pub(crate) policy_folder: Option<PathBuf>,
    /// Held while settings change: each change starts from what is in effect then.
    changing: tokio::sync::Mutex<()>,
    initial_settings: Settings,
    current_settings: ArcSwap<Settings>,
}

impl Reloadable {
    pub(crate) fn new(settings: Settings, agents: Agents, policy_folder: Option<PathBuf>) -> Self {
        Self {
            agents: Arc::new(ReloadableAgents::new(agents)),
            policy_folder,
            changing: tokio::sync::Mutex::default(),
            initial_settings: settings.clone(),
            current_settings: ArcSwap::from_pointee(settings),
        }
    }
}

/// What a reload changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReloadReport {
    /// The servers.
    pub servers: ConfigChanges,
    /// Settings that differ from those at the start and take effect at the next start only: keys or tables.
    pub needs_restart: Vec<&'static str>,
}

impl Toolyard {
    /// Replaces the settings that can be replaced: routing, hints, limits of calls, approvals, servers, skills, agents and
    /// models. Calls and runs that have begun keep the settings they began with; servers that did not change are not
    /// disturbed, and others finish their calls. New servers are started once, to learn their tools. If it fails, the previous
    /// settings stay in effect.
    pub async fn reload(&self, next: ReloadedSettings) -> Result<ReloadReport, Error> {
        let ReloadedSettings { settings, models, servers, skill_environment } = next;
        let _changing = self.reloadable.changing.lock().await;
        let skills = match &skill_environment {
            Some(environment) => Some(self.reload_skills(environment).await?),
            None => None,
        };
        let policy = match &self.reloadable.policy_folder {
            Some(folder) => hub_policy(&settings, folder)?,
            None => self.hub().policy(),
        };
        let (previous_policy, previous_quota) = (self.hub().policy(), self.hub().quota());
        let quota = match self.reloadable.current_settings.load().quotas == settings.quotas {
            // What was counted without a store still counts.
            true => previous_quota.clone(),
            false => crate::quotas::hub_quota(&settings, self.quota_budgets(), previous_quota.as_deref())
                .map_err(SettingsError::from)?,
        };
        // Before the servers: tools of a new server must not be offered without the rules about them.
        self.hub().set_policy(policy);
        self.hub().set_quota(quota);
        self.hub().reconfigure(hub_settings(&settings, &models));
        let servers = match self.reload_servers(servers).await {
            Ok(changes) => changes,
            Err(Error::WithoutServers) => ConfigChanges::default(),
            Err(error) => {
                let (settings, agents) =
                    (self.reloadable.current_settings.load(), self.reloadable.agents.current());
                self.hub().set_policy(previous_policy);
                self.hub().set_quota(previous_quota);
                self.hub().reconfigure(hub_settings(&settings, &agents.models));
                return Err(error);
            }
        };
        if let Some(skills) = skills {
            let known: Vec<SourceId> = skills.sources.iter().map(|(source, _)| source.id.clone()).collect();
            for (source, tools) in skills.sources {
                self.hub().register(source, tools);
            }
            let registered =
                self.hub().snapshot().sources().into_iter().map(|entry| entry.source.info.clone());
            for source in registered.filter(|source| source.kind == SourceKind::Skill) {
                if !known.contains(&source.id) {
                    self.hub().remove(&source.id);
                }
            }
        }
        let mut agents = Agents::clone(&self.agents());
        agents.settings = settings.agents.clone().into();
        agents.approval_rules = settings.approvals.rules();
        agents.tool_timeout = settings.call.timeout.map(|timeout| timeout.0);
        agents.models = models;
        self.reloadable.agents.replace(agents);
        let needs_restart = needs_restart(&self.reloadable.initial_settings, &settings);
        self.reloadable.current_settings.store(settings.into());
        if let Some(manager) = self.servers().cloned() {
            manager.set_isolation_limits(self.reloadable.current_settings.load().isolation.limits());
            tokio::spawn(async move { manager.discover().await });
        }
        Ok(ReloadReport { servers, needs_restart })
    }
}

impl Toolyard {
    /// How long the store keeps what it has, by the settings in effect.
    #[cfg(feature = "store")]
    pub fn retention(&self) -> toolyard_store::Retention {
        self.reloadable.current_settings.load().retention.retention()
    }

    #[cfg(feature = "store")]
    fn quota_budgets(&self) -> Option<Arc<dyn toolyard_core::QuotaBudgets>> {
        Some(Arc::new(self.store()?.clone()))
    }

    #[cfg(not(feature = "store"))]
    #[expect(clippy::unused_self, reason = "the same signature with every feature")]
    fn quota_budgets(&self) -> Option<Arc<dyn toolyard_core::QuotaBudgets>> {
        None
    }

    #[cfg(feature = "store")]
    async fn reload_skills(&self, environment: &SkillEnvironment) -> Result<LoadedSkills, Error> {
        Ok(load_skills(environment, self.store()).await?)
    }

    #[cfg(not(feature = "store"))]
    async fn reload_skills(&self, environment: &SkillEnvironment) -> Result<LoadedSkills, Error> {
        Ok(load_skills(environment).await?)
    }
}

pub(crate) fn hub_settings(settings: &Settings, models: &Models) -> HubSettings {
    HubSettings {
        rules: settings.routing_rules(),
        capabilities: settings.capability_table(),
        limits: OutputLimits::default(),
        retry: RetryPolicy::default(),
        synthesizer: synthesizer(settings.call.synthesis, models),
    }
}

/// The settings that are read at the start only and differ now.
fn needs_restart(initial: &Settings, next: &Settings) -> Vec<&'static str> {
    let (before, after) = (&initial.serve, &next.serve);
    // By default, a gateway with a model offers agents.
    let offers_agents = |settings: &Settings| settings.serve.agents.unwrap_or(!settings.models.is_empty());
    let changed = [
        ("store", initial.store != next.store),
        ("journal", initial.journal != next.journal),
        ("audit", initial.audit != next.audit),
        ("time", initial.time != next.time),
        ("web_search", initial.web_search != next.web_search),
        ("search", initial.search != next.search),
        ("serve.agents", offers_agents(initial) != offers_agents(next)),
        ("serve.remote_approval", before.remote_approval != after.remote_approval),
        ("serve.run_lease", before.run_lease != after.run_lease),
        ("serve.max_runs", before.max_runs != after.max_runs),
        ("serve.public_url", before.public_url != after.public_url),
        ("serve.drain", before.drain != after.drain),
        ("telemetry", initial.telemetry != next.telemetry),
    ];
    changed.into_iter().filter(|(_, is_changed)| *is_changed).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse(text: &str) -> Settings {
        Settings::parse(text, Path::new("toolyard.toml")).unwrap()
    }

    #[tokio::test]
    async fn a_changed_call_timeout_holds_for_agents() {
        let toolyard = Toolyard::builder().build().await.unwrap();
        let settings = parse("[call]\ntimeout = \"7s\"");
        let models = Models::new(&settings, |_| None);
        let next = ReloadedSettings { settings, models, servers: Vec::new(), skill_environment: None };
        assert_eq!(toolyard.reload(next).await.unwrap().needs_restart, [""; 0]);
        let config = toolyard.agents().config("assistant").unwrap();
        assert_eq!(config.tool_timeout.map(|timeout| timeout.as_secs()), Some(7));
    }

    #[tokio::test]
    async fn changed_quotas_hold_and_unchanged_ones_go_on_counting() {
        let toolyard = Toolyard::builder().build().await.unwrap();
        let reload = |text: &str| {
            let settings = parse(text);
            let models = Models::new(&settings, |_| None);
            toolyard.reload(ReloadedSettings {
                settings,
                models,
                servers: Vec::new(),
                skill_environment: None,
            })
        };
        let quota = "[[quotas]]\nname = \"one\"\ncalls = { limit = 1, window = \"1h\" }\n";
        let calculate = || toolyard.call("calculate", serde_json::json!({"expression": "1+1"}));
        reload(quota).await.unwrap();
        assert!(calculate().await.is_ok() && calculate().await.is_err());
        reload(&format!("{quota}[call]\ntimeout = \"2s\"\n")).await.unwrap();
        assert!(calculate().await.is_err(), "the quota did not change");
        let invalid = reload("[[quotas]]\nname = \"none\"\n").await.unwrap_err();
        assert!(invalid.to_string().contains("has no limit"), "{invalid}");
        assert!(calculate().await.is_err(), "the previous quotas stay in effect");
        reload(&quota.replace("limit = 1", "limit = 2")).await.unwrap();
        assert!(calculate().await.is_ok() && calculate().await.is_err(), "the first call still counts");
        reload("").await.unwrap();
        assert!(calculate().await.is_ok());
    }

    #[test]
    fn settings_that_are_read_at_the_start_need_a_restart() {
        let changed = |text: &str| needs_restart(&Settings::default(), &parse(text));
        assert_eq!(changed("[routing.pin]\npay = \"bank\"\n[serve]\nallowed_hosts = [\"a\"]"), [""; 0]);
        let model = "[models.local]\nurl = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n";
        assert_eq!(changed(model), ["serve.agents"]);
        assert_eq!(changed(&format!("{model}[serve]\nagents = false")), [""; 0]);
        assert_eq!(changed("store = \"other.db\"\n[serve]\ndrain = \"3s\""), ["store", "serve.drain"]);
        assert_eq!(
            changed("[telemetry]\nmetrics = \"off\""),
            ["telemetry"],
            "else `/metrics` would seem to be off"
        );
    }
}
