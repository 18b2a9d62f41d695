//! The backlog: batches that wait for the store, the oldest in the spill file, the others in memory.

use std::{collections::VecDeque, path::Path, sync::Arc};

use super::{
    append::AuditBatch,
    spill::{SpillError, SpillFile, SpillLocation},
};

/// Batches in the order in which they are appended to the store.
#[derive(Debug)]
pub(super) struct Backlog {
    location: Option<SpillLocation>,
    max_spill_bytes: u64,
    /// Names of spill files begin with this.
    name: String,
    /// How many files were created; no name is used twice.
    created: u64,
    /// Older than everything in memory.
    file: Option<SpillFile>,
    memory: VecDeque<Arc<AuditBatch>>,
}

impl Backlog {
    pub(super) fn new(location: Option<SpillLocation>, max_spill_bytes: u64, name: &str) -> Self {
        Self {
            location,
            max_spill_bytes,
            name: name.to_owned(),
            created: 0,
            file: None,
            memory: VecDeque::new(),
        }
    }

    /// Adds a batch at the end, in memory.
    pub(super) fn push(&mut self, batch: AuditBatch) {
        self.memory.push_back(Arc::new(batch));
    }

    /// Moves batches from memory to the spill file until there are none left or one cannot be written. Blocks.
    pub(super) fn spill(&mut self) -> Result<(), SpillError> {
        while let Some(batch) = self.memory.front() {
            let file = match &mut self.file {
                Some(file) => file,
                none => {
                    let location = self.location.as_ref().ok_or(SpillError::NoFolder)?;
                    self.created += 1;
                    none.insert(location.create(&format!("{}-{}", self.name, self.created))?)
                }
            };
            file.append(batch, self.max_spill_bytes)?;
            self.memory.pop_front();
        }
        Ok(())
    }

    /// The first batches, at least one and then up to so many records. Blocks if there is a spill file.
    pub(super) fn front(&mut self, max_records: usize) -> Vec<Arc<AuditBatch>> {
        if let Some(file) = self.file.as_mut().filter(|file| !file.is_empty()) {
            return file.read(max_records as u64);
        }
        let mut records = 0;
        let fits = |batch: &&Arc<AuditBatch>| {
            let is_first = records == 0;
            records += batch.records.len().max(1);
            is_first || records <= max_records
        };
        self.memory.iter().take_while(fits).cloned().collect()
    }

    /// Removes the first batches: the store has them. Blocks if there is a spill file.
    pub(super) fn acknowledge(&mut self, count: usize) {
        let on_disk = self.file.as_mut().map_or(0, |file| file.acknowledge(count));
        self.memory.drain(..(count - on_disk).min(self.memory.len()));
        if let Some(file) = self.file.take_if(|file| file.is_empty())
            && let Err(error) = file.delete()
        {
            // The batches in it are appended; the store recognizes them.
            tracing::warn!(%error, "failed to delete the audit spill file");
        }
    }

    /// The size of the spill file; 0 if there is none.
    pub(super) fn spill_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, SpillFile::bytes)
    }

    /// The spill file, if some batches are in it.
    pub(super) fn file_path(&self) -> Option<&Path> {
        self.file.as_ref().map(SpillFile::path)
    }

    /// Whether some batches are in the spill file.
    pub(super) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.memory.is_empty() && self.file.is_none()
    }

    /// How many records are only in memory.
    pub(super) fn records_in_memory(&self) -> usize {
        self.memory.iter().map(|batch| batch.records.len()).sum()
    }
}
