//! Secrets survive as they are, changed files and other keys are refused, and nothing plain is on disk.

use std::os::unix::fs::PermissionsExt as _;

use parking_lot::Mutex;
use proptest::prelude::*;

use super::*;

const CANARY: &str = "canary-hunter2-1234567";

/// A keychain in memory that may be locked.
#[derive(Debug, Default)]
struct FakeKeychain {
    keys: Mutex<BTreeMap<String, EncryptionKey>>,
    is_locked: Mutex<bool>,
    loads: Mutex<usize>,
}

impl FakeKeychain {
    fn open(&self) -> Result<parking_lot::MutexGuard<'_, BTreeMap<String, EncryptionKey>>, SecretsError> {
        if *self.is_locked.lock() {
            return Err(SecretsError::Keychain("it is locked".to_owned()));
        }
        Ok(self.keys.lock())
    }
}

impl KeyStore for FakeKeychain {
    fn is_preferred(&self) -> bool {
        true
    }

    fn load(&self, id: &str) -> Result<Option<EncryptionKey>, SecretsError> {
        *self.loads.lock() += 1;
        Ok(self.open()?.get(id).cloned())
    }

    fn save(&self, key: &EncryptionKey) -> Result<(), SecretsError> {
        self.open()?.insert(key.id(), key.clone());
        Ok(())
    }

    fn remove(&self, id: &str) -> Result<(), SecretsError> {
        self.open()?.remove(id);
        Ok(())
    }
}

fn secrets_in(
    folder: &Path,
    keychain: Option<&Arc<FakeKeychain>>,
    environment: Option<&EncryptionKey>,
) -> StoredSecrets {
    let keychain = keychain.map(|keychain| Arc::clone(keychain) as Arc<dyn KeyStore>);
    let mut keys = SecretKeys::new(folder, keychain);
    keys.environment = environment.map(|key| SecretText::new(key.to_hex()));
    StoredSecrets { data_folder: folder.to_owned(), home: Some(folder.to_owned()), keys }
}

fn in_file(folder: &Path) -> StoredSecrets {
    secrets_in(folder, None, None)
}

fn token(value: &str) -> [(String, SecretText); 1] {
    [("TOKEN".to_owned(), SecretText::new(value))]
}

/// All files below a folder.
fn all_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { all_files(&path) } else { vec![path] }).collect()
}

#[test]
fn secrets_are_kept_encrypted_in_private_files() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = in_file(folder.path());
    assert_eq!(secrets.variable("secret:TOKEN"), None);
    secrets.insert(token(CANARY)).unwrap();
    assert_eq!(secrets.key_place().unwrap(), Some(KeyPlace::File));
    assert_eq!(secrets.variable("secret:TOKEN").as_deref(), Some(CANARY));
    assert_eq!(in_file(folder.path()).variable("secret:TOKEN").as_deref(), Some(CANARY), "another process");
    assert_eq!(secrets.variable("TOKEN"), None, "a variable of the environment is not a stored secret");
    std::fs::set_permissions(secrets.file(), std::fs::Permissions::from_mode(0o644)).unwrap();
    secrets.insert([("OTHER".to_owned(), SecretText::new("x"))]).unwrap();
    for file in all_files(folder.path()) {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains(CANARY) && !text.contains("TOKEN"), "{file:?}: {text}");
    }
    assert!(!format!("{secrets:?}").contains(CANARY));
}

#[test]
fn secrets_that_no_server_uses_any_more_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = in_file(folder.path());
    secrets.insert(token(CANARY)).unwrap();
    secrets.insert([("OTHER".to_owned(), SecretText::new("x"))]).unwrap();
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
fn the_file_of_an_earlier_version_is_encrypted_when_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = in_file(folder.path());
    let plain = format!("{{\"version\": 1, \"secrets\": {{\"TOKEN\": \"{CANARY}\"}}}}");
    std::fs::write(secrets.file(), plain).unwrap();
    assert_eq!(secrets.variable("secret:TOKEN").as_deref(), Some(CANARY));
    assert!(!std::fs::read_to_string(secrets.file()).unwrap().contains(CANARY));
    assert_eq!(secrets.variable("secret:TOKEN").as_deref(), Some(CANARY));
}

