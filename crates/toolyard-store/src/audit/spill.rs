//! The spill file: batches of audit records that the store did not take, one per line, in order.
//!
//! A line is the number of records, the hash of the batch, and the batch as JSON. The process that writes a file holds a
//! lock on it; a file without a lock was left by a process that ended, and any process may append it to the store.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions, TryLockError},
    io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use toolyard_core::{AuditRecord, ContentHash, unix_millis};

use super::append::{AuditBatch, BatchId};
use crate::location::Location;

const EXTENSION: &str = "audit-spill";
/// A file under this name is not locked yet.
const DRAFT_EXTENSION: &str = "audit-spill-new";
/// Longer lines are not written by Toolyard.
const MAX_LINE_BYTES: u64 = 256 << 20;
/// The number of records at the beginning of a line, and the space after it.
const MAX_COUNT_CHARS: usize = 21;
/// Enough to tell the databases of one data folder apart.
const LOCATION_HASH_CHARS: usize = 16;

/// Why a batch could not be written to a spill file.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpillError {
    /// The process has no data folder, so audit records cannot be kept on disk while the store fails.
    ///
    /// Remedy: make the data folder of the user writable (`HOME`), or set `store` to a SQLite file in a writable
    /// folder.
    #[error("there is no folder for a spill file")]
    NoFolder,
    /// The store failed for so long that the file for audit records is full.
    ///
    /// Remedy: repair the store: the records are appended to it as soon as it works.
    #[error("the spill file has reached its limit of {0} bytes")]
    Full(u64),
    /// The file for audit records could not be written.
    ///
    /// Remedy: make room on the disk, and check the permissions of the folder.
    #[error("failed to write the spill file in {}: {error}", .folder.display())]
    Io { folder: PathBuf, error: io::Error },
}

/// Where the spill files of a store are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpillLocation {
    folder: PathBuf,
    /// How the names of all spill files of the store begin.
    prefix: String,
}

impl SpillLocation {
    /// Beside a SQLite store; for PostgreSQL, in the data folder, if there is one.
    pub(super) fn of(store: &Location, data_folder: Option<&Path>) -> Option<Self> {
        match store {
            Location::Sqlite(path) => {
                let folder = path.parent()?.to_owned();
                Some(Self { folder, prefix: format!("{}.", path.file_name()?.to_str()?) })
            }
            Location::Postgres(_) => {
                // Without its password, which may change.
                let hash = ContentHash::of(store.to_string()).to_string();
                let hash = hash.get(..LOCATION_HASH_CHARS)?;
                Some(Self { folder: data_folder?.to_owned(), prefix: format!("postgres-{hash}.") })
            }
        }
    }

    /// A file that no other process uses, locked and readable by its owner only. `name` is never used again.
    pub(super) fn create(&self, name: &str) -> Result<SpillFile, SpillError> {
        self.try_create(name).map_err(|error| SpillError::Io { folder: self.folder.clone(), error })
    }

    fn try_create(&self, name: &str) -> io::Result<SpillFile> {
        std::fs::create_dir_all(&self.folder)?;
        let draft = self.folder.join(format!("{}{name}.{DRAFT_EXTENSION}", self.prefix));
        let path = draft.with_extension(EXTENSION);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&draft)?;
        // Locked before it has the name under which other processes look for files to take over.
        let locked = file.try_lock().map_err(io::Error::from).and_then(|()| std::fs::rename(&draft, &path));
        // A power failure must not undo the name of the file either.
        #[cfg(unix)]
        let locked = locked.and_then(|()| File::open(&self.folder)?.sync_all());
        if let Err(error) = locked {
            let _ = std::fs::remove_file(&draft);
            return Err(error);
        }
        Ok(SpillFile { path, file, batches: VecDeque::new(), start: 0, end: 0 })
    }

    /// Files that processes left behind, locked so that no other process takes them over too.
    pub(super) fn take_over(&self) -> io::Result<Vec<SpillFile>> {
        let mut found = Vec::new();
        let mut paths: Vec<PathBuf> = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(error),
        };
        paths.retain(|path| {
            let is_own = path
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with(&self.prefix));
            is_own && path.extension().is_some_and(|extension| extension == EXTENSION)
        });
        paths.sort();
        for path in paths {
            found.extend(SpillFile::take_over(path)?);
        }
        Ok(found)
    }
}

/// A locked spill file and its batches that are not acknowledged yet.
#[derive(Debug)]
pub(super) struct SpillFile {
    path: PathBuf,
    file: File,
    batches: VecDeque<SpilledBatch>,
    /// Where the first batch begins and the last one ends.
    start: u64,
    end: u64,
}

/// One line of the file.
#[derive(Debug)]
struct SpilledBatch {
    /// Just after the line.
    end: u64,
    /// What is recorded if the line cannot be read: under which id, and how many records are lost.
    id: BatchId,
    records: u64,
}

impl SpillFile {
    /// Locks an existing file and finds its lines; `None` if another process has it.
    fn take_over(path: PathBuf) -> io::Result<Option<Self>> {
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            // Another process has finished with it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut taken = Self { path, file, batches: VecDeque::new(), start: 0, end: 0 };
        taken.find_lines()?;
        Ok(Some(taken))
    }

