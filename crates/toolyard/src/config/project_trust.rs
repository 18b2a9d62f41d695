//! Trust in a project's files: a file counts only with the content that the operator trusted.

use std::{
    io,
    path::{Path, PathBuf},
};

use toolyard_core::{ContentHash, Servers as _, TrustDecision};
use toolyard_store::Store;

use crate::error::CliError;

/// The kind of trust decision that covers settings and mcp.json files.
const TRUST_KIND: &str = "settings";

/// A file that was read once. The text that is parsed is the text whose hash is compared with trust decisions: a file that is
/// replaced between two reads could otherwise be checked with one content and used with another.
#[derive(Debug, Clone)]
pub(crate) struct HashedFile {
    path: PathBuf,
    /// The canonical path, which trust decisions name.
    subject: String,
    text: String,
}

impl HashedFile {
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let canonical = path.canonicalize()?;
        let text = std::fs::read_to_string(&canonical)?;
        Ok(Self { path: path.to_owned(), subject: canonical.to_string_lossy().into_owned(), text })
    }

    /// The path as it was given.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the text that was read is trusted.
    pub(crate) async fn is_trusted(&self, store: Option<&Store>) -> Result<bool, CliError> {
        let Some(store) = store else { return Ok(false) };
        let current = self.trust_decision(0);
        let decisions = store.trust_decisions(TRUST_KIND).await?;
        Ok(decisions.iter().any(|known| known.subject == current.subject && known.content == current.content))
    }

    /// The decision to trust the text that was read.
    pub(crate) fn trust_decision(&self, decided_at: i64) -> TrustDecision {
        TrustDecision {
            kind: TRUST_KIND.to_owned(),
            subject: self.subject.clone(),
            content: ContentHash::of(&self.text),
            decided_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use toolyard_store::Location;

    use super::*;

    #[tokio::test]
    async fn a_file_replaced_after_it_was_read_is_judged_by_what_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toolyard.toml");
        let store = Store::open(Location::Sqlite(folder.path().join("toolyard.db"))).await.unwrap();
        std::fs::write(&path, "harmless").unwrap();
        let harmless = HashedFile::read(&path).unwrap();
        store.put_trust(&harmless.trust_decision(1)).await.unwrap();

        std::fs::write(&path, "evil").unwrap();
        let evil = HashedFile::read(&path).unwrap();
        std::fs::write(&path, "harmless").unwrap();
        assert!(!evil.is_trusted(Some(&store)).await.unwrap(), "what would be parsed is `{}`", evil.text());

        std::fs::write(&path, "evil").unwrap();
        assert!(harmless.is_trusted(Some(&store)).await.unwrap());
        assert_eq!(harmless.text(), "harmless");
    }

    #[tokio::test]
    async fn the_same_text_elsewhere_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(Location::Sqlite(folder.path().join("toolyard.db"))).await.unwrap();
        let [trusted, other] = ["a.toml", "b.toml"].map(|name| {
            std::fs::write(folder.path().join(name), "same").unwrap();
            HashedFile::read(&folder.path().join(name)).unwrap()
        });
        store.put_trust(&trusted.trust_decision(1)).await.unwrap();
        assert!(!other.is_trusted(Some(&store)).await.unwrap());
        assert!(!trusted.is_trusted(None).await.unwrap());
    }
}