#[test]
fn a_plain_file_does_not_replace_an_encrypted_one_silently() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = in_file(folder.path());
    secrets.insert(token(CANARY)).unwrap();
    let plain = r#"{"version": 1, "secrets": {"TOKEN": "of-an-attacker"}}"#;
    std::fs::write(secrets.file(), plain).unwrap();
    for secrets in [secrets, in_file(folder.path())] {
        assert!(matches!(secrets.read(), Err(SecretsError::NotEncrypted(_))));
        assert_eq!(secrets.variable("secret:TOKEN"), None);
        let reason = secrets.missing_reason("secret:TOKEN").unwrap();
        assert!(reason.contains("not encrypted, although it was") && reason.contains("hint:"), "{reason}");
        assert!(secrets.insert(token("x")).is_err());
        assert_eq!(
            std::fs::read_to_string(secrets.file()).unwrap(),
            plain,
            "kept for the operator to look at"
        );
    }
    let secrets = in_file(folder.path());
    secrets.rotate_key(None, &[]).unwrap();
    assert_eq!(
        secrets.variable("secret:TOKEN").as_deref(),
        Some("of-an-attacker"),
        "the operator's decision"
    );
}

#[test]
fn reading_secrets_of_an_earlier_encrypting_version_ends_the_acceptance_of_plain_ones() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = in_file(folder.path());
    secrets.insert(token(CANARY)).unwrap();
    std::fs::remove_file(folder.path().join(ENCRYPTED_MARKER)).unwrap();
    assert_eq!(secrets.variable("secret:TOKEN").as_deref(), Some(CANARY));
    std::fs::write(secrets.file(), r#"{"version": 1, "secrets": {}}"#).unwrap();
    assert!(matches!(secrets.read(), Err(SecretsError::NotEncrypted(_))));
}

#[test]
fn a_rotation_encrypts_plain_undo_records() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = in_file(folder.path());
    secrets.insert(token(CANARY)).unwrap();
    let record = folder.path().join("connect.json");
    let plain = format!("{{\"previous\": \"{CANARY}\"}}");
    std::fs::write(&record, &plain).unwrap();
    let rotation = secrets.rotate_key(None, &[(record.clone(), "record".to_owned())]).unwrap();
    assert_eq!(rotation.records, 1);
    let text = std::fs::read_to_string(&record).unwrap();
    assert!(!text.contains(CANARY), "{text}");
    assert_eq!(secrets.decrypt_file(&record, "record", &text).unwrap().unwrap(), plain.as_bytes());
}

#[test]
fn an_invalid_file_is_reported_without_its_content_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = in_file(folder.path());
    for text in [
        format!("{{\"version\": 1, \"secrets\": {{\"A\": \"{CANARY}\""),
        format!("{{\"version\": 9, \"secrets\": {{\"A\": \"{CANARY}\"}}}}"),
        String::new(),
    ] {
        std::fs::write(secrets.file(), &text).unwrap();
        let error = secrets.read().unwrap_err();
        assert!(matches!(error, SecretsError::NotSecrets(_)) && !format!("{error:?}").contains(CANARY));
        assert_eq!(secrets.variable("secret:A"), None);
        let reason = secrets.missing_reason("secret:A").unwrap();
        assert!(reason.contains("not a file of stored secrets; hint: restore"), "{reason}");
        assert!(secrets.insert(token("x")).is_err() && secrets.rotate_key(None, &[]).is_err());
        assert_eq!(std::fs::read_to_string(secrets.file()).unwrap(), text);
    }
}

#[test]
fn another_key_is_refused_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let (key, other) = (EncryptionKey::generate().unwrap(), EncryptionKey::generate().unwrap());
    let with_key = secrets_in(folder.path(), None, Some(&key));
    with_key.insert(token(CANARY)).unwrap();
    assert_eq!(with_key.key_place().unwrap(), Some(KeyPlace::Environment));
    assert!(!folder.path().join("secret-keys").exists(), "the key is in the environment only");
    let error = secrets_in(folder.path(), None, Some(&other)).read().unwrap_err();
    assert!(matches!(error, SecretsError::OtherEnvironmentKey(_)), "{error}");
    let error = in_file(folder.path()).read().unwrap_err();
    assert!(matches!(error, SecretsError::MissingKey { place: KeyPlace::Environment, .. }), "{error}");
    assert!(error.hint().unwrap().contains("TOOLYARD_SECRETS_KEY"));
    let mut invalid = in_file(folder.path());
    invalid.keys.environment = Some(SecretText::new("swordfish"));
    let error = invalid.read().unwrap_err();
    assert!(matches!(error, SecretsError::InvalidEnvironmentKey(_)), "{error}");
    assert!(!format!("{error:?} {error}").contains("swordfish"));
}

