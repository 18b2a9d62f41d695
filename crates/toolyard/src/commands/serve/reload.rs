//! Reloads the settings on SIGHUP, and when the user or a command such as `toolyard servers add` changed the operator's file.
//! Connections, calls and runs go on; settings that cannot be used change nothing.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::timeout;
use toolyard::{
    ReloadReport, ReloadedSettings, Toolyard,
    settings::{AuditSetting, ServeSettings},
};
use toolyard_core::{AuditedDecision, Authenticator, ContentHash, SourceId};
use toolyard_gateway::{AgentService, GatewayConfig, MainTools};
use toolyard_hub::Profile;
use toolyard_mcp_server::{Access, AccessRules, AccessToken, McpServer, SharedAccessRules};

use super::{
    callers::CallerAuthentication,
    gateway_config, http_profiles,
    operator::OperatorSettings,
    policies::record_policy_files,
    readiness::{GatewayReadiness, check_required_servers},
    secrets::Secrets,
    serve_settings,
    sign_in::allow_pages,
};
use crate::{
    cli::ServeArgs,
    commands::models::tool_calling_cache,
    config::{CliContext, record_decision, running_hubs::ReloadRequests},
    error::CliError,
    terminal::{logging::SETTINGS_TARGET, progress::HangupSignals},
};

/// A reload that takes longer is reported: it reads and writes the store.
const SLOW_RELOAD: Duration = Duration::from_secs(2);

/// A running gateway, and how it was started.
pub(super) struct RunningGateway<'a> {
    pub(super) arguments: &'a ServeArgs,
    pub(super) context: &'a CliContext,
    pub(super) toolyard: &'a Toolyard,
    pub(super) server: Arc<McpServer>,
    pub(super) agents: Option<AgentService>,
    /// What a gateway on HTTP has besides; none on stdio.
    pub(super) http: Option<RunningHttp>,
    pub(super) requests: ReloadRequests,
}

/// What a gateway on HTTP has besides.
pub(super) struct RunningHttp {
    pub(super) access: SharedAccessRules,
    pub(super) callers: CallerAuthentication,
    pub(super) readiness: Arc<GatewayReadiness>,
    /// The tools of the main endpoint, as the HTTP API offers them.
    pub(super) main_tools: MainTools,
    pub(super) settings: Arc<OperatorSettings>,
    /// Whether SIGHUP means that the terminal was closed.
    pub(super) is_interactive: bool,
    pub(super) hangups: HangupSignals,
}

/// What a reload is compared with.
struct SettingsInEffect {
    profiles: Vec<Profile>,
    skill_folders: Vec<std::path::PathBuf>,
    /// Problems of servers that were there before.
    server_problems: Vec<String>,
}

impl RunningGateway<'_> {
    /// Reloads the settings at every SIGHUP, at every request of another command, and when their file was edited. Never
    /// completes.
    pub(super) async fn reload_when_asked(&mut self) {
        let serve = serve_settings(self.arguments, self.context);
        let mut in_effect = SettingsInEffect {
            profiles: self.all_profiles(&serve).unwrap_or_default(),
            skill_folders: skill_folders(self.context),
            server_problems: self.context.server_problems.clone(),
        };
        loop {
            self.next_request().await;
            self.requests.note_reload();
            tracing::info!(target: SETTINGS_TARGET, "reloading settings");
            match warn_if_slow(Box::pin(reload(self, &in_effect))).await {
                Ok((report, next)) => {
                    in_effect = next;
                    tracing::info!(target: SETTINGS_TARGET, "settings reloaded{}", describe(&report));
                }
                Err(error) => {
                    let hint = error.hint().map(|hint| format!("; hint: {hint}")).unwrap_or_default();
                    tracing::error!(
                        target: SETTINGS_TARGET,
                        "settings not reloaded, the previous ones stay in effect: {}{hint}",
                        error.message()
                    );
                }
            }
        }
    }
}

impl RunningGateway<'_> {
    /// Waits for a reason to reload.
    async fn next_request(&mut self) {
        // On stdio, SIGHUP ends the process; on a terminal, it means that the terminal was closed.
        let hangups = self.http.as_mut().filter(|http| !http.is_interactive).map(|http| &mut http.hangups);
        let hangup = async {
            match hangups {
                Some(hangups) => hangups.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = hangup => {}
            () = self.requests.next() => {}
        }
    }

    /// The profile of the main endpoint, which a client on stdio chooses by `--profile`.
    fn main_profile(&self, serve: &ServeSettings) -> Result<Profile, CliError> {
        match &self.arguments.profile {
            Some(name) if self.http.is_none() => Ok(serve.profile(name)?),
            _ => Ok(serve.main_profile()),
        }
    }

    /// The profiles with endpoints of their own; none on stdio.
    fn named_profiles(&self, serve: &ServeSettings) -> Result<Vec<Profile>, CliError> {
        if self.http.is_some() { http_profiles(serve) } else { Ok(Vec::new()) }
    }

    fn all_profiles(&self, serve: &ServeSettings) -> Result<Vec<Profile>, CliError> {
        let mut profiles = self.named_profiles(serve)?;
        profiles.push(self.main_profile(serve)?);
        Ok(profiles)
    }
}