    fn find_lines(&mut self) -> io::Result<()> {
        // The name is unique, so that the loss of a damaged line is recorded once.
        let writer =
            self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut reader = BufReader::new(&self.file);
        let mut beginning = Vec::new();
        loop {
            let length = skip_line(&mut reader, &mut beginning)?;
            if length == 0 {
                return Ok(());
            }
            self.end += length;
            let records =
                std::str::from_utf8(&beginning).ok().and_then(|text| text.split(' ').next()?.parse().ok());
            let number = i64::try_from(self.batches.len()).unwrap_or(i64::MAX);
            let id = BatchId { writer: writer.clone(), number };
            // A line without even a number lost at least one record.
            self.batches.push_back(SpilledBatch { end: self.end, id, records: records.unwrap_or(1) });
        }
    }

    /// Appends a batch, or nothing of it.
    pub(super) fn append(&mut self, batch: &AuditBatch, max_bytes: u64) -> Result<(), SpillError> {
        let io_error = |error| {
            let folder = self.path.parent().unwrap_or(&self.path).to_owned();
            SpillError::Io { folder, error }
        };
        let json = serde_json::to_string(batch).map_err(|error| io_error(error.into()))?;
        let line = format!("{} {} {json}\n", batch.records.len(), ContentHash::of(&json));
        let end = self.end.saturating_add(line.len() as u64);
        if end > max_bytes {
            return Err(SpillError::Full(max_bytes));
        }
        let written =
            self.file.seek(SeekFrom::Start(self.end)).and_then(|_| self.file.write_all(line.as_bytes()));
        let written = written.and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // A full disk may have taken a part of the line. If this fails too, the next append overwrites the part.
            let _ = self.file.set_len(self.end);
            return Err(io_error(error));
        }
        let id = batch.id.clone().unwrap_or(BatchId { writer: String::new(), number: 0 });
        self.batches.push_back(SpilledBatch { end, id, records: batch.records.len() as u64 });
        self.end = end;
        Ok(())
    }

    /// The first batches, at least one and then up to so many records. A line that cannot be read becomes a record of
    /// its loss.
    pub(super) fn read(&mut self, max_records: u64) -> Vec<Arc<AuditBatch>> {
        let (mut batches, mut records, mut start) = (Vec::new(), 0, self.start);
        for spilled in &self.batches {
            records += spilled.records;
            if !batches.is_empty() && records > max_records {
                break;
            }
            let batch = read_line(&self.file, start, spilled.end).unwrap_or_else(|| {
                tracing::error!(file = %self.path.display(), "a line of the audit spill file cannot be read");
                let lost = AuditRecord::lost(unix_millis(), spilled.records, "the spill file was damaged");
                AuditBatch { id: Some(spilled.id.clone()), records: vec![lost] }
            });
            batches.push(Arc::new(batch));
            start = spilled.end;
        }
        batches
    }

    /// Removes the first batches, up to `count`; returns how many those were.
    pub(super) fn acknowledge(&mut self, count: usize) -> usize {
        let count = count.min(self.batches.len());
        if let Some(last) = self.batches.drain(..count).next_back() {
            self.start = last.end;
        }
        count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The size of the file, with batches that are acknowledged.
    pub(super) fn bytes(&self) -> u64 {
        self.end
    }

    /// Deletes the file, all of whose batches are acknowledged.
    pub(super) fn delete(self) -> io::Result<()> {
        // A process that opened the file before must not find batches in it.
        self.file.set_len(0)?;
        std::fs::remove_file(&self.path)
    }
}

/// Reads over a line; returns its length, which is 0 at the end of the file, and the line's beginning.
fn skip_line(reader: &mut impl io::BufRead, beginning: &mut Vec<u8>) -> io::Result<u64> {
    beginning.clear();
    let mut length = 0;
    loop {
        let buffer = reader.fill_buf()?;
        let (used, is_end) = match buffer.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        let missing = MAX_COUNT_CHARS.saturating_sub(beginning.len());
        beginning.extend(buffer.iter().take(used.min(missing)));
        reader.consume(used);
        length += used as u64;
        if is_end {
            return Ok(length);
        }
    }
}

/// The batch of a line; `None` if the line is damaged.
fn read_line(mut file: &File, start: u64, end: u64) -> Option<AuditBatch> {
    let length = end.checked_sub(start).filter(|length| *length <= MAX_LINE_BYTES)?;
    let mut line = vec![0; usize::try_from(length).ok()?];
    file.seek(SeekFrom::Start(start)).ok()?;
    file.read_exact(&mut line).ok()?;
    let line = std::str::from_utf8(&line).ok()?.strip_suffix('\n')?;
    let (_records, rest) = line.split_once(' ')?;
    let (hash, json) = rest.split_once(' ')?;
    let batch: AuditBatch =
        serde_json::from_str(json).ok().filter(|_| hash == ContentHash::of(json).to_string())?;
    batch.id.is_some().then_some(batch)
}

#[cfg(test)]
#[path = "spill_tests.rs"]
mod tests;
