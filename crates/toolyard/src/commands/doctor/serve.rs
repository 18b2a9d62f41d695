//! Checks `[serve]`: secrets, profiles, and what replicas need.

use std::sync::Arc;

use toolyard::{Toolyard, settings::ServeSettings};
use toolyard_gateway::HubService;

use super::finding::{Finding, Severity};
use crate::{
    commands::serve::{callers, replicas},
    config::CliContext,
    terminal::pluralize,
};

const UNUSABLE: &str = "`toolyard serve --http` fails until this is fixed";

/// Whether the issuer of access tokens can be used.
pub(super) async fn check_access_tokens(context: &CliContext) -> Option<Finding> {
    let serve = &context.settings.serve;
    let settings = serve.oauth.as_ref()?;
    Some(match callers::check_oauth(settings, &serve.groups).await {
        Ok(()) => Finding::ok("serve", format!("access tokens of {}", settings.issuer)),
        Err(error) => Finding::problem("serve", error.message()).with_hint(error.hint().unwrap_or_default()),
    })
}

pub(super) fn check(context: &CliContext, toolyard: &Toolyard) -> Vec<Finding> {
    let serve = &context.settings.serve;
    let for_replicas = replicas::notes(serve, context.store.as_ref(), false);
    let for_replicas = for_replicas
        .into_iter()
        .map(|note| Finding::new(Severity::Note, "replicas", note.detail).with_hint(note.hint));
    let telemetry = &context.settings.telemetry;
    if *serve == ServeSettings::default() && telemetry.metrics_token.is_none() {
        return for_replicas.collect();
    }
    let variable = |name: &str| std::env::var(name).ok();
    let secrets = [serve.token(variable).err(), telemetry.metrics_token(variable).err()];
    let secrets = secrets.into_iter().flatten().map(|error| (error, UNUSABLE));
    let profiles = serve.profiles().err().map(|error| (error, "the name is part of a URL: /mcp/NAME"));
    let mut findings: Vec<Finding> = secrets
        .chain(profiles)
        .map(|(error, hint)| Finding::problem("serve", error.to_string()).with_hint(hint))
        .collect();
    let is_configured =
        |name: &&String| context.servers.iter().any(|server| server.id.as_str() == name.as_str());
    for name in serve.required_servers.iter().filter(|name| !is_configured(name)) {
        let detail = format!("[serve] required_servers: server `{name}` does not exist");
        let hint = format!("{UNUSABLE}; list servers: toolyard servers list");
        findings.push(Finding::problem("serve", detail).with_hint(hint));
    }
    let snapshot = toolyard.hub().snapshot();
    for (name, settings) in &serve.profiles {
        let is_missing = |server: &&String| !server.contains('*') && !snapshot.has_source(server);
        for server in settings.servers.iter().filter(is_missing) {
            let detail = format!("[serve.profiles.{name}] source `{server}` does not exist");
            findings.push(Finding::problem("serve", detail).with_hint("list sources: toolyard tools list"));
        }
        let Ok(profile) = serve.profile(name) else { continue };
        let (severity, offered) = match HubService::new(Arc::clone(toolyard.hub()), profile).tool_count() {
            0 => (Severity::Note, "no tools".to_owned()),
            count => (Severity::Ok, pluralize(count, "tool")),
        };
        findings.push(Finding::new(severity, "serve", format!("profile {name} offers {offered}")));
    }
    findings.extend(for_replicas);
    findings
}
