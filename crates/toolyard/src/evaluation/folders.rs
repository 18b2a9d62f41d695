//! Finds test sets in the folders that were named.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use super::{
    data::{DataError, Source, Tools},
    split::Split,
    suite::{Guest, Set, Suite, mixed},
};

const TOOLS: &str = "tools.jsonl";
const QUERIES: &str = "queries.jsonl";
const TASKS: &str = "tasks.jsonl";
/// Queries over the tools of sets, looked for beside a folder of sets; and the folder of sets beside them.
const GUESTS: &str = "bilingual";
const SETS: &str = "retrieval";

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    sets: Vec<Set>,
    guests: Vec<Guest>,
    /// Catalogues nearby, for guests whose tools were not given.
    nearby: Vec<Tools>,
    /// Whether one of the folders was a folder of sets.
    many: bool,
    seen: HashSet<PathBuf>,
}

impl Found {
    /// Reads all sets in these folders: a set, queries over another set's tools, or a folder of such folders.
    pub fn read(folders: &[PathBuf]) -> Result<Self, DataError> {
        let mut found = Self::default();
        for folder in folders {
            if !found.take(folder)? {
                found.take_all(folder)?;
            }
        }
        let mut names = HashSet::new();
        if let Some(set) = found.sets.iter().find(|set| !names.insert(&set.name)) {
            return Err(DataError::SameName { name: set.name.clone() });
        }
        Ok(found)
    }

    /// The questions of all sets; all sets as one catalogue when that is wished or a folder of sets was given.
    pub fn suites(&self, split: Split, as_one: bool) -> Result<Vec<Suite>, DataError> {
        let asking = || self.sets.iter().filter(|set| !set.queries.is_empty());
        let mut suites = asking().map(|set| set.suite(split)).collect::<Result<Vec<_>, _>>()?;
        if (as_one || self.many) && self.sets.len() > 1 && asking().next().is_some() {
            suites.push(mixed(&self.sets, split)?);
        }
        for guest in &self.guests {
            suites.push(guest.suite(self.sets.iter().map(|set| &set.tools).chain(&self.nearby), split)?);
        }
        suites.iter_mut().for_each(|suite| suite.groups.retain(|group| !group.questions.is_empty()));
        suites.retain(|suite| !suite.groups.is_empty());
        if suites.is_empty() { Err(DataError::NoQueries) } else { Ok(suites) }
    }

    /// Takes the folder itself, if it is one that counts.
    fn take(&mut self, folder: &Path) -> Result<bool, DataError> {
        let has = |file: &str| folder.join(file).is_file();
        if !has(QUERIES) {
            return Ok(false);
        }
        // The same folder under two names is still one.
        let place =
            folder.canonicalize().map_err(|source| DataError::Read { file: folder.to_owned(), source })?;
        let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !self.seen.insert(place.clone()) {
            return Ok(true);
        }
        let queries = read(folder, QUERIES)?;
        if has(TOOLS) {
            self.sets.push(Set::read(name, &read(folder, TOOLS)?, queries)?);
            return Ok(true);
        }
        let tasks = has(TASKS).then(|| read(folder, TASKS)).transpose()?;
        self.guests.push(Guest { name, queries, tasks });
        for neighbour in place.parent().map(|parent| children(&parent.join(SETS))).unwrap_or_default() {
            if neighbour.join(TOOLS).is_file() {
                self.nearby.push(Tools::read(&read(&neighbour, TOOLS)?)?);
            }
        }
        Ok(true)
    }

    /// Takes what is in the folder, and what is in folders of that.
    fn take_all(&mut self, folder: &Path) -> Result<(), DataError> {
        std::fs::read_dir(folder).map_err(|source| DataError::Read { file: folder.to_owned(), source })?;
        let mut any = false;
        for child in children(folder) {
            let sets = self.sets.len();
            let mut taken = self.take(&child)?;
            if !taken {
                for grandchild in children(&child) {
                    taken |= self.take(&grandchild)?;
                }
            }
            self.many |= self.sets.len() > sets;
            any |= taken;
        }
        if !any {
            return Err(DataError::NoSet { folder: folder.to_owned() });
        }
        if let Some(parent) = folder.canonicalize().ok().as_deref().and_then(Path::parent) {
            self.take(&parent.join(GUESTS))?;
        }
        Ok(())
    }
}

/// The folders in a folder, by name.
fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn read(folder: &Path, name: &str) -> Result<Source, DataError> {
    let file = folder.join(name);
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok(Source { file, text }),
        Err(source) => Err(DataError::Read { file, source }),
    }
}

#[cfg(test)]
#[path = "folders_tests.rs"]
mod tests;
