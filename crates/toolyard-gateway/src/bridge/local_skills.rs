//! [`LocalSkills`]: serves skills of this machine over MCP (SEP-2640), with digests and sizes of their files.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    sync::Arc,
    time::SystemTime,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolyard_core::{BoxFuture, RawJson};
use toolyard_mcp::{RpcError, error_code, text_field};
use toolyard_mcp_server::{ContentCapabilities, ContentKind, ContentRequest, ContentService};

use super::{
    MAX_URI_BYTES, is_within,
    local_skill::{LocalFile, LocalSkill, MANIFEST, mime_type, sha256_digest},
    rpc_error,
};

/// Skills of this machine.
#[derive(Debug, Clone)]
pub struct LocalSkills {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folders: Vec<PathBuf>,
    digests: Mutex<HashMap<PathBuf, FileDigest>>,
    /// The folder URIs of the skills that were found last.
    folder_uris: Mutex<Vec<String>>,
    logged_warnings: Mutex<BTreeSet<String>>,
}

/// The digest of a file, valid while size and time of modification are the same.
#[derive(Debug, Clone)]
struct FileDigest {
    size: u64,
    modified: Option<SystemTime>,
    digest: String,
}

impl LocalSkills {
    /// The skills in these folders. A folder with a SKILL.md is a skill; any other folder contains skill folders.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        let (digests, folder_uris, logged_warnings) = (Mutex::default(), Mutex::default(), Mutex::default());
        let skills = Self { shared: Arc::new(Shared { folders, digests, folder_uris, logged_warnings }) };
        // `folder_uris` is asked before the first `list`, so that no server can claim a URI of a local skill.
        skills.shared.load();
        skills
    }

    /// The folder URIs of all skills, each with a trailing slash.
    pub(super) fn folder_uris(&self) -> Vec<String> {
        self.shared.folder_uris.lock().clone()
    }

    /// Runs file operations on a thread for blocking work.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> T + Send + 'static,
    ) -> Result<T, RpcError> {
        let shared = Arc::clone(&self.shared);
        let result = tokio::task::spawn_blocking(move || work(&shared)).await;
        result.map_err(|error| rpc_error(error_code::INTERNAL_ERROR, error.to_string()))
    }
}

impl ContentService for LocalSkills {
    fn capabilities(&self) -> ContentCapabilities {
        ContentCapabilities { resources: true, skills: true, ..ContentCapabilities::default() }
    }

    fn list(&self, kind: ContentKind) -> BoxFuture<'_, Vec<RawJson>> {
        Box::pin(async move {
            let listed = self.run_blocking(move |shared| match kind {
                ContentKind::Skills => {
                    shared.load().iter().map(|skill| shared.list_entry(skill).into()).collect()
                }
                ContentKind::Resources => {
                    shared.load().iter().map(|skill| manifest_resource(skill).into()).collect()
                }
                ContentKind::Prompts | ContentKind::ResourceTemplates => Vec::new(),
            });
            listed.await.unwrap_or_default()
        })
    }

    fn request<'a>(
        &'a self,
        request: ContentRequest<'a>,
    ) -> BoxFuture<'a, Option<Result<RawJson, RpcError>>> {
        Box::pin(async move {
            let handler: fn(&Shared, &LocalSkill, &str) -> Result<Value, RpcError> = match request.method {
                "skills/get" => Shared::get,
                "resources/read" => |_, skill, uri| read(skill, uri),
                "resources/directory/read" => |_, skill, uri| read_directory(skill, uri),
                _ => return None,
            };
            let uri = text_field(request.params, "uri", MAX_URI_BYTES)?;
            let response = self.run_blocking(move |shared| {
                let skills = shared.load();
                let skill = skills.iter().find(|skill| is_within(&uri, &skill.folder_uri()));
                skill.map(|skill| handler(shared, skill, &uri))
            });
            match response.await {
                Ok(response) => response.map(|response| response.map(Into::into)),
                Err(error) => Some(Err(error)),
            }
        })
    }
}

impl Shared {
    /// All skills, sorted by name.
    fn load(&self) -> Vec<LocalSkill> {
        let mut found: BTreeMap<String, LocalSkill> = BTreeMap::new();
        for folder in self.folders.iter().flat_map(|folder| skill_folders(folder)) {
            match LocalSkill::load(&folder) {
                Ok(skill) => match found.get(&skill.name) {
                    Some(first) if first.folder != skill.folder => {
                        let first = first.folder.display();
                        self.warn(&folder, &format!("another skill of this name is served from {first}"));
                    }
                    _ => drop(found.insert(skill.name.clone(), skill)),
                },
                Err(error) => self.warn(&folder, &error.to_string()),
            }
        }
        let uris = found.values().map(LocalSkill::folder_uri).collect();
        *self.folder_uris.lock() = uris;
        found.into_values().collect()
    }

    /// Logs once why a folder is not served.
    fn warn(&self, folder: &std::path::Path, reason: &str) {
        let folder = folder.display();
        let warning = format!("skill in {folder} is not served: {reason}");
        if self.logged_warnings.lock().insert(warning.clone()) {
            tracing::warn!("{warning}");
        }
    }

