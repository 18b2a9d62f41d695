//! Makes a call through a running hub, to reuse the servers that it has started.

use std::{sync::Arc, time::Duration};

use toolyard::{ServersSetup, Settings, Toolyard, settings::JournalSetting};
use toolyard_core::SourceKind;
use toolyard_mcp_client::{
    HostEnvironment, ServerCache,
    config::{HttpKind, McpServerConfig, TransportConfig},
};

use crate::{
    cli::CallArgs,
    commands::{
        local_gateway::{LocalGateway, gateways_of_project},
        serve::{CALL_ENDPOINT, stored_token},
    },
    config::CliContext,
};

/// The name of the hub as a source.
const HUB_SOURCE: &str = "hub";
/// The variable by which the hub's configuration refers to its token.
const TOKEN_VARIABLE: &str = "HUB_TOKEN";
/// A hub on this machine answers at once, or the call is made without it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A Toolyard whose only server is the hub of these settings, if one runs on this machine and offers the tool by its bare name.
/// Everything else is left to a Toolyard of this process: other options need the servers themselves, and an unknown or refused
/// tool needs the explanation.
pub(super) async fn open(call: &CallArgs, context: &CliContext) -> Option<Toolyard> {
    let needs_own_process = call.local
        || call.source.is_some()
        || call.capability.is_some()
        || call.task.is_some()
        || call.explain
        || call.raw;
    let name = call.name.as_deref()?;
    if needs_own_process || context.settings.journal == JournalSetting::Always {
        return None;
    }
    if awaits_approval(name, context).await {
        return None;
    }
    let LocalGateway { mcp_url: url, needs_token, .. } = gateways_of_project(context).into_iter().next()?;
    let token = if needs_token { Some(stored_token(context)?) } else { None };
    let settings = Settings { call: context.settings.call.clone(), ..Settings::default() };
    let mut setup = ServersSetup::new(
        vec![hub_config(&url, token.is_some())],
        context.skill_environment.working_directory.clone(),
    );
    setup.host_environment = Arc::new(HubToken(token));
    let toolyard = Toolyard::builder().settings(settings).servers(setup).build().await.ok()?;
    let is_connected = async {
        let connected = toolyard.servers()?.connect(HUB_SOURCE);
        tokio::time::timeout(CONNECT_TIMEOUT, connected).await.ok()?.ok()
    };
    let is_offered = is_connected.await.is_some() && {
        let snapshot = toolyard.hub().snapshot();
        let first = snapshot.find(name).and_then(|found| found.equivalents.first());
        first.is_some_and(|tool| tool.source.info.kind == SourceKind::Mcp)
    };
    if !is_offered {
        let _ = toolyard.close().await;
        return None;
    }
    tracing::debug!(url, "the call goes through the running hub");
    Some(toolyard)
}

/// Whether a definition of the tool awaits the operator's approval. The hub may have a session with a server that has not told it
/// of the change.
async fn awaits_approval(name: &str, context: &CliContext) -> bool {
    let Some(store) = &context.store else { return false };
    let cache = ServerCache::new(Arc::new(store.clone()));
    let after_source = name.split_once('.').map(|(_, tool)| tool);
    let before_source = name.rsplit_once('@').map(|(tool, _)| tool);
    for tool in [Some(name), after_source, before_source].into_iter().flatten() {
        // Without an answer of the store, the call is made in this process, which reports the failure.
        if cache.awaits_approval(tool, &context.servers).await.unwrap_or(true) {
            return true;
        }
    }
    false
}

fn hub_config(url: &str, has_token: bool) -> McpServerConfig {
    let authorization = ("Authorization".to_owned(), format!("Bearer ${{{TOKEN_VARIABLE}}}"));
    let transport = TransportConfig::Http {
        url: format!("{url}/{CALL_ENDPOINT}"),
        headers: has_token.then_some(authorization).into_iter().collect(),
        kind: HttpKind::Streamable,
    };
    McpServerConfig { trusted: true, ..McpServerConfig::new(HUB_SOURCE, transport) }
}

/// Knows the token of the hub, and nothing else.
struct HubToken(Option<String>);

impl HostEnvironment for HubToken {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.clone().filter(|_| name == TOKEN_VARIABLE)
    }
}