#[test]
fn a_key_file_that_others_can_read_or_that_is_gone_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = in_file(folder.path());
    secrets.insert(token(CANARY)).unwrap();
    let key_file = all_files(&folder.path().join("secret-keys")).pop().unwrap();
    std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = in_file(folder.path()).read().unwrap_err();
    assert!(matches!(error, SecretsError::InsecurePermissions(_)), "{error}");
    std::fs::remove_file(&key_file).unwrap();
    let error = in_file(folder.path()).read().unwrap_err();
    assert!(matches!(error, SecretsError::MissingKey { place: KeyPlace::File, .. }), "{error}");
}

#[test]
fn the_keychain_holds_the_key_if_it_works_and_a_file_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = Arc::new(FakeKeychain::default());
    let secrets = || secrets_in(folder.path(), Some(&keychain), None);
    secrets().insert(token(CANARY)).unwrap();
    assert_eq!(secrets().key_place().unwrap(), Some(KeyPlace::Keychain));
    assert!(!folder.path().join("secret-keys").exists(), "no key is on disk");
    let open = secrets();
    assert_eq!(open.variable("secret:TOKEN").as_deref(), Some(CANARY));
    *keychain.is_locked.lock() = true;
    assert_eq!(open.variable("secret:TOKEN").as_deref(), Some(CANARY), "asked once per process");
    let reason = secrets().missing_reason("secret:TOKEN").unwrap();
    assert!(reason.contains("it is locked; hint: unlock it"), "{reason}");
    let other = tempfile::tempdir().unwrap();
    let fallback = secrets_in(other.path(), Some(&keychain), None);
    fallback.insert(token(CANARY)).unwrap();
    assert_eq!(fallback.key_place().unwrap(), Some(KeyPlace::File));
}

#[test]
fn a_keychain_that_failed_is_not_asked_again_for_every_variable() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = Arc::new(FakeKeychain::default());
    let secrets = || secrets_in(folder.path(), Some(&keychain), None);
    secrets().insert(token(CANARY)).unwrap();
    *keychain.is_locked.lock() = true;
    *keychain.loads.lock() = 0;
    let locked = secrets();
    for _ in 0..3 {
        assert_eq!(locked.variable("secret:TOKEN"), None);
        let reason = locked.clone().missing_reason("secret:TOKEN").unwrap();
        assert!(reason.contains("it is locked; hint: unlock it"), "{reason}");
    }
    assert_eq!(*keychain.loads.lock(), 1);
    // A keychain also says that it has no key after its prompt was dismissed.
    *keychain.is_locked.lock() = false;
    keychain.keys.lock().clear();
    *keychain.loads.lock() = 0;
    let dismissed = secrets();
    for _ in 0..3 {
        let reason = dismissed.missing_reason("secret:TOKEN").unwrap();
        assert!(reason.contains("or the keychain was not unlocked"), "{reason}");
    }
    assert_eq!(*keychain.loads.lock(), 1);
}

#[test]
fn a_rotation_encrypts_everything_anew_and_removes_the_old_key() {
    let folder = tempfile::tempdir().unwrap();
    let keychain = Arc::new(FakeKeychain::default());
    let key = EncryptionKey::generate().unwrap();
    let secrets = |environment| secrets_in(folder.path(), Some(&keychain), environment);
    let record = folder.path().join("connect.json");
    let others =
        [(record.clone(), "record".to_owned()), (folder.path().join("none.json"), "none".to_owned())];
    secrets(None).insert(token(CANARY)).unwrap();
    secrets(None).write_file(&record, "record", CANARY.as_bytes()).unwrap();
    let key_count = || (keychain.keys.lock().len(), all_files(&folder.path().join("secret-keys")).len());
    let check = |environment| {
        let secrets = secrets(environment);
        assert_eq!(secrets.variable("secret:TOKEN").as_deref(), Some(CANARY));
        let text = std::fs::read_to_string(&record).unwrap();
        assert_eq!(secrets.decrypt_file(&record, "record", &text).unwrap().unwrap(), CANARY.as_bytes());
        assert!(secrets.decrypt_file(&record, "other", &text).is_err(), "bound to its purpose");
    };
    assert_eq!(key_count(), (1, 0));
    for (to, environment, place, count) in [
        (None, None, KeyPlace::Keychain, (1, 0)),
        (Some(KeyPlace::File), None, KeyPlace::File, (0, 1)),
        (None, Some(&key), KeyPlace::Environment, (0, 0)),
        (Some(KeyPlace::File), Some(&key), KeyPlace::File, (0, 1)),
        (Some(KeyPlace::Keychain), None, KeyPlace::Keychain, (1, 0)),
    ] {
        let before = std::fs::read_to_string(secrets(None).file()).unwrap();
        let rotation = secrets(environment).rotate_key(to, &others).unwrap();
        assert_eq!((rotation.place, rotation.secrets, rotation.records), (place, 1, 1));
        assert!(rotation.leftover.is_none());
        assert_ne!(std::fs::read_to_string(secrets(None).file()).unwrap(), before);
        assert_eq!(key_count(), count, "{place:?}");
        check(environment);
    }
    assert!(matches!(
        secrets(None).rotate_key(Some(KeyPlace::Environment), &others).unwrap_err(),
        SecretsError::NoEnvironmentKey
    ));
    check(None);
}