async fn warn_if_slow<T>(reload: impl Future<Output = T>) -> T {
    let mut reload = pin!(reload);
    if let Ok(reloaded) = timeout(SLOW_RELOAD, &mut reload).await {
        return reloaded;
    }
    tracing::warn!(target: SETTINGS_TARGET, "settings are not reloaded yet: the store may be slow or unreachable");
    reload.await
}

/// Reads and checks all settings, then applies them.
async fn reload(
    gateway: &RunningGateway<'_>,
    in_effect: &SettingsInEffect,
) -> Result<(ReloadReport, SettingsInEffect), CliError> {
    let context = Box::pin(gateway.context.reload()).await?;
    let serve = serve_settings(gateway.arguments, &context);
    if let Some(problem) =
        context.server_problems.iter().find(|problem| !in_effect.server_problems.contains(problem))
    {
        return Err(CliError::usage(problem.clone()));
    }
    check_required_servers(&serve.required_servers, &context.servers)?;
    serve.run_lease()?;
    let next = SettingsInEffect {
        profiles: gateway.all_profiles(&serve)?,
        skill_folders: skill_folders(&context),
        server_problems: context.server_problems.clone(),
    };
    let rules = match &gateway.http {
        Some(http) => {
            let authenticator = http.callers.build(&serve, context.store.as_ref())?;
            let secrets = Secrets::load(&serve, &context).await?;
            Some(access_rules(gateway.arguments, &serve, &secrets, authenticator))
        }
        None => None,
    };
    let profiles = gateway.named_profiles(&serve)?;
    let main_profile = gateway.main_profile(&serve)?;
    let config = gateway_config(gateway.toolyard, &context)?;
    record_reload(&context).await?;
    record_policy_files(&context).await?;

    let settings = ReloadedSettings {
        settings: context.settings.clone(),
        models: tool_calling_cache::load_models(&context),
        servers: context.servers.clone(),
        skill_environment: Some(context.skill_environment.clone()),
    };
    let report = Box::pin(gateway.toolyard.reload(settings)).await?;
    // A client on stdio keeps its endpoint as long as it is connected; tools of new servers appear at it.
    let (Some(http), Some(rules)) = (&gateway.http, rules) else { return Ok((report, next)) };
    http.access.replace(rules);
    http.readiness.require_servers(serve.required_servers.clone());
    http.main_tools.set_profile(main_profile.clone());
    let config = GatewayConfig { main_profile, profiles, agents: gateway.agents.clone(), ..config };
    config.update(&gateway.server, &in_effect.profiles, in_effect.skill_folders != next.skill_folders);
    http.settings.replace(context, report.needs_restart.clone());
    Ok((report, next))
}

/// Which requests are accepted.
pub(super) fn access_rules(
    arguments: &ServeArgs,
    serve: &ServeSettings,
    secrets: &Secrets,
    authenticator: Option<Arc<dyn Authenticator>>,
) -> AccessRules {
    let mut rules = AccessRules::new(match arguments.no_auth {
        true => Access::Open,
        false => Access::Token(AccessToken::new(secrets.token())),
    });
    rules.authenticator = authenticator;
    rules.hosts = serve.allowed_hosts.iter().chain(&arguments.allow_host).cloned().collect();
    rules.origins = serve.allowed_origins.iter().chain(&arguments.allow_origin).cloned().collect();
    allow_pages(&mut rules, serve);
    rules
}

/// Records in the audit log that the settings in effect change.
async fn record_reload(context: &CliContext) -> Result<(), CliError> {
    for file in &context.settings_files {
        let text = std::fs::read(file).map_err(|error| CliError::file("read", file, error))?;
        let subject = format!("{}: reloaded by serve", file.display());
        let recorded =
            record_decision(AuditedDecision::ChangeSettings, &subject, ContentHash::of(text), context).await;
        match recorded {
            Err(error) if context.settings.audit == AuditSetting::Required => return Err(error),
            Err(error) => {
                tracing::warn!(error = error.message(), "the reload of the settings is not audited");
            }
            Ok(()) => {}
        }
    }
    Ok(())
}

fn skill_folders(context: &CliContext) -> Vec<std::path::PathBuf> {
    context.skill_environment.skill_folders.iter().map(|folder| folder.path.clone()).collect()
}

/// The changes of servers, and what needs a restart.
fn describe(report: &ReloadReport) -> String {
    let list = |ids: &[SourceId]| ids.iter().map(SourceId::as_str).collect::<Vec<_>>().join(", ");
    let servers = &report.servers;
    let changes = [("added", &servers.added), ("changed", &servers.changed), ("removed", &servers.removed)];
    let mut text = String::new();
    for (change, ids) in changes.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        text = format!("{text}; servers {change}: {}", list(ids));
    }
    match report.needs_restart.as_slice() {
        [] => text,
        keys => format!("{text}; these take effect after a restart: {}", keys.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use toolyard_mcp_client::ConfigChanges;

    use super::*;

    #[test]
    fn the_report_names_servers_and_settings_that_need_a_restart() {
        assert_eq!(describe(&ReloadReport::default()), "");
        let servers = ConfigChanges { added: vec!["a".into(), "b".into()], ..ConfigChanges::default() };
        let report = ReloadReport { servers, needs_restart: vec!["store"] };
        assert_eq!(describe(&report), "; servers added: a, b; these take effect after a restart: store");
    }
}
