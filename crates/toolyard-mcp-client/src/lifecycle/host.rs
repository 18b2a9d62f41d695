//! What servers need from the embedder. The library looks nothing up by itself.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use toolyard_core::{
    CallerIdentity, QuarantineNotice, SignInLink, SourceId, SourceInfo, SourceScope, SourceTools, Tool,
    telemetry::Telemetry,
};
use toolyard_mcp::WireLimits;

use crate::{
    config::{McpServerConfig, TransportConfig, is_private_reference},
    instance_owner::InstanceOwner,
    lifecycle::{connect::ConnectTarget, connect_error::ConnectError},
    pinning::{NameUser, ServerCache},
    process_guard::guard::GuardProgram,
    server_secrets::{RecordedTokens, ServerSecrets},
    transport::{
        error::TransportError,
        http::{
            client::http_client,
            target::{Authorizer, HttpTarget},
        },
        stdio::{
            environment::{INHERITED_VARIABLES, SERVER_VARIABLE, server_environment},
            launch::StdioLaunch,
            stderr_tail::StderrTail,
        },
    },
};

/// Receives the tools of servers and routes calls to them.
pub trait ToolRegistrar: Send + Sync {
    /// Replaces all tools of a source.
    fn replace(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>);

    /// Replaces all tools of a source that also offers tools which await approval.
    fn replace_with_quarantined(
        &self,
        source: SourceInfo,
        tools: Vec<Arc<dyn Tool>>,
        quarantined: Vec<QuarantineNotice>,
    ) {
        let _ = quarantined;
        self.replace(source, tools);
    }

    /// Replaces all tools of many sources. An implementation may make this one change, so that clients are notified once and not
    /// once for each source.
    fn replace_all(&self, sources: Vec<SourceTools>) {
        for SourceTools { source, tools, quarantined } in sources {
            self.replace_with_quarantined(source, tools, quarantined);
        }
    }

    /// Another source than an MCP server that has a tool of this name.
    fn name_user(&self, tool: &str) -> Option<NameUser> {
        let _ = tool;
        None
    }

    /// A server was started or connected and its tools are registered: calls reach it from now on.
    fn report_ready(&self, source: &SourceId) {
        let _ = source;
    }

    /// Removes a source.
    fn remove(&self, source: &SourceId);
}

/// Looks up what only the embedder knows.
pub trait HostEnvironment: Send + Sync {
    /// The value of a variable that a configuration refers to.
    fn variable(&self, name: &str) -> Option<String>;

    /// Why a stored secret or file has no value, if there is more to say than that it is missing.
    fn missing_reason(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Gets tokens for a server that requires authorization: those of `caller` for an instance that serves this caller only.
    fn authorizer(
        &self,
        server: &McpServerConfig,
        caller: Option<&Arc<InstanceOwner>>,
    ) -> Option<Arc<dyn Authorizer>> {
        let _ = (server, caller);
        None
    }

    /// Begins a sign-in of a caller at a server that has no tokens of this caller, and returns the page for it; `None` if there
    /// can be none. `challenge` is the header `WWW-Authenticate` of the refused request. May block.
    fn begin_sign_in(
        &self,
        server: &McpServerConfig,
        caller: &Arc<CallerIdentity>,
        challenge: Option<&str>,
    ) -> Option<SignInLink> {
        let _ = (server, caller, challenge);
        None
    }

    /// Secrets of the embedder itself, which servers may find in its files. They are redacted in what servers send.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What servers need from the embedder.
pub struct Host {
    /// The variables that processes may inherit.
    pub environment: Vec<(String, String)>,
    /// The default working directory of processes.
    pub working_directory: PathBuf,
    /// The program that ends servers with everything they started.
    pub guard: Option<GuardProgram>,
    /// The cache of tools, revisions and approvals.
    pub cache: ServerCache,
    /// Receives the tools.
    pub registrar: Arc<dyn ToolRegistrar>,
    /// Looks up variables and authorizers.
    pub host_environment: Arc<dyn HostEnvironment>,
    /// How much servers may send.
    pub limits: WireLimits,
    /// The HTTP client of all servers, created on first use.
    pub http: OnceLock<reqwest::Client>,
    /// Receives the requests to servers that have ended.
    pub telemetry: Option<Arc<dyn Telemetry>>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("working_directory", &self.working_directory).finish_non_exhaustive()
    }
}

impl Host {
    /// What distinguishes a server from others of its program.
    pub(super) fn scope(&self, config: &McpServerConfig) -> SourceScope {
        let home = self.environment.iter().find(|(name, _)| name == "HOME").map(|(_, value)| value.as_str());
        config.scope(|name| self.host_environment.variable(name), home)
    }

    /// The folder in which a server's process runs.
    pub(super) fn working_folder(&self, config: &McpServerConfig) -> Option<String> {
        let resolved = config.resolve(|name| self.host_environment.variable(name)).ok()?;
        let TransportConfig::Stdio { cwd, .. } = resolved.transport else { return None };
        Some(cwd.unwrap_or_else(|| self.working_directory.clone()).to_str()?.to_owned())
    }

