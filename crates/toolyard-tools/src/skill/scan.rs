//! Finds skills in folders and reads their frontmatter.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashSet, VecDeque},
    fs, io,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    files::{MANIFEST_FILE, SkillFileError, is_hidden, open_inside},
    manifest::{Manifest, ManifestError},
};

/// Levels of subfolders that are searched.
const MAX_DEPTH: usize = 4;
/// Folders that are searched below one skills folder.
const MAX_FOLDERS: usize = 2_000;

/// Where a skill comes from; a later scope overrides an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SkillScope {
    /// Skills shared with other programs or users.
    Shared,
    /// The user's own skills; their programs run without a trust decision.
    User,
    /// Skills of the current project.
    Project,
}

/// A folder to search for skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    /// The path; it need not exist.
    pub path: PathBuf,
    /// The scope of its skills.
    pub scope: SkillScope,
}

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// The name in use: that of the manifest or else of the folder, made valid if necessary.
    pub name: String,
    /// The scope.
    pub scope: SkillScope,
    /// The canonical path of the folder.
    pub path: PathBuf,
    /// The frontmatter of SKILL.md.
    pub manifest: Manifest,
    /// Violations of the Agent Skills specification that are tolerated.
    pub warnings: Vec<String>,
}

/// A folder that cannot be used as a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RejectedSkill {
    /// The path.
    pub path: PathBuf,
    /// The reason.
    pub reason: RejectReason,
}

/// Why a folder cannot be used as a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RejectReason {
    /// The frontmatter of SKILL.md is invalid.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// `SKILL.md` cannot be opened; the text says why.
    ///
    /// Remedy: check that the file exists and is readable for this user.
    #[error("failed to open SKILL.md: {0}")]
    File(#[from] SkillFileError),
    /// Neither `name` in `SKILL.md` nor the name of the folder can be turned into the name of a tool.
    ///
    /// Remedy: set `name` to letters, digits and `-`.
    #[error("the skill's name cannot be made valid")]
    InvalidName,
    /// A link in a folder of skills leads out of it.
    ///
    /// Remedy: move the skill into the folder, or add its folder to `[skills] folders`.
    #[error("the link leads out of the skills folder")]
    LinkOutsideFolder,
    /// A folder of skills could not be read; the text says why.
    ///
    /// Remedy: check the permissions of the folder.
    #[error("failed to read the folder: {0}")]
    Unreadable(String),
    /// The search for skills stopped before all folders were visited.
    ///
    /// Remedy: point `[skills] folders` at the folder of the skills, not at a folder above many others.
    #[error("more than {MAX_FOLDERS} folders; the rest was not searched")]
    TooManyFolders,
}

/// A skill that is overridden by another one of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShadowedSkill {
    /// The name of both.
    pub name: String,
    /// The folder of this skill.
    pub path: PathBuf,
    /// The scope of this skill.
    pub scope: SkillScope,
    /// The folder of the skill that is used instead.
    pub by: PathBuf,
}

/// The result of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanReport {
    /// The skills, sorted by name, each name once.
    pub skills: Vec<Skill>,
    /// Folders that cannot be used as skills.
    pub rejected: Vec<RejectedSkill>,
    /// Overridden skills.
    pub shadowed: Vec<ShadowedSkill>,
}

/// Searches the folders. Project overrides user overrides shared; within a scope the earlier folder wins.
///
/// This ignores trust. [`load()`](super::load()) prefers, among skills of one name, those that may run programs.
pub fn scan(folders: &[SkillFolder]) -> ScanReport {
    let (mut found, rejected) = scan_all(folders);
    // A stable sort: within a scope, the order of the folders decides.
    found.sort_by_key(|skill| Reverse(skill.scope));
    let (skills, shadowed) = select_by_name(found, |skill| skill);
    ScanReport { skills, rejected, shadowed }
}

/// All skills in the order of the folders, including several of one name, and the rejected folders.
pub(super) fn scan_all(folders: &[SkillFolder]) -> (Vec<Skill>, Vec<RejectedSkill>) {
    let (mut found, mut rejected) = (Vec::new(), Vec::new());
    for folder in folders {
        FolderWalk { scope: folder.scope, found: &mut found, rejected: &mut rejected }.walk(&folder.path);
    }
    (found, rejected)
}

/// The first item of each skill name, sorted by name, and the skills of all others as shadowed by it.
pub(super) fn select_by_name<T>(
    found: Vec<T>,
    skill_of: impl Fn(&T) -> &Skill,
) -> (Vec<T>, Vec<ShadowedSkill>) {
    let mut selected: BTreeMap<String, T> = BTreeMap::new();
    let mut shadowed = Vec::new();
    for item in found {
        let skill = skill_of(&item);
        match selected.get(&skill.name).map(&skill_of) {
            // The same folder may be reached twice.
            Some(winner) if winner.path == skill.path => {}
            Some(winner) => shadowed.push(ShadowedSkill {
                by: winner.path.clone(),
                name: skill.name.clone(),
                path: skill.path.clone(),
                scope: skill.scope,
            }),
            None => {
                selected.insert(skill.name.clone(), item);
            }
        }
    }
    shadowed.sort_by(|left, right| (&left.name, &left.path).cmp(&(&right.name, &right.path)));
    (selected.into_values().collect(), shadowed)
}

struct FolderWalk<'a> {
    scope: SkillScope,
    found: &'a mut Vec<Skill>,
    rejected: &'a mut Vec<RejectedSkill>,
}

impl FolderWalk<'_> {
    /// Searches breadth first, so that the limit on folders excludes the deepest ones.
    fn walk(&mut self, path: &Path) {
        let root = match path.canonicalize() {
            Ok(root) => root,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.reject(path, RejectReason::Unreadable(error.to_string())),
        };
        let mut visited = HashSet::from([root.clone()]);
        let mut folders = VecDeque::from([(root.clone(), 0)]);
        while let Some((folder, depth)) = folders.pop_front() {
            if fs::symlink_metadata(folder.join(MANIFEST_FILE)).is_ok() {
                self.add_skill(&folder);
                continue;
            }
            if depth == MAX_DEPTH {
                continue;
            }
            for inner in self.subfolders(&root, &folder) {
                if visited.len() >= MAX_FOLDERS {
                    return self.reject(&root, RejectReason::TooManyFolders);
                }
                if visited.insert(inner.clone()) {
                    folders.push_back((inner, depth + 1));
                }
            }
        }
    }

    /// The canonical folders directly in a folder, sorted.
    fn subfolders(&mut self, root: &Path, folder: &Path) -> Vec<PathBuf> {
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
                Ok(_) => self.reject(&path, RejectReason::LinkOutsideFolder),
                Err(error) => self.reject(&path, RejectReason::Unreadable(error.to_string())),
            }
        }
        folders
    }

    fn add_skill(&mut self, folder: &Path) {
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
    let name = name.ok_or(RejectReason::InvalidName)?;
    let warnings = name_warnings.into_iter().chain(manifest.warnings.iter().cloned()).collect();
    Ok(Skill { name, scope, path: folder.to_owned(), manifest, warnings })
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
