//! Running hubs (`toolyard serve`) of this user: which there are, and how they learn that the operator's settings changed.
//!
//! Each hub has a private file in the data folder while it runs. It holds a lock on it, so that the file of a hub that was killed
//! is recognized, even if another process has its id by now.

use std::{
    fs::{File, TryLockError},
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use toolyard_core::{ContentHash, SecretText};

use super::{CliContext, files};

const HUB_FOLDER: &str = "serve/hubs";
const RELOAD_FOLDER: &str = "serve/reload";
const VERSION: u32 = 1;
/// How often a hub looks for a request to reload.
const RELOAD_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Digits of a settings file's hash in the name of its reload request.
const FILE_HASH_DIGITS: usize = 16;

/// A running hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunningHub {
    version: u32,
    /// The URL of its main endpoint; none for a hub on stdio.
    pub(crate) url: Option<String>,
    /// Whether clients need the token.
    pub(crate) needs_token: bool,
    /// The settings files that it reads, the operator's first.
    settings_files: Vec<PathBuf>,
    /// The operator's settings file, which may not exist yet.
    operator_file: PathBuf,
    /// The root folder of its project.
    project: PathBuf,
    /// Proves to the hub that a command is run by its user: `toolyard open` gets a sign-in link with it. None without a console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) operator_secret: Option<SecretText>,
}

impl RunningHub {
    /// A hub with the settings of this invocation.
    pub(crate) fn new(url: Option<String>, needs_token: bool, context: &CliContext) -> Self {
        Self {
            version: VERSION,
            url,
            needs_token,
            settings_files: context.settings_files.iter().map(|file| absolute(file)).collect(),
            operator_file: absolute(&context.operator_file),
            project: absolute(&context.project),
            operator_secret: None,
        }
    }

    /// The same hub with a console.
    pub(crate) fn with_operator_secret(self, secret: SecretText) -> Self {
        Self { operator_secret: Some(secret), ..self }
    }

    /// Whether the hub has the same settings files and project as this invocation, so that it has the same tools.
    pub(crate) fn has_settings_of(&self, context: &CliContext) -> bool {
        let own = Self::new(None, false, context);
        (&self.settings_files, &self.project) == (&own.settings_files, &own.project)
    }

    /// Whether the hub belongs to the operator of this invocation, whatever its project.
    pub(crate) fn has_operator_of(&self, context: &CliContext) -> bool {
        self.operator_file == absolute(&context.operator_file)
    }

    /// Announces this hub until the result is dropped. Without a writable data folder, the hub is not announced.
    pub(crate) fn announce(&self, context: &CliContext) -> Option<HubAnnouncement> {
        let path = context.data_folder.join(HUB_FOLDER).join(format!("{}.json", std::process::id()));
        let announced = (|| {
            std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
            let mut file = files::create_private(&path)?;
            file.try_lock()?;
            file.write_all(serde_json::to_string(self)?.as_bytes())?;
            Ok::<_, std::io::Error>(file)
        })();
        match announced {
            Ok(file) => Some(HubAnnouncement { path, _lock: file }),
            Err(error) => {
                tracing::debug!(%error, "other commands will not find this hub");
                None
            }
        }
    }
}

/// Keeps a hub announced.
#[derive(Debug)]
pub(crate) struct HubAnnouncement {
    path: PathBuf,
    _lock: File,
}

impl Drop for HubAnnouncement {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The hubs that run now. Files of hubs that were killed are removed.
pub(crate) fn running_hubs(context: &CliContext) -> Vec<RunningHub> {
    let entries = std::fs::read_dir(context.data_folder.join(HUB_FOLDER)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| read_hub(path)).collect()
}

fn read_hub(path: &Path) -> Option<RunningHub> {
    let file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(_)) => return None,
        Ok(()) => {
            let _ = std::fs::remove_file(path);
            return None;
        }
    }
    let hub: RunningHub = serde_json::from_reader(file).ok()?;
    (hub.version == VERSION).then_some(hub)
}

/// Says that running hubs reload the changed settings of the operator; `None` if there are none.
pub(crate) fn reload_note(context: &CliContext) -> Option<String> {
    let count = running_hubs(context).iter().filter(|hub| hub.has_operator_of(context)).count();
    match count {
        0 => None,
        1 => Some("  the running gateway reloads its settings".to_owned()),
        count => Some(format!("  {count} running gateways reload their settings")),
    }
}

