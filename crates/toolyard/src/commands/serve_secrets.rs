//! The token that lets clients in and the key of their sessions: given by the settings, or made once and kept.

use std::path::{Path, PathBuf};

use toolyard::settings::{CurrentAndFormer, ServeSettings};
use toolyard_core::ContentHash;
use toolyard_mcp::server::SessionKeys;

use crate::{
    commands::connect_entry::TOKEN_VARIABLE,
    failure::{Code, Failure},
    files,
    folders::Workplace,
};

/// The token and the keys of one hub.
pub(super) struct Secrets {
    token: String,
    /// The file the token is kept in; none where the settings gave it.
    token_file: Option<PathBuf>,
    keys: CurrentAndFormer,
}

impl Secrets {
    /// What the settings say, or what was made before, or new ones.
    pub(super) fn of(serve: &ServeSettings, workplace: &Workplace) -> Result<Self, Failure> {
        let variable = |name: &str| std::env::var(name).ok();
        let folder = workplace.data_folder.join("serve");
        let (token, token_file) = match serve.token(variable)? {
            Some(token) => (token, None),
            None => {
                let file = folder.join("token");
                (kept(&file)?.to_string(), Some(file))
            }
        };
        let keys = match serve.session_keys(variable)? {
            Some(keys) => keys,
            None => (*kept(&folder.join("session-key"))?.as_bytes(), None),
        };
        Ok(Self { token, token_file, keys })
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn session_keys(&self) -> Result<SessionKeys, Failure> {
        let (current, former) = self.keys;
        SessionKeys::new(current, former).map_err(|error| Failure::new(Code::Failed, error.to_string()))
    }

    /// The token for a person who looks; for a log, where it is.
    pub(super) fn shown(&self, to_a_person: bool) -> String {
        match &self.token_file {
            Some(file) if to_a_person => format!("{} (kept in {})", self.token, file.display()),
            Some(file) => format!("in {}", file.display()),
            None => "the one of your settings".to_owned(),
        }
    }

    /// How a shell gets at the token.
    pub(super) fn shell(&self) -> String {
        match &self.token_file {
            Some(file) => format!("export {TOKEN_VARIABLE}=$(cat '{}')", file.display()),
            None => format!("export {TOKEN_VARIABLE}=…"),
        }
    }
}

/// 256 random bits that are kept in a file which only its owner can read. Of two that start at once, one makes them.
fn kept(file: &Path) -> Result<ContentHash, Failure> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        Failure::new(Code::Failed, format!("failed to {what} {}: {error}", file.display()))
    };
    if !file.try_exists().map_err(|error| failed("read", &error))? {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| failed("make", &error))?;
        let secret = ContentHash::from(bytes);
        files::write_first(file, &format!("{secret}\n")).map_err(|error| failed("write", &error))?;
    }
    let text = std::fs::read_to_string(file).map_err(|error| failed("read", &error))?;
    text.trim().parse().map_err(|error: String| {
        failed("understand", &error).with_hint("remove the file, and another one is made")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_start_at_once_have_the_same_secret() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("serve").join("token");
        let barrier = std::sync::Barrier::new(16);
        let all: Vec<ContentHash> = std::thread::scope(|scope| {
            let start = || {
                barrier.wait();
                kept(&file).unwrap_or_else(|failure| panic!("{failure:?}"))
            };
            let started: Vec<_> = (0..16).map(|_| scope.spawn(start)).collect();
            started.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(all.iter().all(|secret| *secret == all[0]));
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "no draft is left");
    }
}
