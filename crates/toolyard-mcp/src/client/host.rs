//! What servers need from the house they run in. The library looks nothing up by itself.

use std::{fmt, path::PathBuf, sync::Arc};

use toolyard_core::{ProtocolEra, RawJson, Servers, SourceId, SourceInfo, Tool};

use super::{
    Authorizer, ConnectError, InputHandler, Link,
    http::HttpTarget,
    stdio::{GuardProgram, StdioLaunch},
};
use crate::{
    cache::{self, Shelf},
    config::{McpServerConfig, TransportConfig, expand},
    wire::WireLimits,
};

/// Takes the tools of servers and routes calls to them.
pub trait Registrar: Send + Sync {
    /// These are the tools of this source from now on, all at once.
    fn replace(&self, source: SourceInfo, tools: Vec<Arc<dyn Tool>>);

    /// The source is gone.
    fn remove(&self, source: &SourceId);
}

/// Finds who lets us in at a server, and keeps what a server says on its side channel.
pub trait Surroundings: Send + Sync {
    /// The value of a variable that a configuration refers to.
    fn variable(&self, name: &str) -> Option<String>;

    /// Who has the tokens for a server; none where nobody has to log in.
    fn authorizer(&self, server: &McpServerConfig) -> Option<Arc<dyn Authorizer>> {
        let _ = server;
        None
    }

    /// One line a server said on its side channel, made harmless.
    fn said(&self, server: &SourceId, line: &str) {
        let _ = (server, line);
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
    pub memory: Arc<dyn Servers>,
    /// Where tools go.
    pub registrar: Arc<dyn Registrar>,
    /// Who answers what servers ask back.
    pub input: Arc<dyn InputHandler>,
    /// The rest of the house.
    pub surroundings: Arc<dyn Surroundings>,
    /// How much servers may send.
    pub limits: WireLimits,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("working_directory", &self.working_directory).finish_non_exhaustive()
    }
}
