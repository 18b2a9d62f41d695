//! Stored secrets: what settings refer to as `${secret:NAME}`, in a file that only its owner can read. A program that the
//! desktop starts, such as an editor, does not have the variables of a shell; this file is there for both.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use toolyard_mcp_client::{
    SecretText,
    config::{STORED_SECRET_PREFIX, ServerSettings},
};

use super::files;
use crate::error::CliError;

const FILE_NAME: &str = "secrets.json";
const VERSION: u32 = 1;

/// The file of stored secrets. It is read at every lookup, so that a change holds for the next start of a server.
#[derive(Debug, Clone)]
pub(crate) struct StoredSecrets {
    file: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct SecretsFile {
    version: u32,
    secrets: BTreeMap<String, SecretText>,
}

impl StoredSecrets {
    pub(crate) fn new(data_folder: &Path) -> Self {
        Self { file: data_folder.join(FILE_NAME) }
    }

    /// All secrets by name.
    pub(crate) fn read(&self) -> Result<BTreeMap<String, SecretText>, CliError> {
        let Some(text) = files::read_if_exists(&self.file)? else { return Ok(BTreeMap::new()) };
        // The message of the parser could quote a secret.
        let invalid = || {
            CliError::failed(format!("{} is not a file of stored secrets", self.file.display()))
                .with_hint("remove it and import the servers again, or restore it")
        };
        let read: SecretsFile = serde_json::from_str(&text).map_err(|_| invalid())?;
        if read.version == VERSION { Ok(read.secrets) } else { Err(invalid()) }
    }

    /// Adds secrets, or replaces those of the same names.
    pub(crate) fn insert(&self, new: impl IntoIterator<Item = (String, SecretText)>) -> Result<(), CliError> {
        let before = self.read()?;
        let mut secrets = before.clone();
        secrets.extend(new);
        if secrets == before { Ok(()) } else { self.write(secrets) }
    }

    /// Removes the secrets that servers referred to before and none does now.
    pub(crate) fn remove_unused(
        &self,
        before: &BTreeMap<String, ServerSettings>,
        now: &BTreeMap<String, ServerSettings>,
    ) -> Result<(), CliError> {
        let used = referenced_secrets(now);
        let mut secrets = self.read()?;
        let count = secrets.len();
        for name in referenced_secrets(before).difference(&used) {
            secrets.remove(name);
        }
        if secrets.len() == count { Ok(()) } else { self.write(secrets) }
    }

    fn write(&self, secrets: BTreeMap<String, SecretText>) -> Result<(), CliError> {
        // A replaced file keeps its permissions.
        #[cfg(unix)]
        if self.file.exists() {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&self.file, std::fs::Permissions::from_mode(0o600))
                .map_err(|error| CliError::file("protect", &self.file, error))?;
        }
        files::write_json(&self.file, &SecretsFile { version: VERSION, secrets }, files::Access::OwnerOnly)
    }

    /// The value of a variable that a configuration refers to: a stored secret if the name has the prefix of one, else an
    /// environment variable.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let Some(name) = name.strip_prefix(STORED_SECRET_PREFIX) else { return std::env::var(name).ok() };
        match self.read() {
            Ok(mut secrets) => secrets.remove(name).map(SecretText::into_exposed),
            Err(error) => {
                tracing::warn!(error = error.message(), "stored secrets cannot be read");
                None
            }
        }
    }
}

fn referenced_secrets(servers: &BTreeMap<String, ServerSettings>) -> BTreeSet<String> {
    let names = servers.values().flat_map(ServerSettings::variables);
    names.filter_map(|name| Some(name.strip_prefix(STORED_SECRET_PREFIX)?.to_owned())).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn secrets_are_kept_in_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = StoredSecrets::new(folder.path());
        assert_eq!(secrets.variable("secret:TOKEN"), None);
        secrets.insert([("TOKEN".to_owned(), SecretText::new("hunter2"))]).unwrap();
        assert_eq!(secrets.variable("secret:TOKEN").as_deref(), Some("hunter2"));
        assert_eq!(secrets.variable("TOKEN"), None, "a variable of the environment is not a stored secret");
        std::fs::set_permissions(&secrets.file, std::fs::Permissions::from_mode(0o644)).unwrap();
        secrets.insert([("OTHER".to_owned(), SecretText::new("x"))]).unwrap();
        assert_eq!(secrets.file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let server = |text: &str| {
            let url = Some(format!("https://example.org/{text}"));
            BTreeMap::from([("s".to_owned(), ServerSettings { url, ..ServerSettings::default() })])
        };
        let (one, both) = (server("${secret:TOKEN}"), server("${secret:TOKEN}${secret:OTHER}"));
        secrets.remove_unused(&both, &both).unwrap();
        secrets.remove_unused(&one, &server("")).unwrap();
        assert_eq!(secrets.read().unwrap().into_keys().collect::<Vec<_>>(), ["OTHER"]);
    }

    #[test]
    fn an_invalid_file_is_reported_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = StoredSecrets::new(folder.path());
        for text in [
            "{\"version\": 1, \"secrets\": {\"A\": \"hunter2\"",
            "{\"version\": 9, \"secrets\": {\"A\": \"hunter2\"}}",
        ] {
            std::fs::write(&secrets.file, text).unwrap();
            let error = secrets.read().unwrap_err();
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
            assert_eq!(secrets.variable("secret:A"), None);
        }
    }
}
