//! Skills of this machine, served over MCP (SEP-2640): listed with digests and sizes, read file by file.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use toolyard_core::{BoxFuture, RawJson};

use super::skill_files::{LocalFile, LocalSkill, MANIFEST, digest_of, kind_of};
use crate::{
    server::{ContentKind, ContentKinds, ContentRequest, ContentService},
    wire::{RpcError, text_of},
};

/// JSON-RPC's codes for parameters that cannot be and for trouble on our side, and MCP's for a resource that is not there.
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
const NOT_FOUND: i64 = -32002;
/// A longer address is none.
const LONGEST: usize = 8 << 10;

/// Skills of this machine.
#[derive(Debug, Clone)]
pub struct LocalSkills {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folders: Vec<PathBuf>,
    /// Digests of files, as long as these do not change.
    digests: Mutex<HashMap<PathBuf, Digested>>,
    /// The addresses of the skills that were found last.
    roots: Mutex<Vec<String>>,
    /// What was warned of already.
    warned: Mutex<BTreeSet<String>>,
}

#[derive(Debug, Clone)]
struct Digested {
    size: u64,
    changed: Option<SystemTime>,
    digest: String,
}

impl LocalSkills {
    /// The skills in these folders. A folder with a SKILL.md is a skill itself; of any other, the folders in it are looked at.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        let (digests, roots, warned) = (Mutex::default(), Mutex::default(), Mutex::default());
        let skills = Self { shared: Arc::new(Shared { folders, digests, roots, warned }) };
        // Whoever stands beside us must know at once which addresses are taken.
        skills.shared.look();
        skills
    }

    /// The addresses of the skills there are, each with a slash at its end.
    pub(super) fn folders(&self) -> Vec<String> {
        self.shared.roots.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at files where that does not hold up anybody else.
    async fn off_to_the_side<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shared) -> T + Send + 'static,
    ) -> Result<T, RpcError> {
        let shared = Arc::clone(&self.shared);
        let done = tokio::task::spawn_blocking(move || work(&shared)).await;
        done.map_err(|error| RpcError { code: INTERNAL, message: error.to_string(), data: None })
    }
}

impl ContentService for LocalSkills {
    fn kinds(&self) -> ContentKinds {
        ContentKinds { resources: true, skills: true, ..ContentKinds::default() }
    }

    fn list(&self, kind: ContentKind) -> BoxFuture<'_, Vec<RawJson>> {
        Box::pin(async move {
            let listed = self.off_to_the_side(move |shared| match kind {
                ContentKind::Skills => shared.look().iter().map(|skill| shared.entry(skill).into()).collect(),
                ContentKind::Resources => shared.look().iter().map(|skill| manifest(skill).into()).collect(),
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
            let answer: fn(&Shared, &LocalSkill, &str) -> Result<Value, RpcError> = match request.method {
                "skills/get" => Shared::get,
                "resources/read" => |_, skill, address| read(skill, address),
                "resources/directory/read" => |_, skill, address| list_folder(skill, address),
                _ => return None,
            };
            let address = text_of(request.params, "uri", LONGEST)?;
            let answered = self.off_to_the_side(move |shared| {
                let skills = shared.look();
                let skill = skills.iter().find(|skill| {
                    let root = skill.root();
                    address.starts_with(&root) || root.strip_suffix('/') == Some(&address)
                });
                skill.map(|skill| answer(shared, skill, &address))
            });
            match answered.await {
                Ok(answer) => answer.map(|answer| answer.map(Into::into)),
                Err(error) => Some(Err(error)),
            }
        })
    }
}

impl Shared {
    /// All skills at this moment, by name.
    fn look(&self) -> Vec<LocalSkill> {
        let mut found: BTreeMap<String, LocalSkill> = BTreeMap::new();
        for folder in self.folders.iter().flat_map(|folder| skill_folders(folder)) {
            match LocalSkill::look(&folder) {
                Ok(skill) => match found.get(&skill.name) {
                    Some(first) if first.folder != skill.folder => {
                        let first = first.folder.display();
                        self.warn(&folder, &format!("a skill of that name is served from {first} already"));
                    }
                    _ => drop(found.insert(skill.name.clone(), skill)),
                },
                Err(error) => self.warn(&folder, &error.to_string()),
            }
        }
        let roots = found.values().map(LocalSkill::root).collect();
        *self.roots.lock().unwrap_or_else(PoisonError::into_inner) = roots;
        found.into_values().collect()
    }

    /// Says once why a folder is not served.
    fn warn(&self, folder: &std::path::Path, why: &str) {
        let folder = folder.display();
        let warning = format!("the skill in {folder} is not served: {why}");
        if self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(warning.clone()) {
            tracing::warn!("{warning}");
        }
    }