#[test]
fn a_key_in_the_environment_is_replaced_with_the_old_one_at_hand() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (EncryptionKey::generate().unwrap(), EncryptionKey::generate().unwrap());
    secrets_in(folder.path(), None, Some(&old)).insert(token(CANARY)).unwrap();
    let same = secrets_in(folder.path(), None, Some(&old)).rotate_key(None, &[]).unwrap_err();
    assert!(matches!(same, SecretsError::SameEnvironmentKey));
    let mut both = secrets_in(folder.path(), None, Some(&new));
    assert!(both.rotate_key(None, &[]).is_err(), "the old key is needed");
    both.keys.old_environment = Some(SecretText::new(old.to_hex()));
    both.rotate_key(None, &[]).unwrap();
    assert_eq!(secrets_in(folder.path(), None, Some(&new)).variable("secret:TOKEN").as_deref(), Some(CANARY));
    assert!(secrets_in(folder.path(), None, Some(&old)).read().is_err());
}

#[test]
fn concurrent_changes_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let folder = folder.path();
            scope.spawn(move || {
                for number in 0..8 {
                    let secret = (format!("S_{thread}_{number}"), SecretText::new("x"));
                    in_file(folder).insert([secret]).unwrap();
                }
            });
        }
    });
    assert_eq!(in_file(folder.path()).read().unwrap().len(), 32);
}

#[test]
fn files_are_references_too_and_say_why_they_have_no_value() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = in_file(folder.path());
    std::fs::write(folder.path().join("token"), format!("{CANARY}\n")).unwrap();
    assert_eq!(secrets.variable("file:~/token").as_deref(), Some(CANARY));
    assert_eq!(secrets.missing_reason("file:~/token"), None);
    assert_eq!(secrets.missing_reason("file:~/none").as_deref(), Some("there is no such file"));
    assert_eq!(secrets.missing_reason("secret:NONE"), None);
}

fn any_secrets() -> impl Strategy<Value = BTreeMap<String, SecretText>> {
    let value = "(.|\n){0,40}".prop_map(SecretText::new);
    proptest::collection::btree_map("[A-Z_][A-Z0-9_]{0,9}", value, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn secrets_round_trip(first in any_secrets(), second in any_secrets()) {
        let folder = tempfile::tempdir().unwrap();
        in_file(folder.path()).insert(first.clone()).unwrap();
        in_file(folder.path()).insert(second.clone()).unwrap();
        in_file(folder.path()).rotate_key(None, &[]).unwrap();
        let mut expected = first;
        expected.extend(second);
        prop_assert_eq!(in_file(folder.path()).read().unwrap(), expected);
    }

    /// A changed byte anywhere is an error, or changes nothing: spaces between the fields of JSON have no meaning.
    #[test]
    fn a_changed_file_is_refused(secrets in any_secrets(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let folder = tempfile::tempdir().unwrap();
        in_file(folder.path()).insert(secrets.clone()).unwrap();
        prop_assume!(!secrets.is_empty());
        let file = in_file(folder.path()).file();
        let mut bytes = std::fs::read(&file).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        std::fs::write(&file, &bytes).unwrap();
        if let Ok(read) = in_file(folder.path()).read() {
            prop_assert_eq!(read, secrets);
        }
    }

    /// A file of another machine, or an earlier one of this, is refused if its key is not here.
    #[test]
    fn a_file_with_another_key_is_refused(secrets in any_secrets()) {
        prop_assume!(!secrets.is_empty());
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        in_file(folder.path()).insert(secrets.clone()).unwrap();
        in_file(other.path()).insert(secrets).unwrap();
        std::fs::copy(in_file(other.path()).file(), in_file(folder.path()).file()).unwrap();
        let error = in_file(folder.path()).read().unwrap_err();
        prop_assert!(matches!(error, SecretsError::MissingKey { .. }), "{}", error);
    }
}