    fn get(&self, skill: &LocalSkill, uri: &str) -> Result<Value, RpcError> {
        if uri != skill.manifest_uri() {
            return Err(rpc_error(error_code::INVALID_PARAMS, format!("no skill has the URI {uri}")));
        }
        Ok(json!({ "skill": self.list_entry(skill) }))
    }

    fn list_entry(&self, skill: &LocalSkill) -> Value {
        let files: Vec<Value> = skill
            .files
            .iter()
            .filter_map(|file| {
                let digest = self.digest(skill, file)?;
                Some(json!({"uri": skill.uri(&file.path), "digest": digest.digest, "size": digest.size}))
            })
            .collect();
        json!({"uri": skill.manifest_uri(), "frontmatter": skill.frontmatter, "resources": files})
    }

    /// The digest of a file and the size it was computed for; none if the file cannot be read.
    fn digest(&self, skill: &LocalSkill, file: &LocalFile) -> Option<FileDigest> {
        let path = skill.path_of(file);
        let cached = self.digests.lock().get(&path).cloned();
        if let Some(cached) = cached.filter(|cached| {
            file.modified.is_some() && (cached.size, cached.modified) == (file.size, file.modified)
        }) {
            return Some(cached);
        }
        let bytes = skill.read(file).ok()?;
        let size = u64::try_from(bytes.len()).ok()?;
        let digest = FileDigest { size, modified: file.modified, digest: sha256_digest(&bytes) };
        self.digests.lock().insert(path, digest.clone());
        Some(digest)
    }
}

/// The folder itself if it is a skill, else the skill folders in it.
fn skill_folders(folder: &std::path::Path) -> Vec<PathBuf> {
    if folder.join(MANIFEST).is_file() {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.join(MANIFEST).is_file());
    folders.sort();
    folders
}

/// The SKILL.md of a skill as a resource.
fn manifest_resource(skill: &LocalSkill) -> Value {
    json!({
        "uri": skill.manifest_uri(),
        "name": skill.name,
        "description": skill.frontmatter.get("description"),
        "mimeType": "text/markdown",
    })
}

fn read(skill: &LocalSkill, uri: &str) -> Result<Value, RpcError> {
    let not_found = || rpc_error(error_code::RESOURCE_NOT_FOUND, format!("no resource has the URI {uri}"));
    let file = skill.file(uri).ok_or_else(not_found)?;
    let bytes =
        skill.read(file).map_err(|error| rpc_error(error_code::INTERNAL_ERROR, format!("{uri}: {error}")))?;
    let mime_type = mime_type(file.path.last().map_or("", String::as_str));
    let content = match String::from_utf8(bytes) {
        Ok(text) => {
            let mime_type = if mime_type == "application/octet-stream" { "text/plain" } else { mime_type };
            json!({"uri": uri, "mimeType": mime_type, "text": text})
        }
        Err(error) => {
            let is_text = mime_type.starts_with("text/");
            let mime_type = if is_text { "application/octet-stream" } else { mime_type };
            json!({"uri": uri, "mimeType": mime_type, "blob": STANDARD.encode(error.as_bytes())})
        }
    };
    Ok(json!({ "contents": [content] }))
}

/// The direct children of a folder of a skill.
fn read_directory(skill: &LocalSkill, uri: &str) -> Result<Value, RpcError> {
    let folder = uri.strip_suffix('/').unwrap_or(uri);
    let is_requested_folder = |path: &[String]| skill.uri(path) == folder;
    let folder_depth = if skill.folder_uri().strip_suffix('/') == Some(folder) {
        Some(0)
    } else {
        skill.files.iter().find_map(|file| {
            (1..file.path.len()).find(|depth| file.path.get(..*depth).is_some_and(is_requested_folder))
        })
    };
    let Some(folder_depth) = folder_depth else {
        return Err(rpc_error(error_code::INVALID_PARAMS, format!("{uri} is not a folder")));
    };
    let (mut children, mut folders) = (Vec::new(), BTreeSet::new());
    for file in &skill.files {
        let is_inside = folder_depth == 0 || file.path.get(..folder_depth).is_some_and(is_requested_folder);
        let (true, Some(name)) = (is_inside, file.path.get(folder_depth)) else { continue };
        let path = file.path.get(..=folder_depth).unwrap_or_default();
        let uri = skill.uri(path);
        if path.len() < file.path.len() {
            if folders.insert(uri.clone()) {
                children.push(json!({"uri": uri, "name": name, "mimeType": "inode/directory"}));
            }
        } else if uri == skill.manifest_uri() {
            children.push(manifest_resource(skill));
        } else {
            children.push(json!({"uri": uri, "name": name, "mimeType": mime_type(name), "size": file.size}));
        }
    }
    Ok(json!({ "resources": children }))
}

#[cfg(test)]
#[path = "local_skills_tests.rs"]
mod tests;