    fn get(&self, skill: &LocalSkill, address: &str) -> Result<Value, RpcError> {
        if address != skill.address(&[MANIFEST.to_owned()]) {
            return Err(refused(INVALID_PARAMS, format!("there is no skill at {address}")));
        }
        Ok(json!({ "skill": self.entry(skill) }))
    }

    fn entry(&self, skill: &LocalSkill) -> Value {
        let files: Vec<Value> = skill
            .files
            .iter()
            .filter_map(|file| {
                let digest = self.digest(skill, file)?;
                Some(json!({"uri": skill.address(&file.steps), "digest": digest.digest, "size": digest.size}))
            })
            .collect();
        let uri = skill.address(&[MANIFEST.to_owned()]);
        json!({"uri": uri, "frontmatter": skill.frontmatter, "resources": files})
    }

    /// The digest of a file, and the size of what was digested; none if the file is gone.
    fn digest(&self, skill: &LocalSkill, file: &LocalFile) -> Option<Digested> {
        let path = file.steps.iter().fold(skill.folder.clone(), |path, step| path.join(step));
        let known = self.digests.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
        if let Some(known) = known.filter(|known| {
            file.changed.is_some() && (known.size, known.changed) == (file.size, file.changed)
        }) {
            return Some(known);
        }
        let bytes = skill.read(file).ok()?;
        let size = u64::try_from(bytes.len()).ok()?;
        let digested = Digested { size, changed: file.changed, digest: digest_of(&bytes) };
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).insert(path, digested.clone());
        Some(digested)
    }
}

/// The folder itself if it is a skill, else the folders in it that are.
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

/// A skill's SKILL.md as a resource.
fn manifest(skill: &LocalSkill) -> Value {
    json!({
        "uri": skill.address(&[MANIFEST.to_owned()]),
        "name": skill.name,
        "description": skill.frontmatter.get("description"),
        "mimeType": "text/markdown",
    })
}

fn read(skill: &LocalSkill, address: &str) -> Result<Value, RpcError> {
    let missing = || refused(NOT_FOUND, format!("there is no resource {address}"));
    let file = skill.file(address).ok_or_else(missing)?;
    let bytes = skill.read(file).map_err(|error| refused(INTERNAL, format!("{address}: {error}")))?;
    let kind = kind_of(file.steps.last().map_or("", String::as_str));
    let content = match String::from_utf8(bytes) {
        Ok(text) => {
            let kind = if kind == "application/octet-stream" { "text/plain" } else { kind };
            json!({"uri": address, "mimeType": kind, "text": text})
        }
        Err(error) => {
            let kind = if kind.starts_with("text/") { "application/octet-stream" } else { kind };
            json!({"uri": address, "mimeType": kind, "blob": STANDARD.encode(error.as_bytes())})
        }
    };
    Ok(json!({ "contents": [content] }))
}

/// What is directly in a folder of a skill.
fn list_folder(skill: &LocalSkill, address: &str) -> Result<Value, RpcError> {
    let folder = address.strip_suffix('/').unwrap_or(address);
    let root = skill.root();
    let leads_there = |steps: &[String]| skill.address(steps) == folder;
    let depth = if root.strip_suffix('/') == Some(folder) {
        Some(0)
    } else {
        skill.files.iter().find_map(|file| {
            (1..file.steps.len()).find(|depth| file.steps.get(..*depth).is_some_and(leads_there))
        })
    };
    let Some(depth) = depth else {
        return Err(refused(INVALID_PARAMS, format!("{address} is no folder")));
    };
    let (mut children, mut folders) = (Vec::new(), BTreeSet::new());
    for file in &skill.files {
        let inside = depth == 0 || file.steps.get(..depth).is_some_and(leads_there);
        let (true, Some(name)) = (inside, file.steps.get(depth)) else { continue };
        let steps = file.steps.get(..=depth).unwrap_or_default();
        let uri = skill.address(steps);
        if steps.len() < file.steps.len() {
            if folders.insert(uri.clone()) {
                children.push(json!({"uri": uri, "name": name, "mimeType": "inode/directory"}));
            }
        } else if uri == skill.address(&[MANIFEST.to_owned()]) {
            children.push(manifest(skill));
        } else {
            children.push(json!({"uri": uri, "name": name, "mimeType": kind_of(name), "size": file.size}));
        }
    }
    Ok(json!({ "resources": children }))
}

fn refused(code: i64, message: String) -> RpcError {
    RpcError { code, message, data: None }
}

#[cfg(test)]
#[path = "local_skills_tests.rs"]
mod tests;
