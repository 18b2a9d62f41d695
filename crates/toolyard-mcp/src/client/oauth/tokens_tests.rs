use super::*;

fn account(issuer: &str, token: &str) -> Account {
    Account {
        issuer: issuer.to_owned(),
        client_id: "client".to_owned(),
        client_secret: Some(HiddenText::new("s3cret-client")),
        redirect_uri: Some("http://127.0.0.1:1/callback".to_owned()),
        access_token: HiddenText::new(token),
        refresh_token: Some(HiddenText::new("s3cret-refresh")),
        obtained_at: 1,
        lifetime: Some(3600),
        requested_scopes: vec!["read".to_owned()],
        granted_scopes: vec!["read".to_owned()],
        proof_key: None,
    }
}

async fn put(store: &TokenStore, server: &str, account: Account) -> Result<(), TokenStoreError> {
    let held = store.hold(server).await?;
    let mut kept = held.load()?;
    kept.put("https://h/mcp", account);
    held.save(kept)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn token(store: &TokenStore, server: &str) -> Option<String> {
    let kept = store.load(server).unwrap()?;
    kept.account("https://h/mcp").map(|account| account.access_token.reveal().to_owned())
}

#[tokio::test]
async fn what_is_kept_is_sealed_and_private() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("oauth");
    let store = TokenStore::with_own_key(&folder).unwrap();
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
    assert_eq!(names, ["", "lock", "lock", "tokens", "tokens"], "nothing is left over");

    let again = TokenStore::with_own_key(&folder).unwrap();
    assert_eq!(token(&again, "notes").as_deref(), Some("s3cret-access"));
    assert_eq!(token(&again, "../other").as_deref(), Some("s3cret-other"));
    assert_eq!(token(&again, "third"), None);
    assert!(again.forget("notes").unwrap() && !again.forget("notes").unwrap());
    assert_eq!(token(&store, "notes"), None);
    let shown = format!("{store:?} {:?}", store.load("../other").unwrap());
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn each_issuer_has_an_account_of_its_own() {
    let store = TokenStore::in_memory();
    put(&store, "notes", account("https://a", "first")).await.unwrap();
    put(&store, "notes", account("https://b", "second")).await.unwrap();
    let kept = store.load("notes").unwrap().unwrap();
    assert_eq!(kept.account("https://h/mcp").unwrap().issuer, "https://b");
    assert_eq!(kept.account_of("https://h/mcp", "https://a").unwrap().access_token.reveal(), "first");
    assert_eq!(kept.account("https://elsewhere/mcp"), None);
    assert_eq!(kept.account_of("https://elsewhere/mcp", "https://a"), None);
    // A server that moved brings nothing along.
    let mut moved = kept;
    moved.put("https://elsewhere/mcp", account("https://b", "third"));
    assert_eq!(moved.accounts.len(), 1);
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::with_own_key(folder.path()).unwrap();
    put(&store, "notes", account("https://a", "token")).await.unwrap();
    put(&store, "other", account("https://a", "token")).await.unwrap();
    let path = token_file(folder.path(), "notes");
    let good = fs::read(&path).unwrap();
    let other = fs::read(token_file(folder.path(), "other")).unwrap();
    let sealed = |text: &[u8]| {
        let Place::Folder { key, .. } = &store.0 else { unreachable!() };
        key.seal(&purpose("notes"), text.to_vec()).unwrap()
    };
    for bytes in [
        Vec::new(),
        b"{}".to_vec(),
        good[..good.len() - 1].to_vec(),
        [&good[..], b"x"].concat(),
        vec![0xff; 3000],
        other,
        sealed(b"{}"),
        sealed(b"not json"),
        sealed(
            &serde_json::to_vec(&Kept { version: 99, server: "notes".to_owned(), ..Kept::default() })
                .unwrap(),
        ),
        sealed(
            &serde_json::to_vec(&Kept { version: 1, server: "other".to_owned(), ..Kept::default() }).unwrap(),
        ),
    ] {
        fs::write(&path, &bytes).unwrap();
        let error = store.load("notes").unwrap_err();
        assert!(
            matches!(error, TokenStoreError::Unusable { .. } | TokenStoreError::Foreign { .. }),
            "{error}"
        );
        assert!(put(&store, "notes", account("https://a", "new")).await.is_err());
        let held = store.hold("notes").await.unwrap();
        assert!(held.save(Kept::default()).is_err());
        assert_eq!(fs::read(&path).unwrap(), bytes, "it was overwritten");
    }
    assert_eq!(token(&store, "other").as_deref(), Some("token"), "the others are untouched");
    fs::write(&path, &good).unwrap();
    assert_eq!(token(&store, "notes").as_deref(), Some("token"));
}

#[tokio::test]
async fn another_key_opens_nothing_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::in_folder(folder.path(), SealKey::generate().unwrap());
    put(&store, "notes", account("https://a", "token")).await.unwrap();
    let other = TokenStore::with_own_key(folder.path()).unwrap();
    assert!(matches!(other.load("notes"), Err(TokenStoreError::Unusable { reason: SealError::Damaged, .. })));
    assert!(put(&other, "notes", account("https://a", "new")).await.is_err());
    assert_eq!(token(&store, "notes").as_deref(), Some("token"));
}

#[tokio::test]
async fn files_that_others_can_read_are_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::with_own_key(folder.path()).unwrap();
    put(&store, "notes", account("https://a", "token")).await.unwrap();
    for path in [token_file(folder.path(), "notes"), folder.path().join(KEY_FILE)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    assert!(matches!(store.load("notes"), Err(TokenStoreError::OpenToOthers { .. })));
    let error = TokenStore::with_own_key(folder.path()).unwrap_err();
    assert!(error.to_string().contains("chmod 600"), "{error}");
    fs::set_permissions(folder.path().join(KEY_FILE), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(folder.path().join(KEY_FILE), "not a key").unwrap();
    assert!(matches!(TokenStore::with_own_key(folder.path()), Err(TokenStoreError::Unusable { .. })));
    assert_eq!(fs::read(folder.path().join(KEY_FILE)).unwrap(), b"not a key");
}

#[test]
fn of_many_who_make_a_key_all_get_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let keys: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| own_key(folder.path()).unwrap().to_hex())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(keys.iter().all(|key| *key == keys[0]));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_changes_what_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = TokenStore::with_own_key(folder.path()).unwrap();
    let held = store.hold("notes").await.unwrap();
    assert!(matches!(store.hold("notes").await, Err(TokenStoreError::Busy { .. })));
    drop(store.hold("other").await.unwrap());
    drop(held);
    drop(store.hold("notes").await.unwrap());
}
