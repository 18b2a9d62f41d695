//! Builds the [`Toolyard`] that a command works with, and shuts it down.

use std::sync::{Arc, OnceLock};

use toolyard::{ServersSetup, Toolyard, ToolyardBuilder};
use toolyard_store::Store;
use toolyard_telemetry::metrics::Metrics;

use super::{models::tool_calling_cache, servers::logs, telemetry};
use crate::{
    config::{CliContext, ServerCredentials},
    error::CliError,
    process_guard,
    terminal::progress::with_progress,
};

pub(crate) fn require_store(context: &CliContext) -> Result<&Store, CliError> {
    context.store.as_ref().ok_or_else(CliError::no_store)
}

/// A Toolyard as the settings describe it.
pub(crate) async fn open(context: &CliContext) -> Result<Toolyard, CliError> {
    build(builder(context, servers_setup(context))).await
}

/// Stops servers and appends their stderr to the log files.
pub(crate) async fn close(toolyard: &Toolyard, context: &CliContext) -> Result<(), CliError> {
    logs::append_all(toolyard, context);
    Ok(toolyard.close().await?)
}

pub(crate) async fn build(builder: ToolyardBuilder) -> Result<Toolyard, CliError> {
    // Boxed: the future is large, and every command contains it.
    Ok(with_progress("skills to load", Box::pin(builder.build())).await??)
}

pub(crate) fn builder(context: &CliContext, servers: ServersSetup) -> ToolyardBuilder {
    gateway_builder(context, servers, None)
}

/// Like [`builder`], with metrics that count operations.
pub(crate) fn gateway_builder(
    context: &CliContext,
    servers: ServersSetup,
    metrics: Option<&Arc<Metrics>>,
) -> ToolyardBuilder {
    // An unusable search engine disables only its own tool; `toolyard doctor` reports why.
    let web_search = context.settings.search_engine(|name| std::env::var(name).ok()).unwrap_or_default();
    let mut builder = Toolyard::builder()
        .settings(context.settings.clone())
        .web_search(web_search)
        .skill_environment(context.skill_environment.clone())
        .models(tool_calling_cache::load_models(context))
        .owner(process_owner())
        .data_folder(context.data_folder.clone())
        .servers(servers);
    if let Some(telemetry) = telemetry::start(context, metrics) {
        builder = builder.telemetry(telemetry);
    }
    if let Some(store) = &context.store {
        builder = builder.store(store.clone());
    }
    builder
}

/// A random number for a process of a cluster, which no other process has.
pub(crate) fn process_number() -> Result<u64, CliError> {
    let mut number = [0; 8];
    getrandom::fill(&mut number).map_err(|error| {
        CliError::failed(format!("the operating system provides no random numbers: {error}"))
    })?;
    Ok(u64::from_be_bytes(number))
}

/// What people call this process: its host and process id. Other processes of a cluster, and the operator of NATS, see it.
pub(crate) fn process_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}:{}", std::process::id())
}

/// The name under which this process claims runs.
pub(crate) fn process_owner() -> String {
    static NAME: OnceLock<String> = OnceLock::new();
    let name = || {
        let mut bytes = [0; 4];
        // Process ids are reused, so random bytes are added. Without them, lease expiry still keeps two processes apart.
        let _ = getrandom::fill(&mut bytes);
        format!("toolyard-{}-{:08x}", std::process::id(), u32::from_ne_bytes(bytes))
    };
    NAME.get_or_init(name).clone()
}

/// The servers of the settings, with this process's environment and credentials.
pub(crate) fn servers_setup(context: &CliContext) -> ServersSetup {
    let mut setup =
        ServersSetup::new(context.servers.clone(), context.skill_environment.working_directory.clone());
    setup.environment = std::env::vars().collect();
    setup.guard = process_guard::guard_program();
    setup.host_environment = Arc::new(ServerCredentials::new(context));
    setup
}
