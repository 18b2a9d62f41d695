//! Watches files that define MCP servers and applies their changes while everything else keeps running.
//!
//! Files are polled once a second. Polling also covers files that do not exist yet and network file systems, for which
//! file-system notifications need fallbacks; and a change is only applied once two polls agree, so that a half-written
//! file is never read.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use tokio::{sync::oneshot, time::sleep};
use toolyard_core::SourceId;
use toolyard_mcp_client::{
    ConfigChanges,
    config::{DocumentError, McpServerConfig, read_mcp_json},
};

use crate::{Settings, SettingsError, Toolyard};

const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Files with MCP servers, to be watched.
pub struct ServerFileWatcher {
    files: Vec<PathBuf>,
    read: Box<ReadServers>,
    poll_interval: Duration,
}

type ReadServers = dyn Fn() -> Result<Vec<McpServerConfig>, ServerFileError> + Send + Sync;

/// Why a file with MCP servers cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerFileError {
    /// A settings file or `mcp.json` that is watched cannot be read.
    ///
    /// Remedy: restore the file or its permissions; the servers that were loaded before stay in use.
    #[error("failed to read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A settings file is invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// An `mcp.json` has invalid JSON, or no servers.
    ///
    /// Remedy: correct the file at the place that the text names; the servers that were loaded before stay in use.
    #[error("failed to parse {}: {error}", path.display())]
    McpJson {
        /// The file.
        path: PathBuf,
        /// Why.
        error: DocumentError,
    },
}

/// Keeps a watch alive; dropping it ends the watch.
#[derive(Debug)]
pub struct ServerFileWatchGuard {
    _stop: oneshot::Sender<()>,
}

impl std::fmt::Debug for ServerFileWatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerFileWatcher").field("files", &self.files).finish_non_exhaustive()
    }
}

impl ServerFileWatcher {
    /// Watches `toolyard.toml` or mcp.json files; a later file overrides an earlier one. Their servers are started, so only
    /// watch files under your own control; for others, use [`Self::with_reader`] and check trust there.
    pub fn new(files: Vec<PathBuf>) -> Self {
        let read_files = files.clone();
        Self::with_reader(files, move || read_servers(&read_files))
    }

    /// Watches files that `read` parses. It may block; on an error the servers stay as they are.
    pub fn with_reader(
        files: Vec<PathBuf>,
        read: impl Fn() -> Result<Vec<McpServerConfig>, ServerFileError> + Send + Sync + 'static,
    ) -> Self {
        Self { files, read: Box::new(read), poll_interval: POLL_INTERVAL }
    }

    /// Polls the files at this interval.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }

    /// Applies the files' servers now and after every change. New servers are started once, to learn their tools.
    pub fn watch(self, toolyard: &Arc<Toolyard>) -> ServerFileWatchGuard {
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(poll_files(self, Arc::downgrade(toolyard), stopped));
        ServerFileWatchGuard { _stop: stop }
    }
}

/// Tells two states of a file apart: modification time, length and inode; `None` if it does not exist.
type FileStamp = Option<(Option<SystemTime>, u64, u64)>;

async fn poll_files(
    watcher: ServerFileWatcher,
    toolyard: Weak<Toolyard>,
    mut stopped: oneshot::Receiver<()>,
) {
    let watcher = Arc::new(watcher);
    // The content before the first poll is unknown, so the files are read once in any case.
    let mut applied = None;
    let mut previous = stamps(&watcher.files).await;
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            () = sleep(watcher.poll_interval) => {}
        }
        let current = stamps(&watcher.files).await;
        let is_settled = current == previous;
        previous = current;
        if !is_settled || applied.as_ref() == Some(&previous) {
            continue;
        }
        let Some(toolyard) = toolyard.upgrade() else { return };
        if apply_files(&watcher, &toolyard).await {
            applied = Some(previous.clone());
        }
    }
}

async fn stamps(files: &[PathBuf]) -> Vec<FileStamp> {
    let mut stamps = Vec::with_capacity(files.len());
    for file in files {
        let metadata = tokio::fs::metadata(file).await.ok();
        stamps.push(metadata.map(|metadata| (metadata.modified().ok(), metadata.len(), inode(&metadata))));
    }
    stamps
}

/// Changes when a file is replaced by another one.
#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_metadata: &std::fs::Metadata) -> u64 {
    0
}

/// Reads the files and applies their servers. Returns whether to wait for the next change; if not, the next poll tries again.
async fn apply_files(watcher: &Arc<ServerFileWatcher>, toolyard: &Arc<Toolyard>) -> bool {
    let reader = Arc::clone(watcher);
    let configs = match tokio::task::spawn_blocking(move || (reader.read)()).await {
        Ok(Ok(configs)) => configs,
        Ok(Err(error)) => {
            tracing::warn!(%error, "ignoring changed server files");
            return true;
        }
        Err(error) => {
            tracing::error!(%error, "ignoring changed server files: their reader failed");
            return true;
        }
    };
    match toolyard.reload_servers(configs).await {
        Ok(changes) => {
            if changes != ConfigChanges::default() {
                tracing::info!(?changes.added, ?changes.changed, ?changes.removed, "servers reloaded");
            }
            if !(changes.added.is_empty() && changes.changed.is_empty()) {
                tokio::spawn(discover(Arc::downgrade(toolyard)));
            }
            true
        }
        Err(error) => {
            tracing::warn!(%error, "failed to reload servers; retrying");
            false
        }
    }
}

/// Starts new servers once, in the background, to learn their tools.
async fn discover(toolyard: Weak<Toolyard>) {
    let Some(toolyard) = toolyard.upgrade() else { return };
    let Some(manager) = toolyard.servers() else { return };
    for (server, outcome) in manager.discover().await {
        if let Err(error) = outcome {
            tracing::warn!(%server, %error, "failed to start the new server");
        }
    }
}

/// The servers of these files; a missing file has none. An invalid server is skipped with a warning.
pub fn read_servers(files: &[PathBuf]) -> Result<Vec<McpServerConfig>, ServerFileError> {
    let mut servers: BTreeMap<SourceId, McpServerConfig> = BTreeMap::new();
    for path in files {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(ServerFileError::Unreadable { path: path.clone(), error }),
        };
        let (configs, problems) = parse(path, &text)?;
        for problem in problems {
            tracing::warn!(file = %path.display(), problem, "skipping a server");
        }
        servers.extend(configs.into_iter().map(|config| (config.id.clone(), config)));
    }
    Ok(servers.into_values().collect())
}

fn parse(path: &Path, text: &str) -> Result<(Vec<McpServerConfig>, Vec<String>), ServerFileError> {
    let base = path.parent().unwrap_or(path);
    if path.extension().is_some_and(|extension| extension == "toml") {
        return Ok(Settings::parse(text, path)?.servers(base));
    }
    let parsed = read_mcp_json(text, base)
        .map_err(|error| ServerFileError::McpJson { path: path.to_owned(), error })?;
    let problems = parsed.invalid.iter().map(ToString::to_string).collect();
    Ok((parsed.servers.into_iter().map(|server| server.config).collect(), problems))
}
