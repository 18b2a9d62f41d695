//! The gateway's bearer token, from the settings or generated once and stored, and its session key, which is in the store, so
//! that replicas share it.

use std::path::{Path, PathBuf};

use toolyard::settings::ServeSettings;
use toolyard_core::{ContentHash, InvalidHash};
use toolyard_mcp_server::SessionKeys;

use crate::{
    commands::connect::entry::TOKEN_VARIABLE,
    config::{CliContext, files},
    error::CliError,
};

/// The token that clients of a running gateway need, if this process can find it; none is generated.
pub(in crate::commands) fn stored_token(context: &CliContext) -> Option<String> {
    match context.settings.serve.token(|name| std::env::var(name).ok()) {
        Ok(Some(token)) => Some(token),
        Ok(None) => {
            let text = std::fs::read_to_string(context.data_folder.join("serve").join("token")).ok()?;
            Some(text.trim().parse::<ContentHash>().ok()?.to_string())
        }
        Err(_) => None,
    }
}

pub(super) struct Secrets {
    token: String,
    /// The file of a generated token.
    token_file: Option<PathBuf>,
    session_key: [u8; 32],
}

impl Secrets {
    /// The token of the settings; what is missing is read from the store or files, or generated.
    pub(super) async fn load(serve: &ServeSettings, context: &CliContext) -> Result<Self, CliError> {
        let variable = |name: &str| std::env::var(name).ok();
        let folder = context.data_folder.join("serve");
        let (token, token_file) = match serve.token(variable)? {
            Some(token) => (token, None),
            None => {
                let file = folder.join("token");
                (load_or_generate(&file)?.to_string(), Some(file))
            }
        };
        let session_key = match &context.store {
            Some(store) => {
                let failed = |error| CliError::failed(format!("failed to generate a session key: {error}"));
                store.session_key(*random_secret().map_err(failed)?.as_bytes()).await?
            }
            None => *load_or_generate(&folder.join("session-key"))?.as_bytes(),
        };
        Ok(Self { token, token_file, session_key })
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn session_keys(&self) -> Result<SessionKeys, CliError> {
        SessionKeys::new(self.session_key, None).map_err(|error| CliError::failed(error.to_string()))
    }

    /// The key that session cookies of the console derive from.
    pub(super) fn console_key(&self) -> [u8; 32] {
        self.session_key
    }

    /// The token itself on a terminal; in a log, only where it is stored.
    pub(super) fn token_hint(&self, is_terminal: bool) -> String {
        match &self.token_file {
            Some(file) if is_terminal => format!("{} (stored in {})", self.token, file.display()),
            Some(file) => format!("stored in {}", file.display()),
            None => "from your settings".to_owned(),
        }
    }

    pub(super) fn export_command(&self) -> String {
        match &self.token_file {
            Some(file) => format!("export {TOKEN_VARIABLE}=$(cat '{}')", file.display()),
            None => format!("export {TOKEN_VARIABLE}=…"),
        }
    }
}

/// 256 random bits. Only the form of a hash is used: 32 bytes that are written as hexadecimal digits.
pub(super) fn random_secret() -> Result<ContentHash, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(ContentHash::from(bytes))
}

/// 256 random bits in an owner-only file. Of several processes that start at once, one generates them.
fn load_or_generate(file: &Path) -> Result<ContentHash, CliError> {
    if !file.try_exists().map_err(|error| CliError::file("read", file, error))? {
        let secret = random_secret().map_err(|error| CliError::file("generate", file, error))?;
        files::create_if_absent(file, &format!("{secret}\n"))
            .map_err(|error| CliError::file("write", file, error))?;
    }
    let text = std::fs::read_to_string(file).map_err(|error| CliError::file("read", file, error))?;
    text.trim().parse().map_err(|error: InvalidHash| {
        CliError::file("parse", file, error).with_hint("delete the file to generate a new one")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_start_at_once_share_the_secret() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("serve").join("token");
        let barrier = std::sync::Barrier::new(16);
        let secrets: Vec<ContentHash> = std::thread::scope(|scope| {
            let start = || {
                barrier.wait();
                load_or_generate(&file).unwrap_or_else(|failure| panic!("{failure:?}"))
            };
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(secrets.iter().all(|secret| *secret == secrets[0]));
        assert_eq!(
            std::fs::read_dir(file.parent().unwrap()).unwrap().count(),
            1,
            "no temporary file is left"
        );
    }
}
