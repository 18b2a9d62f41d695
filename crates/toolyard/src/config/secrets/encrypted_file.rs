//! The format of encrypted files: JSON that names the key, and the content as Base64.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use toolyard_mcp_client::EncryptionKey;

use super::{SecretsError, keys::KeyPlace};

/// Version 1 was plain text.
const VERSION: u32 = 2;

/// An encrypted file. The content is bound to the purpose of the file and to its key: a file that is renamed, or whose
/// fields were exchanged with those of another, does not decrypt.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EncryptedFile {
    version: u32,
    pub(super) key: KeyPlace,
    pub(super) key_id: String,
    encrypted: String,
}

impl EncryptedFile {
    pub(super) fn new(
        purpose: &str,
        (place, key): &(KeyPlace, EncryptionKey),
        content: &[u8],
    ) -> Result<Self, SecretsError> {
        let key_id = key.id();
        let encrypted = key.encrypt(&context(purpose, *place, &key_id), content.to_vec())?;
        Ok(Self { version: VERSION, key: *place, key_id, encrypted: STANDARD.encode(encrypted) })
    }

    /// Parses a file; none if it is something else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str::<Self>(text).ok().filter(|file| file.version == VERSION)
    }

    pub(super) fn decrypt(
        &self,
        purpose: &str,
        key: &EncryptionKey,
        file: &Path,
    ) -> Result<Vec<u8>, SecretsError> {
        let tampered = || SecretsError::Tampered(file.to_owned());
        let encrypted = STANDARD.decode(&self.encrypted).map_err(|_| tampered())?;
        key.decrypt(&context(purpose, self.key, &self.key_id), &encrypted).map_err(|_| tampered())
    }
}

fn context(purpose: &str, place: KeyPlace, key_id: &str) -> String {
    format!("{purpose}\n{VERSION} {} {key_id}", place.id())
}
