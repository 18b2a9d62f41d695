//! What servers need from the house they run in. The library looks nothing up by itself.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use toolyard_core::{SourceId, SourceInfo, Tool};

use super::{
    Authorizer, ConnectError, GuardProgram, HttpTarget, InputHandler, LastWords, Link, StdioLaunch,
    TransportError,
    environment::{HARMLESS, allowed},
    http_client,
};
use crate::{
    cache::ServerCache,
    config::{McpServerConfig, TransportConfig},
    wire::WireLimits,
};

/// Takes the tools of servers and routes calls to them.
pub trait Registrar: Send + Sync {
    /// These are the tools of this source from now on, all at once.
    fn replace(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>);

    /// The source is gone.
    fn remove(&self, source: &SourceId);
}

/// Looks up what only the house knows.
pub trait Surroundings: Send + Sync {
    /// The value of a variable that a configuration refers to.
    fn variable(&self, name: &str) -> Option<String>;

    /// Who has the tokens for a server; none where nobody has to log in.
    fn authorizer(&self, server: &McpServerConfig) -> Option<Arc<dyn Authorizer>> {
        let _ = server;
        None
    }
}

/// What servers need from the house they run in.
pub struct Host {
    /// What every program may see of the environment.
    pub environment: Vec<(String, String)>,
    /// Where programs run that do not say where.
    pub working_directory: PathBuf,
    /// The program that sees to it that nothing survives us.
    pub guard: Option<GuardProgram>,
    /// Where tools, eras and approvals are remembered.
    pub cache: ServerCache,
    /// Where tools go.
    pub registrar: Arc<dyn Registrar>,
    /// Who answers what servers ask back.
    pub input: Arc<dyn InputHandler>,
    /// The rest of the house.
    pub surroundings: Arc<dyn Surroundings>,
    /// How much servers may send.
    pub limits: WireLimits,
    /// Made when the first server at an address is asked, and shared by all.
    pub http: OnceLock<reqwest::Client>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("working_directory", &self.working_directory).finish_non_exhaustive()
    }
}

impl Host {
    /// Where a server is, with its variables looked up: just before it is started, every time anew.
    pub(super) fn link(
        &self,
        config: &McpServerConfig,
        last_words: &Arc<LastWords>,
    ) -> Result<Link, ConnectError> {
        let resolved = config
            .resolve(|name| self.surroundings.variable(name))
            .map_err(|error| ConnectError::Configuration(error.to_string()))?;
        let program = match resolved.program {
            Some(program) => self.one_link(config, program, last_words)?,
            None => return self.one_link(config, resolved.transport, last_words),
        };
        match (self.one_link(config, resolved.transport, last_words)?, program) {
            (Link::Http(target, kind), Link::Stdio(launch)) => Ok(Link::Program(launch, target, kind)),
            (link, _) => Ok(link),
        }
    }

    fn one_link(
        &self,
        config: &McpServerConfig,
        transport: TransportConfig,
        last_words: &Arc<LastWords>,
    ) -> Result<Link, ConnectError> {
        match transport {
            TransportConfig::Stdio { command, args, env, inherit, cwd } => {
                let mut launch = StdioLaunch::new(command);
                launch.args = args;
                launch.environment = self.environment_of(&inherit, &env);
                launch.working_directory = Some(cwd.unwrap_or_else(|| self.working_directory.clone()));
                launch.guard = self.guard.clone().map(|guard| guard.named(&config.label()));
                launch.last_words = Arc::clone(last_words);
                Ok(Link::Stdio(launch))
            }
            TransportConfig::Http { url, headers, kind } => {
                let mut target = HttpTarget::new(&url, headers)?;
                if let Some(authorizer) = self.surroundings.authorizer(config) {
                    target = target.with_authorizer(authorizer);
                }
                Ok(Link::Http(target, kind))
            }
        }
    }

    /// Values that must not show in what a server says: those its configuration refers to by name.
    pub(super) fn secrets_of(&self, config: &McpServerConfig) -> Vec<String> {
        let hidden = config.variables().into_iter().filter(|name| !HARMLESS.contains(&name.as_str()));
        hidden.filter_map(|name| self.surroundings.variable(&name)).filter(|value| value.len() >= 6).collect()
    }

    pub(super) fn http(&self) -> Result<reqwest::Client, TransportError> {
        if let Some(client) = self.http.get() {
            return Ok(client.clone());
        }
        let client = http_client()?;
        Ok(self.http.get_or_init(|| client).clone())
    }

    fn environment_of(&self, inherit: &[String], extra: &BTreeMap<String, String>) -> Vec<(String, String)> {
        let named = inherit.iter().filter_map(|name| Some((name.clone(), self.surroundings.variable(name)?)));
        allowed(self.environment.iter().cloned().chain(named), inherit, extra)
    }
}
