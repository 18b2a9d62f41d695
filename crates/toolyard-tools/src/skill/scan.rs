//! Finds skills in folders; reads their frontmatter and nothing else.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashSet, VecDeque},
    fs, io,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    folder::{MANIFEST_FILE, ResourceError, is_hidden, open_inside},
    manifest::{Manifest, ManifestError},
};

const MAX_DEPTH: usize = 4;
const MAX_FOLDERS: usize = 2_000;

/// Whose skills a folder holds; a later scope overrides an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SkillScope {
    /// Skills shared with other programs or people.
    Shared,
    /// The operator's own skills; their programs may run.
    Own,
    /// Skills that came with the project at hand.
    Project,
}

/// A folder that is looked through for skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    /// Where it is; it need not exist.
    pub path: PathBuf,
    /// Whose skills it holds.
    pub scope: SkillScope,
}

/// A skill that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// The name it goes by.
    pub name: String,
    /// Whose it is.
    pub scope: SkillScope,
    /// Its folder, in canonical form.
    pub path: PathBuf,
    /// What its SKILL.md says.
    pub manifest: Manifest,
    /// What does not follow the rules and was accepted all the same.
    pub warnings: Vec<String>,
}

/// A folder that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RejectedSkill {
    /// Where it is.
    pub path: PathBuf,
    /// Why.
    pub reason: RejectReason,
}

/// Why a folder was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RejectReason {
    /// Its SKILL.md cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Its SKILL.md cannot be opened.
    #[error("SKILL.md cannot be used: {0}")]
    File(#[from] ResourceError),
    /// Neither its name nor its folder's name can be used.
    #[error("its name cannot be used")]
    NoName,
    /// A link that leads out of the folder that is looked through.
    #[error("the link leads out of the skills folder")]
    LeadsOut,
    /// The folder could not be read.
    #[error("failed to read the folder: {0}")]
    Unreadable(String),
    /// Not all folders were looked at.
    #[error("more than {MAX_FOLDERS} folders; the rest was not looked at")]
    TooManyFolders,
}

/// A skill that stays unused because another one has its name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShadowedSkill {
    /// The name both have.
    pub name: String,
    /// The unused one's folder.
    pub path: PathBuf,
    /// The unused one's scope.
    pub scope: SkillScope,
    /// The folder of the one that is used.
    pub by: PathBuf,
}

/// Everything that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scan {
    /// The skills, sorted by name; each name once.
    pub skills: Vec<Skill>,
    /// What was not accepted.
    pub rejected: Vec<RejectedSkill>,
    /// What is overridden by another skill of the same name.
    pub shadowed: Vec<ShadowedSkill>,
}

/// Looks through the folders. Project overrides own overrides shared; within a scope the earlier folder wins.
///
/// Trust is not looked at here: [`load()`](super::load()) prefers a skill that may run programs to one of the same name
/// that may not, whatever their scopes.
pub fn scan(folders: &[SkillFolder]) -> Scan {
    let (mut found, rejected) = everything(folders);
    // A stable sort: within a scope, the order of the folders decides.
    found.sort_by_key(|skill| Reverse(skill.scope));
    let (skills, shadowed) = first_of_each_name(found, |skill| skill);
    Scan { skills, rejected, shadowed }
}

/// All skills in the order of the folders, several of one name among them, and what was not accepted.
pub(super) fn everything(folders: &[SkillFolder]) -> (Vec<Skill>, Vec<RejectedSkill>) {
    let (mut found, mut rejected) = (Vec::new(), Vec::new());
    for folder in folders {
        let mut walk = Walk { scope: folder.scope, found: &mut found, rejected: &mut rejected };
        walk.through(&folder.path);
    }
    (found, rejected)
}

/// The first skill of each name, sorted by name, and all others as shadowed by it.
pub(super) fn first_of_each_name<T>(
    found: Vec<T>,
    skill: impl Fn(&T) -> &Skill,
) -> (Vec<T>, Vec<ShadowedSkill>) {
    let mut used: BTreeMap<String, T> = BTreeMap::new();
    let mut shadowed = Vec::new();
    for next in found {
        let this = skill(&next);
        match used.get(&this.name).map(&skill) {
            // The same folder may be reached twice.
            Some(winner) if winner.path == this.path => {}
            Some(winner) => shadowed.push(ShadowedSkill {
                by: winner.path.clone(),
                name: this.name.clone(),
                path: this.path.clone(),
                scope: this.scope,
            }),
            None => {
                used.insert(this.name.clone(), next);
            }
        }
    }
    shadowed.sort_by(|left, right| (&left.name, &left.path).cmp(&(&right.name, &right.path)));
    (used.into_values().collect(), shadowed)
}

struct Walk<'a> {
    scope: SkillScope,
    found: &'a mut Vec<Skill>,
    rejected: &'a mut Vec<RejectedSkill>,
}

impl Walk<'_> {
    /// Breadth first, so that the limit on folders cuts off the deepest ones.
    fn through(&mut self, path: &Path) {
        let root = match path.canonicalize() {
            Ok(root) => root,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.reject(path, RejectReason::Unreadable(error.to_string())),
        };
        let mut seen = HashSet::from([root.clone()]);
        let mut folders = VecDeque::from([(root.clone(), 0)]);
        while let Some((folder, depth)) = folders.pop_front() {
            if fs::symlink_metadata(folder.join(MANIFEST_FILE)).is_ok() {
                self.take(&folder);
                continue;
            }
            if depth == MAX_DEPTH {
                continue;
            }
            for inner in self.folders_in(&root, &folder) {
                if seen.len() >= MAX_FOLDERS {
                    return self.reject(&root, RejectReason::TooManyFolders);
                }
                if seen.insert(inner.clone()) {
                    folders.push_back((inner, depth + 1));
                }
            }
        }
    }

    /// The canonical folders directly in a folder, sorted.
    fn folders_in(&mut self, root: &Path, folder: &Path) -> Vec<PathBuf> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.reject(folder, RejectReason::Unreadable(error.to_string()));
                return Vec::new();
            }
        };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        let mut folders = Vec::new();
        for name in names {
            if is_hidden(name.as_encoded_bytes()) || name == "node_modules" {
                continue;
            }
            let path = folder.join(name);
            if !fs::metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
                continue;
            }
            match path.canonicalize() {
                Ok(canonical) if canonical.starts_with(root) => folders.push(canonical),
                Ok(_) => self.reject(&path, RejectReason::LeadsOut),
                Err(error) => self.reject(&path, RejectReason::Unreadable(error.to_string())),
            }
        }
        folders
    }

    fn take(&mut self, folder: &Path) {
        match read_skill(folder, self.scope) {
            Ok(skill) => self.found.push(skill),
            Err(reason) => self.reject(folder, reason),
        }
    }

    fn reject(&mut self, path: &Path, reason: RejectReason) {
        self.rejected.push(RejectedSkill { path: path.to_owned(), reason });
    }
}

fn read_skill(folder: &Path, scope: SkillScope) -> Result<Skill, RejectReason> {
    let (file, _) = open_inside(folder, Path::new(MANIFEST_FILE))?;
    let manifest = Manifest::read(file)?;
    let folder_name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (name, name_warnings) = manifest.usable_name(&folder_name);
    let name = name.ok_or(RejectReason::NoName)?;
    let warnings = name_warnings.into_iter().chain(manifest.warnings.iter().cloned()).collect();
    Ok(Skill { name, scope, path: folder.to_owned(), manifest, warnings })
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
