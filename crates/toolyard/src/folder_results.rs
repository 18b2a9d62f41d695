//! Keeps whole results as files in a folder, so that a reference given by one process can be read by the next.

use std::{
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use toolyard_core::{BoxFuture, ResultPage, ResultRef, Results, ResultsError};
use toolyard_hub::new_reference;

/// Older results are dropped.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// More results than this are not kept; the oldest go.
const MOST: usize = 1_000;

/// Results as files, one each, readable by their owner only.
#[derive(Debug, Clone)]
pub struct FolderResults {
    folder: PathBuf,
}

impl FolderResults {
    /// Results in this folder, which is made when the first one is kept.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn keep_now(&self, whole: &str) -> std::io::Result<ResultRef> {
        std::fs::create_dir_all(&self.folder)?;
        self.make_room();
        let reference = new_reference();
        let mut file = new_private_file(&self.folder.join(reference.as_str()))?;
        file.write_all(whole.as_bytes())?;
        Ok(reference)
    }

    /// Drops what is too old or too much. A failure here costs room and nothing else.
    fn make_room(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort();
        let too_many = files.len().saturating_sub(MOST - 1);
        let now = SystemTime::now();
        for (at, (written, path)) in files.iter().enumerate() {
            let too_old = now.duration_since(*written).is_ok_and(|age| age > KEPT_FOR);
            if at < too_many || too_old {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    fn read_now(&self, reference: &ResultRef) -> Result<String, ResultsError> {
        // A reference comes from a model: only the form we give out may become a path.
        let well_formed = reference.as_str().strip_prefix("r_").is_some_and(|letters| {
            !letters.is_empty()
                && letters.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        });
        if !well_formed {
            return Err(ResultsError::Unknown(reference.clone()));
        }
        std::fs::read_to_string(self.folder.join(reference.as_str())).map_err(|error| match error.kind() {
            ErrorKind::NotFound => ResultsError::Unknown(reference.clone()),
            _ => ResultsError::Failed(error.to_string()),
        })
    }
}

fn new_private_file(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Files are read and written on a thread of their own: a slow disk must not stop other calls.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ResultsError> + Send + 'static,
) -> Result<T, ResultsError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(ResultsError::Failed(error.to_string())),
    }
}

impl Results for FolderResults {
    fn keep<'a>(&'a self, whole: &'a str) -> BoxFuture<'a, Result<ResultRef, ResultsError>> {
        let (this, whole) = (self.clone(), whole.to_owned());
        Box::pin(aside(move || {
            this.keep_now(&whole).map_err(|error| ResultsError::Failed(error.to_string()))
        }))
    }

    fn read<'a>(
        &'a self,
        reference: &'a ResultRef,
        offset: usize,
        limit: usize,
    ) -> BoxFuture<'a, Result<ResultPage, ResultsError>> {
        let (this, reference) = (self.clone(), reference.clone());
        Box::pin(aside(move || Ok(ResultPage::of(&this.read_now(&reference)?, offset, limit))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_result_is_read_by_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let reference = FolderResults::new(folder.path().join("results")).keep("whole").await.unwrap();
        let other = FolderResults::new(folder.path().join("results"));
        assert_eq!(other.read(&reference, 1, 2).await.unwrap().text, "ho");
    }

    #[tokio::test]
    async fn a_reference_is_never_a_path() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        let results = FolderResults::new(folder.path().join("results"));
        results.keep("x").await.unwrap();
        for hostile in ["../secret", "r_../../secret", "/etc/passwd", "r_", "", "r_\0", "secret"] {
            let reference = ResultRef::new(hostile);
            assert_eq!(
                results.read(&reference, 0, 9).await,
                Err(ResultsError::Unknown(reference)),
                "{hostile}"
            );
        }
    }
}