/// Requests to reload a settings file, from the commands that change it to the hubs that read it. That a user edited the file is a
/// request, too.
#[derive(Debug)]
pub(crate) struct ReloadRequests {
    file: PathBuf,
    seen: Option<Vec<u8>>,
    settings_file: PathBuf,
    /// The content of the settings file that is in effect.
    loaded: Option<ContentHash>,
    /// The content at the last look. An editor may write in several steps, so it must stay the same from one look to the next.
    looked_at: Option<ContentHash>,
}

impl ReloadRequests {
    /// Requests from now on.
    pub(crate) fn listen(settings_file: &Path, data_folder: &Path) -> Self {
        let hash = ContentHash::of(absolute(settings_file).to_string_lossy().as_bytes()).to_string();
        let name = hash.get(..FILE_HASH_DIGITS).unwrap_or(&hash);
        let file = data_folder.join(RELOAD_FOLDER).join(name);
        let seen = std::fs::read(&file).ok();
        let loaded = content_hash(settings_file);
        Self { file, seen, settings_file: settings_file.to_owned(), loaded, looked_at: loaded }
    }

    /// Notes that the settings are read now.
    pub(crate) fn note_reload(&mut self) {
        self.loaded = content_hash(&self.settings_file);
    }

    /// Asks the hubs to reload.
    pub(crate) fn send(&self) {
        let mut id = [0; 16];
        if let Err(error) = getrandom::fill(&mut id) {
            tracing::debug!(%error, "running hubs are not told of the change");
            return;
        }
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        if let Err(error) = files::write(&self.file, id, files::Access::OwnerOnly) {
            tracing::debug!(error = error.message(), "running hubs are not told of the change");
        }
    }

    /// Completes at the next request.
    pub(crate) async fn next(&mut self) {
        while !self.take() {
            tokio::time::sleep(RELOAD_POLL_INTERVAL).await;
        }
    }

    /// Whether there is a request that was not taken yet, or another content of the settings file.
    fn take(&mut self) -> bool {
        let now = std::fs::read(&self.file).ok();
        let is_new = now.is_some() && now != self.seen;
        self.seen = now.or_else(|| self.seen.take());
        let content = content_hash(&self.settings_file);
        let is_edited = content.is_some() && content != self.loaded && content == self.looked_at;
        self.looked_at = content;
        if is_new || is_edited {
            self.loaded = content;
        }
        is_new || is_edited
    }
}

fn content_hash(file: &Path) -> Option<ContentHash> {
    std::fs::read(file).ok().map(|content| ContentHash::of(&content))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reaches_the_hubs_of_its_settings_file_only() {
        let folder = tempfile::tempdir().unwrap();
        let listen = |file: &str| ReloadRequests::listen(Path::new(file), folder.path());
        listen("/a.toml").send();
        let (mut a, mut b) = (listen("/a.toml"), listen("/b.toml"));
        assert!(!a.take(), "a request before the start is no request");
        listen("/a.toml").send();
        assert!(a.take() && !a.take(), "one request, one reload");
        assert!(!b.take());
    }

    #[test]
    fn an_edited_settings_file_is_a_request_once_it_stays_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("toolyard.toml");
        std::fs::write(&file, "").unwrap();
        let mut requests = ReloadRequests::listen(&file, folder.path());
        assert!(!requests.take());
        std::fs::write(&file, "[serv").unwrap();
        assert!(!requests.take(), "it may be half written");
        std::fs::write(&file, "[serve]").unwrap();
        assert!(!requests.take());
        assert!(requests.take() && !requests.take(), "one edit, one reload");
        std::fs::write(&file, "[serve]\n").unwrap();
        requests.note_reload();
        assert!(!requests.take() && !requests.take(), "SIGHUP has loaded it");
        std::fs::remove_file(&file).unwrap();
        assert!(!requests.take() && !requests.take(), "a file that is being replaced is no request");
    }

    #[test]
    fn the_file_of_a_killed_hub_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.json");
        let hub = RunningHub {
            version: VERSION,
            url: Some("http://127.0.0.1:1/mcp".to_owned()),
            needs_token: true,
            settings_files: Vec::new(),
            operator_file: "/a.toml".into(),
            project: "/".into(),
            operator_secret: Some(SecretText::new("s3cret")),
        };
        assert!(!format!("{hub:?}").contains("s3cret"));
        std::fs::write(&path, serde_json::to_string(&hub).unwrap()).unwrap();
        let locked = File::open(&path).unwrap();
        locked.lock().unwrap();
        assert_eq!(read_hub(&path), Some(hub));
        drop(locked);
        assert_eq!(read_hub(&path), None);
        assert!(!path.exists());
    }
}
