//! Tokens on disk: encryption, permissions, locking and damaged files.

use super::*;

fn account(issuer: &str, token: &str) -> Account {
    Account {
        issuer: issuer.to_owned(),
        client_id: "client".to_owned(),
        client_secret: Some(SecretText::new("s3cret-client")),
        redirect_uri: Some("http://127.0.0.1:1/callback".to_owned()),
        access_token: SecretText::new(token),
        refresh_token: Some(SecretText::new("s3cret-refresh")),
        obtained_at: 1,
        lifetime: Some(3600),
        requested_scopes: vec!["read".to_owned()],
        granted_scopes: vec!["read".to_owned()],
    }
}

async fn put(store: &TokenStore, key: impl Into<TokenKey>, account: Account) -> Result<(), TokenStoreError> {
    let key = key.into();
    let locked = store.lock(&key).await?;
    let mut tokens = locked.load()?.unwrap_or_default();
    tokens.put("https://h/mcp", account);
    locked.save(tokens, SaveCondition::Always).map(drop)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn token(store: &TokenStore, key: impl Into<TokenKey>) -> Option<String> {
    let tokens = store.load(&key.into()).unwrap()?;
    tokens.account("https://h/mcp").map(|account| account.access_token.expose().to_owned())
}

#[tokio::test]
async fn token_files_are_encrypted_and_private() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("oauth");
    let store = TokenStore::with_key_file(&folder).unwrap();
    put(&store, "notes", account("https://a", "s3cret-access")).await.unwrap();
    put(&store, "../other", account("https://a", "s3cret-other")).await.unwrap();
    assert_eq!(mode(&folder), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains("s3cret") && !text.contains("notes") && !text.contains("https"), "{text}");
        names.push(path.extension().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
    }
    names.sort();
    assert_eq!(names, ["", "lock", "lock", "lock", "tokens", "tokens"], "no temporary file is left");

    let again = TokenStore::with_key_file(&folder).unwrap();
    assert_eq!(token(&again, "notes").as_deref(), Some("s3cret-access"));
    assert_eq!(token(&again, "../other").as_deref(), Some("s3cret-other"));
    assert_eq!(token(&again, "third"), None);
    assert!(again.remove(&"notes".into()).unwrap() && !again.remove(&"notes".into()).unwrap());
    assert_eq!(token(&store, "notes"), None);
    let shown = format!("{store:?} {:?}", store.load(&"../other".into()).unwrap());
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn each_issuer_has_its_own_account() {
    let store = TokenStore::in_memory();
    put(&store, "notes", account("https://a", "first")).await.unwrap();
    put(&store, "notes", account("https://b", "second")).await.unwrap();
    let tokens = store.load(&"notes".into()).unwrap().unwrap();
    assert_eq!(tokens.account("https://h/mcp").unwrap().issuer, "https://b");
    assert_eq!(tokens.account_at("https://h/mcp", "https://a").unwrap().access_token.expose(), "first");
    assert_eq!(tokens.account("https://elsewhere/mcp"), None);
    assert_eq!(tokens.account_at("https://elsewhere/mcp", "https://a"), None);
    // A server with another URL starts without the accounts of the old one.
    let mut moved = tokens;
    moved.put("https://elsewhere/mcp", account("https://b", "third"));
    assert_eq!(moved.accounts.len(), 1);
}

#[tokio::test]
async fn invalid_files_are_an_error_and_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::with_key_file(folder.path()).unwrap();
    put(&store, "notes", account("https://a", "token")).await.unwrap();
    put(&store, "other", account("https://a", "token")).await.unwrap();
    let path = token_file(folder.path(), &"notes".into());
    let good = fs::read(&path).unwrap();
    let other = fs::read(token_file(folder.path(), &"other".into())).unwrap();
    let encrypted = |text: &[u8]| {
        let Backend::Folder { key, .. } = &store.0 else { unreachable!() };
        key.encrypt(&encryption_context(&"notes".into()), text.to_vec()).unwrap()
    };
    for bytes in [
        Vec::new(),
        b"{}".to_vec(),
        good[..good.len() - 1].to_vec(),
        [&good[..], b"x"].concat(),
        vec![0xff; 3000],
        other,
        encrypted(b"{}"),
        encrypted(b"not json"),
        encrypted(
            &serde_json::to_vec(&ServerTokens {
                version: 99,
                server: "notes".to_owned(),
                ..ServerTokens::default()
            })
            .unwrap(),
        ),
        encrypted(
            &serde_json::to_vec(&ServerTokens {
                version: 1,
                server: "other".to_owned(),
                ..ServerTokens::default()
            })
            .unwrap(),
        ),
    ] {
        fs::write(&path, &bytes).unwrap();
        let error = store.load(&"notes".into()).unwrap_err();
        assert!(
            matches!(error, TokenStoreError::Undecryptable { .. } | TokenStoreError::UnsupportedFile { .. }),
            "{error}"
        );
        assert!(put(&store, "notes", account("https://a", "new")).await.is_err());
        let key = TokenKey::from("notes");
        let locked = store.lock(&key).await.unwrap();
        assert!(locked.save(ServerTokens::default(), SaveCondition::Always).is_err());
        assert_eq!(fs::read(&path).unwrap(), bytes, "it was overwritten");
    }
    assert_eq!(token(&store, "other").as_deref(), Some("token"), "the others are untouched");
    fs::write(&path, &good).unwrap();
    assert_eq!(token(&store, "notes").as_deref(), Some("token"));
}

