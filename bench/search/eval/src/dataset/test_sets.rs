//! Finds test sets in folders.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use super::{
    records::{Catalogue, DatasetError, SourceFile},
    server_lists::ServerLists,
    split::Split,
    suite::{QuerySet, Suite, TestSet, mixed},
};

const TOOLS_FILE: &str = "tools.jsonl";
const QUERIES_FILE: &str = "queries.jsonl";
const TASKS_FILE: &str = "tasks.jsonl";
/// Folder of query sets beside a folder of test sets.
const QUERY_SETS_FOLDER: &str = "bilingual";
/// Folder of test sets beside a query set.
const TEST_SETS_FOLDER: &str = "retrieval";

/// Test sets and query sets found in folders.
#[derive(Debug, Default)]
pub struct TestSets {
    sets: Vec<TestSet>,
    query_sets: Vec<QuerySet>,
    /// Catalogues beside query sets, used if the given sets lack their tools.
    nearby_catalogues: Vec<Catalogue>,
    /// Whether a folder of test sets was given.
    has_folder_of_sets: bool,
    visited: HashSet<PathBuf>,
}

impl TestSets {
    /// Reads folders: test sets, query sets, or folders of them.
    pub fn read(folders: &[PathBuf]) -> Result<Self, DatasetError> {
        let mut test_sets = Self::default();
        for folder in folders {
            if !test_sets.add(folder)? {
                test_sets.add_children(folder)?;
            }
        }
        let mut names = HashSet::new();
        if let Some(set) = test_sets.sets.iter().find(|set| !names.insert(&set.name)) {
            return Err(DatasetError::SameName { name: set.name.clone() });
        }
        Ok(test_sets)
    }

    /// One suite per set, and one over all tools if `as_mixed` or if a folder of test sets was given.
    pub fn suites(&self, split: Split, as_mixed: bool) -> Result<Vec<Suite>, DatasetError> {
        let with_queries = || self.sets.iter().filter(|set| !set.queries.is_empty());
        let mut suites = with_queries().map(|set| set.suite(split)).collect::<Result<Vec<_>, _>>()?;
        if (as_mixed || self.has_folder_of_sets) && self.sets.len() > 1 && with_queries().next().is_some() {
            suites.push(mixed(&self.sets, split)?);
        }
        for query_set in &self.query_sets {
            suites.push(
                query_set
                    .suite(self.sets.iter().map(|set| &set.tools).chain(&self.nearby_catalogues), split)?,
            );
        }
        suites.iter_mut().for_each(|suite| suite.groups.retain(|group| !group.queries.is_empty()));
        suites.retain(|suite| !suite.groups.is_empty());
        if suites.is_empty() { Err(DatasetError::NoQueries) } else { Ok(suites) }
    }

    /// Adds a folder; false if it is not a set.
    fn add(&mut self, folder: &Path) -> Result<bool, DatasetError> {
        let has = |file: &str| folder.join(file).is_file();
        if !has(QUERIES_FILE) {
            return self.add_servers(folder);
        }
        // Recognizes a folder that was given twice under different paths.
        let path =
            folder.canonicalize().map_err(|source| DatasetError::Read { file: folder.to_owned(), source })?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if !self.visited.insert(path.clone()) {
            return Ok(true);
        }
        let queries = read(folder, QUERIES_FILE)?;
        if has(TOOLS_FILE) {
            self.sets.push(TestSet::read(name, &read(folder, TOOLS_FILE)?, queries)?);
            return Ok(true);
        }
        let tasks = has(TASKS_FILE).then(|| read(folder, TASKS_FILE)).transpose()?;
        self.query_sets.push(QuerySet { name, queries, tasks });
        for sibling in
            path.parent().map(|parent| children(&parent.join(TEST_SETS_FOLDER))).unwrap_or_default()
        {
            if sibling.join(TOOLS_FILE).is_file() {
                self.nearby_catalogues.push(Catalogue::read(&read(&sibling, TOOLS_FILE)?)?);
            }
        }
        Ok(true)
    }

    /// Adds a folder of servers' tool lists and requests; false if it is none.
    fn add_servers(&mut self, folder: &Path) -> Result<bool, DatasetError> {
        let Some(set) = ServerLists::read(folder)? else { return Ok(false) };
        let path =
            folder.canonicalize().map_err(|source| DatasetError::Read { file: folder.to_owned(), source })?;
        if self.visited.insert(path) {
            self.nearby_catalogues.push(set.tools);
            self.query_sets.push(set.queries);
        }
        Ok(true)
    }

    /// Adds the sets in a folder and in its direct subfolders.
    fn add_children(&mut self, folder: &Path) -> Result<(), DatasetError> {
        std::fs::read_dir(folder).map_err(|source| DatasetError::Read { file: folder.to_owned(), source })?;
        let mut any = false;
        for child in children(folder) {
            let sets = self.sets.len();
            let mut added = self.add(&child)?;
            if !added {
                for grandchild in children(&child) {
                    added |= self.add(&grandchild)?;
                }
            }
            self.has_folder_of_sets |= self.sets.len() > sets;
            any |= added;
        }
        if !any {
            return Err(DatasetError::NoSet { folder: folder.to_owned() });
        }
        if let Some(parent) = folder.canonicalize().ok().as_deref().and_then(Path::parent) {
            self.add(&parent.join(QUERY_SETS_FOLDER))?;
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

fn read(folder: &Path, name: &str) -> Result<SourceFile, DatasetError> {
    let file = folder.join(name);
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok(SourceFile { file, text }),
        Err(source) => Err(DatasetError::Read { file, source }),
    }
}

#[cfg(test)]
#[path = "test_sets_tests.rs"]
mod tests;
