//! Keys in the keychain of the system: Secret Service (GNOME Keyring, KWallet) on Linux, Keychain on macOS.

use std::{sync::mpsc, time::Duration};

use keyring::{Entry, Error};
use toolyard_mcp_client::EncryptionKey;

use super::{SecretsError, keys::KeyStore};

const SERVICE: &str = "toolyard";
/// The keychain may ask for its password.
const KEYCHAIN_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Keychain;

impl KeyStore for Keychain {
    fn is_preferred(&self) -> bool {
        is_login_session()
    }

    fn load(&self, id: &str) -> Result<Option<EncryptionKey>, SecretsError> {
        let user = user(id);
        let text = ask(move || match Entry::new(SERVICE, &user)?.get_password() {
            Err(Error::NoEntry) => Ok(None),
            other => other.map(Some),
        })?;
        let invalid = |_| SecretsError::Keychain("its entry of Toolyard is not a key".to_owned());
        text.map(|text| EncryptionKey::from_hex(&text).map_err(invalid)).transpose()
    }

    fn save(&self, key: &EncryptionKey) -> Result<(), SecretsError> {
        let (user, text) = (user(&key.id()), key.to_hex());
        ask(move || Entry::new(SERVICE, &user)?.set_password(&text))
    }

    fn remove(&self, id: &str) -> Result<(), SecretsError> {
        let user = user(id);
        ask(move || match Entry::new(SERVICE, &user)?.delete_credential() {
            Err(Error::NoEntry) => Ok(()),
            other => other,
        })
    }
}

fn user(id: &str) -> String {
    format!("key of stored secrets {id}")
}

/// Asks the keychain on a thread of its own, because the call blocks, and may not be made on a thread of an async runtime.
fn ask<T: Send + 'static>(
    question: impl FnOnce() -> keyring::Result<T> + Send + 'static,
) -> Result<T, SecretsError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let failed = SecretsError::Keychain;
    std::thread::Builder::new()
        .name("keychain".to_owned())
        .spawn(move || {
            // The receiver may have given up.
            let _ = sender.send(question().map_err(|error| describe(&error)));
        })
        .map_err(|error| failed(error.to_string()))?;
    match receiver.recv_timeout(KEYCHAIN_TIMEOUT) {
        Ok(answer) => answer.map_err(failed),
        Err(_) => Err(failed(format!("no answer within {} s", KEYCHAIN_TIMEOUT.as_secs()))),
    }
}

/// Some errors contain what the keychain returned, which is not repeated.
fn describe(error: &Error) -> String {
    match error {
        Error::NoDefaultStore => "there is none in this session".to_owned(),
        Error::NoStorageAccess(_) => "it is locked or does not answer".to_owned(),
        Error::PlatformFailure(error) => error.to_string(),
        Error::BadEncoding(_) => "its entry of Toolyard is not text".to_owned(),
        Error::BadDataFormat(..) => "its entry of Toolyard is malformed".to_owned(),
        other => other.to_string(),
    }
}

/// Whether this is the session of a person whose keychain every program of theirs reaches, also one that an editor starts
/// with few variables: the bus is at its usual address.
#[cfg(target_os = "linux")]
fn is_login_session() -> bool {
    let folder = format!("/run/user/{}", rustix::process::getuid().as_raw());
    let usual = format!("unix:path={folder}/bus");
    let is_announced = match std::env::var("DBUS_SESSION_BUS_ADDRESS") {
        Ok(address) => address == usual || address.starts_with(&format!("{usual},")),
        Err(_) => std::env::var("XDG_RUNTIME_DIR").is_ok_and(|announced| announced == folder),
    };
    is_announced && std::path::Path::new(&folder).join("bus").exists()
}

#[cfg(not(target_os = "linux"))]
fn is_login_session() -> bool {
    true
}
