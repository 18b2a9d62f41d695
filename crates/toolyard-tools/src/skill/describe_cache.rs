//! Remembers what programs said about themselves, by their content, so that they are asked once.

use std::{fs, path::PathBuf};

use serde::{Deserialize, Serialize};
use toolyard_core::RawJson;

use super::{
    content::ContentHash,
    description::{Description, understand},
    durable::write_atomically,
};

const VERSION: u32 = 1;
const MAX_BYTES: u64 = 4 << 20;

/// A folder with one file per program content.
#[derive(Debug, Clone)]
pub(super) struct DescribeCache {
    folder: PathBuf,
}

/// The form on disk.
#[derive(Serialize, Deserialize)]
struct Form {
    version: u32,
    program: ContentHash,
    tools: RawJson,
}

impl DescribeCache {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// What a program of this content said. Anything that is not a sound entry is no entry.
    pub(super) fn get(&self, program: &ContentHash) -> Option<Description> {
        let path = self.path(program);
        let metadata = fs::symlink_metadata(&path).ok()?;
        if !metadata.is_file() || metadata.len() > MAX_BYTES {
            return None;
        }
        let form: Form = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        if form.version != VERSION || form.program != *program {
            return None;
        }
        understand(form.tools.get()).ok()
    }

    /// Keeps what a program said. A cache that cannot be written costs time, nothing else.
    pub(super) fn put(&self, program: &ContentHash, description: &Description) {
        let Ok(tools) = RawJson::from_serialize(&description.tools) else { return };
        let form = Form { version: VERSION, program: program.clone(), tools };
        let Ok(text) = serde_json::to_string(&form) else { return };
        if let Err(error) = write_atomically(&self.path(program), text.as_bytes()) {
            tracing::warn!(folder = %self.folder.display(), %error, "failed to keep a program's description");
        }
    }

    fn path(&self, program: &ContentHash) -> PathBuf {
        self.folder.join(format!("{}.json", program.as_str()))
    }
}