#[tokio::test]
async fn another_key_decrypts_nothing_and_overwrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::in_folder(folder.path(), EncryptionKey::generate().unwrap());
    put(&store, "notes", account("https://a", "token")).await.unwrap();
    let other = TokenStore::with_key_file(folder.path()).unwrap();
    assert!(matches!(
        other.load(&"notes".into()),
        Err(TokenStoreError::Undecryptable { reason: EncryptionError::Corrupt, .. })
    ));
    assert!(put(&other, "notes", account("https://a", "new")).await.is_err());
    assert_eq!(token(&store, "notes").as_deref(), Some("token"));
}

#[tokio::test]
async fn files_readable_by_others_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::with_key_file(folder.path()).unwrap();
    put(&store, "notes", account("https://a", "token")).await.unwrap();
    for path in [token_file(folder.path(), &"notes".into()), folder.path().join(KEY_FILE)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    assert!(matches!(store.load(&"notes".into()), Err(TokenStoreError::InsecurePermissions { .. })));
    let error = TokenStore::with_key_file(folder.path()).unwrap_err();
    assert!(error.to_string().contains("chmod 600"), "{error}");
    fs::set_permissions(folder.path().join(KEY_FILE), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(folder.path().join(KEY_FILE), "not a key").unwrap();
    assert!(matches!(TokenStore::with_key_file(folder.path()), Err(TokenStoreError::Undecryptable { .. })));
    assert_eq!(fs::read(folder.path().join(KEY_FILE)).unwrap(), b"not a key");
}

#[test]
fn concurrent_key_creation_yields_one_key() {
    let folder = tempfile::tempdir().unwrap();
    let keys: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| load_or_create_key(folder.path()).unwrap().to_hex())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(keys.iter().all(|key| *key == keys[0]));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
}

#[tokio::test(start_paused = true)]
async fn the_lock_is_exclusive() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::with_key_file(folder.path()).unwrap();
    let key = TokenKey::from("notes");
    let locked = store.lock(&key).await.unwrap();
    assert!(matches!(store.lock(&key).await, Err(TokenStoreError::Locked { .. })));
    drop(store.lock(&"other".into()).await.unwrap());
    drop(locked);
    drop(store.lock(&"notes".into()).await.unwrap());
}

fn key_of(server: &str, caller: &str) -> TokenKey {
    let identity = toolyard_core::CallerIdentity::principal("https://issuer.example", caller);
    TokenKey::new(server, DataOwner::Caller(*identity.owner()))
}

#[tokio::test]
async fn each_caller_has_tokens_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for store in [TokenStore::in_memory(), TokenStore::with_key_file(folder.path()).unwrap()] {
        let (ada, bob) = (key_of("notes", "ada"), key_of("notes", "bob"));
        put(&store, "notes", account("https://a", "operator")).await.unwrap();
        assert_eq!(token(&store, ada.clone()), None, "the operator's tokens serve no caller");
        put(&store, ada.clone(), account("https://a", "of ada")).await.unwrap();
        assert_eq!(token(&store, bob.clone()), None);
        put(&store, bob.clone(), account("https://a", "of bob")).await.unwrap();
        put(&store, key_of("mail", "ada"), account("https://a", "mail of ada")).await.unwrap();
        for (key, expected) in
            [("notes".into(), "operator"), (ada.clone(), "of ada"), (bob.clone(), "of bob")]
        {
            assert_eq!(token(&store, key).as_deref(), Some(expected));
        }
        let DataOwner::Caller(owner) = ada.owner else { unreachable!() };
        let owners: Vec<ContentHash> =
            store.sign_ins("notes").unwrap().into_iter().map(|sign_in| sign_in.owner).collect();
        assert!(owners.len() == 2 && owners.contains(&owner));
        assert_eq!(store.remove_caller(&owner).unwrap(), 2);
        assert_eq!((token(&store, ada), token(&store, key_of("mail", "ada"))), (None, None));
        assert_eq!(token(&store, bob).as_deref(), Some("of bob"));
        assert_eq!(token(&store, "notes").as_deref(), Some("operator"));
    }
}

#[tokio::test]
async fn a_copied_file_does_not_serve_another_caller() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::with_key_file(folder.path()).unwrap();
    let (ada, bob) = (key_of("notes", "ada"), key_of("notes", "bob"));
    put(&store, ada.clone(), account("https://a", "of ada")).await.unwrap();
    let bytes = fs::read(token_file(folder.path(), &ada)).unwrap();
    for other in [bob, "notes".into()] {
        write_private_file(&token_file(folder.path(), &other), &bytes, |new, path| fs::rename(new, path))
            .unwrap();
        assert!(matches!(store.load(&other), Err(TokenStoreError::Undecryptable { .. })));
    }
}

#[test]
fn an_account_whose_tokens_are_bound_to_a_key_is_absent() {
    let mut tokens = ServerTokens::default();
    tokens.put("https://h/mcp", account("https://plain", "t1"));
    tokens.put("https://h/mcp", account("https://bound", "t2"));
    let mut stored = serde_json::to_value(&tokens).unwrap();
    stored["accounts"][0]["proof_key"] = Value::Null;
    stored["accounts"][1]["proof_key"] = "a key".into();
    let loaded: ServerTokens = serde_json::from_value(stored).unwrap();
    assert_eq!(loaded.account("https://h/mcp"), None);
    assert!(loaded.account_at("https://h/mcp", "https://plain").is_some());
}