    /// How to reach a server. Variables are resolved at every start. `owner` is the caller of a private instance.
    pub(super) fn connect_target(
        &self,
        config: &McpServerConfig,
        stderr_tail: &Arc<StderrTail>,
        secrets: &Arc<ServerSecrets>,
        owner: Option<&Arc<InstanceOwner>>,
    ) -> Result<ConnectTarget, ConnectError> {
        let resolved = config.resolve(|name| self.host_environment.variable(name)).map_err(|error| {
            let reason = |name: &str| self.host_environment.missing_reason(name);
            ConnectError::Configuration(match error.explain_missing(reason) {
                Some(explanation) => format!("{error}: {explanation}"),
                None => error.to_string(),
            })
        })?;
        let mut target = self.transport_target(config, resolved.transport, stderr_tail, secrets, owner)?;
        if let ConnectTarget::Http(target, _) = &mut target {
            let identity = owner.map(|owner| owner.identity());
            target.set_caller_headers(resolved.caller_headers, identity.as_deref())?;
        }
        let Some(program) = resolved.program else { return Ok(target) };
        match (target, self.transport_target(config, program, stderr_tail, secrets, owner)?) {
            (ConnectTarget::Http(target, kind), ConnectTarget::Stdio(launch)) => {
                Ok(ConnectTarget::HttpWithProcess(launch, target, kind))
            }
            // Settings allow a program only beside a URL.
            (target, _) => Ok(target),
        }
    }

    fn transport_target(
        &self,
        config: &McpServerConfig,
        transport: TransportConfig,
        stderr_tail: &Arc<StderrTail>,
        secrets: &Arc<ServerSecrets>,
        owner: Option<&Arc<InstanceOwner>>,
    ) -> Result<ConnectTarget, ConnectError> {
        match transport {
            TransportConfig::Stdio { command, args, env, inherit, cwd } => {
                let mut launch = StdioLaunch::new(command);
                launch.args = args;
                launch.environment = self.process_environment(&inherit, &env);
                launch.environment.push((SERVER_VARIABLE.to_owned(), config.id.to_string()));
                launch.working_directory = Some(cwd.unwrap_or_else(|| self.working_directory.clone()));
                launch.guard = self.guard.clone().map(|guard| guard.with_label(&config.label()));
                launch.stderr_tail = Arc::clone(stderr_tail);
                Ok(ConnectTarget::Stdio(launch))
            }
            TransportConfig::Http { url, headers, kind } => {
                let mut target = HttpTarget::new(&url, headers)?;
                if owner.is_some() && config.has_tokens_per_caller() {
                    // Without a token of its own, a caller must not act with the credentials of the settings.
                    target.remove_credentials();
                }
                if let Some(authorizer) = self.host_environment.authorizer(config, owner) {
                    let secrets = Arc::clone(secrets);
                    target = target.with_authorizer(Arc::new(RecordedTokens { authorizer, secrets }));
                }
                Ok(ConnectTarget::Http(target, kind))
            }
        }
    }

    /// The values that must be redacted in the output of a server: those that its configuration refers to, and those of the
    /// embedder.
    pub(super) fn secrets_of(&self, config: &McpServerConfig) -> Vec<String> {
        let names = config.variables().into_iter();
        let secret_names = names.filter(|name| !INHERITED_VARIABLES.contains(&name.as_str()));
        let named = secret_names.filter_map(|name| self.host_environment.variable(&name));
        named.chain(self.host_environment.secrets()).collect()
    }

    /// The settings of a server that may be secrets, the variables that they refer to, and the secrets of the embedder.
    pub(super) fn possible_secrets(&self, config: &McpServerConfig) -> ServerSecrets {
        let mut settings = config.named_values(|name| self.host_environment.variable(name));
        let mut secrets = Vec::new();
        let names = config.variables().into_iter();
        for name in names.filter(|name| !INHERITED_VARIABLES.contains(&name.as_str())) {
            match self.host_environment.variable(&name) {
                Some(value) if is_private_reference(&name) => secrets.push(value),
                Some(value) => settings.push((name, value)),
                None => {}
            }
        }
        ServerSecrets::new(settings).with_secrets(secrets).with_secrets(self.host_environment.secrets())
    }

    pub(super) fn http_client(&self) -> Result<reqwest::Client, TransportError> {
        if let Some(client) = self.http.get() {
            return Ok(client.clone());
        }
        let client = http_client()?;
        Ok(self.http.get_or_init(|| client).clone())
    }

    fn process_environment(
        &self,
        inherit: &[String],
        extra: &BTreeMap<String, String>,
    ) -> Vec<(String, String)> {
        let lookup = |name: &String| Some((name.clone(), self.host_environment.variable(name)?));
        let named = inherit.iter().filter_map(lookup);
        server_environment(self.environment.iter().cloned().chain(named), inherit, extra)
    }
}
