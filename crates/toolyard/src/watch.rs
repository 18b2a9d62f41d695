//! Follows files that name MCP servers: a change is taken over while everything else goes on.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use tokio::{sync::oneshot, time::sleep};
use toolyard_core::SourceId;
use toolyard_mcp::{
    client::Applied,
    config::{McpServerConfig, read_mcp_json},
};

use crate::{Settings, Toolyard};

/// How often files are looked at unless somebody says otherwise.
const EVERY: Duration = Duration::from_secs(1);

/// What to follow. Whoever holds the [`Following`] it makes keeps it going.
pub struct ServerFiles {
    files: Vec<PathBuf>,
    read: Box<ReadServers>,
    every: Duration,
}

type ReadServers = dyn Fn() -> Result<Vec<McpServerConfig>, String> + Send + Sync;

/// Files that are being followed, until this is dropped.
#[derive(Debug)]
pub struct Following {
    _end: oneshot::Sender<()>,
}

impl std::fmt::Debug for ServerFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerFiles").field("files", &self.files).finish_non_exhaustive()
    }
}

impl ServerFiles {
    /// These files, `toolyard.toml` or plain `mcp.json`; a server of a later one outweighs one of an earlier one. What they
    /// name is started, so they must be files of your own; for files that others write, use [`Self::read_by`] and ask.
    pub fn new(files: Vec<PathBuf>) -> Self {
        let all = files.clone();
        Self::read_by(files, move || read_servers(&all))
    }

    /// These files, and who knows what stands in them. It may take its time; an error keeps the servers as they are.
    pub fn read_by(
        files: Vec<PathBuf>,
        read: impl Fn() -> Result<Vec<McpServerConfig>, String> + Send + Sync + 'static,
    ) -> Self {
        Self { files, read: Box::new(read), every: EVERY }
    }

    /// Looks at the files this often.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Takes over what stands in the files, and what changes in them from now on. A change counts once a second look shows the same: a file that is
    /// being written is not read. New servers are started once, so that their tools are known.
    pub fn follow(self, yard: &Arc<Toolyard>) -> Following {
        let (end, ended) = oneshot::channel();
        tokio::spawn(follow(self, Arc::downgrade(yard), ended));
        Following { _end: end }
    }
}

/// What tells one state of a file from another; none for a file that is not there.
type Stamp = Option<(Option<SystemTime>, u64, u64)>;

async fn follow(files: ServerFiles, yard: Weak<Toolyard>, mut ended: oneshot::Receiver<()>) {
    let files = Arc::new(files);
    // What stood in them before the first look is not known: they are read once in any case.
    let mut taken_over = None;
    let mut before = look(&files.files).await;
    loop {
        tokio::select! {
            _ = &mut ended => return,
            () = sleep(files.every) => {}
        }
        let now = look(&files.files).await;
        let is_settled = now == before;
        before = now;
        if !is_settled || taken_over.as_ref() == Some(&before) {
            continue;
        }
        let Some(yard) = yard.upgrade() else { return };
        if take_over(&files, &yard).await {
            taken_over = Some(before.clone());
        }
    }
}

async fn look(files: &[PathBuf]) -> Vec<Stamp> {
    let mut stamps = Vec::with_capacity(files.len());
    for file in files {
        let facts = tokio::fs::metadata(file).await.ok();
        stamps.push(facts.map(|facts| (facts.modified().ok(), facts.len(), number(&facts))));
    }
    stamps
}

/// A file that was put in the place of another has another number.
#[cfg(unix)]
fn number(facts: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(facts)
}

#[cfg(not(unix))]
fn number(_facts: &std::fs::Metadata) -> u64 {
    0
}

/// Whether this state of the files is settled, well or badly; otherwise it is tried again.
async fn take_over(files: &Arc<ServerFiles>, yard: &Arc<Toolyard>) -> bool {
    let reading = Arc::clone(files);
    let configs = match tokio::task::spawn_blocking(move || (reading.read)()).await {
        Ok(Ok(configs)) => configs,
        Ok(Err(error)) => {
            tracing::warn!(error, "the changed files cannot be read; the servers stay as they are");
            return true;
        }
        Err(error) => {
            tracing::error!(%error, "the changed files cannot be read; the servers stay as they are");
            return true;
        }
    };
    match yard.reload_servers(configs).await {
        Ok(applied) => {
            if applied != Applied::default() {
                tracing::info!(?applied.added, ?applied.changed, ?applied.removed, "servers changed");
            }
            if !(applied.added.is_empty() && applied.changed.is_empty()) {
                tokio::spawn(discover(Arc::downgrade(yard)));
            }
            true
        }
        Err(error) => {
            tracing::warn!(%error, "the changed servers were not taken over; this is tried again");
            false
        }
    }
}

/// Starts new servers once, so that their tools are known. Others do not wait for them.
async fn discover(yard: Weak<Toolyard>) {
    let Some(yard) = yard.upgrade() else { return };
    let Some(manager) = yard.servers() else { return };
    for (server, outcome) in manager.discover().await {
        if let Err(error) = outcome {
            tracing::warn!(%server, %error, "the new server cannot be used");
        }
    }
}

/// The servers of files; one that is not there names none. A server that makes no sense costs itself alone.
pub fn read_servers(files: &[PathBuf]) -> Result<Vec<McpServerConfig>, String> {
    let mut servers: BTreeMap<SourceId, McpServerConfig> = BTreeMap::new();
    for file in files {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("failed to read {}: {error}", file.display())),
        };
        let (configs, problems) = read_one(file, &text)?;
        for problem in problems {
            tracing::warn!(file = %file.display(), problem, "a server is not used");
        }
        servers.extend(configs.into_iter().map(|config| (config.id.clone(), config)));
    }
    Ok(servers.into_values().collect())
}

fn read_one(file: &Path, text: &str) -> Result<(Vec<McpServerConfig>, Vec<String>), String> {
    let base = file.parent().unwrap_or(file);
    if file.extension().is_some_and(|extension| extension == "toml") {
        return Ok(Settings::parse(text, file).map_err(|error| error.to_string())?.servers(base));
    }
    let read = read_mcp_json(text, base).map_err(|error| format!("{}: {error}", file.display()))?;
    let problems = read.problems.iter().map(ToString::to_string).collect();
    Ok((read.servers.into_iter().map(|server| server.config).collect(), problems))
}
