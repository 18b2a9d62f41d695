//! How often the issuer is asked for its keys, and what happens when it rotates them or cannot be reached.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use toolyard_core::{AuthenticationError, BoxFuture, CallerIdentity};

use super::*;

/// An issuer in memory that counts requests.
#[derive(Debug, Default)]
struct FakeIssuer {
    keys: Mutex<Option<String>>,
    /// How often the keys were read.
    refreshes: AtomicUsize,
    /// All requests, those for metadata among them.
    requests: AtomicUsize,
}

impl FakeIssuer {
    fn publish(&self, keys: Option<&Value>) {
        *self.keys.lock() = keys.map(Value::to_string);
    }

    fn refreshes(&self) -> usize {
        self.refreshes.load(Ordering::Relaxed)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

impl MetadataSource for FakeIssuer {
    fn read<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, FetchError>> {
        Box::pin(async move {
            self.requests.fetch_add(1, Ordering::Relaxed);
            // Long enough for other requests to arrive meanwhile.
            tokio::time::sleep(Duration::from_millis(20)).await;
            match url {
                "https://id.example/.well-known/openid-configuration" => {
                    Ok(json!({"issuer": ISSUER, "jwks_uri": "https://id.example/keys"}).to_string())
                }
                "https://id.example/keys" => {
                    self.refreshes.fetch_add(1, Ordering::Relaxed);
                    let failed = FetchError::Failed { url: url.to_owned(), reason: "down".to_owned() };
                    self.keys.lock().clone().ok_or(failed)
                }
                _ => Err(FetchError::NotFound { url: url.to_owned() }),
            }
        })
    }
}

fn verifier(issuer: &Arc<FakeIssuer>) -> OAuthVerifier {
    let mut config = OAuthConfig::new(ISSUER, RESOURCE);
    config.scopes = vec!["tools:call".to_owned()];
    OAuthVerifier::with_clock(config, Arc::clone(issuer) as _, || NOW).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_unknown_key_ids_causes_few_requests_to_the_issuer() {
    let (signer, issuer) = (Signer::generate(), Arc::new(FakeIssuer::default()));
    issuer.publish(Some(&signer.published_keys()));
    let verifier = verifier(&issuer);
    let refused = Err(AuthenticationError::Invalid("the signing key is unknown"));
    for number in 0..600 {
        let token = signer.token(&json!({"alg": "RS256", "kid": format!("made up {number}")}), &claims());
        assert_eq!(verifier.verify(&token).await, refused);
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    // About a minute: once every 10 seconds, and once at first.
    assert!((6..=8).contains(&issuer.refreshes()), "{}", issuer.refreshes());
    // Two addresses of metadata, the second of which exists, and the keys.
    assert_eq!(issuer.requests(), 3 * issuer.refreshes());
    verifier.verify(&signer.token(&header(), &claims())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn refused_tokens_never_cause_requests_to_the_issuer() {
    let (signer, issuer) = (Signer::generate(), Arc::new(FakeIssuer::default()));
    let verifier = verifier(&issuer);
    for claims in
        [with("aud", json!("https://other.example")), with("exp", json!(1)), with("iss", json!("x"))]
    {
        assert!(verifier.verify(&signer.token(&header(), &claims)).await.is_err());
    }
    assert!(verifier.verify("garbage").await.is_err());
    assert_eq!(issuer.requests(), 0);
}

#[tokio::test(start_paused = true)]
async fn rotated_keys_count_at_once_and_removed_ones_no_longer() {
    let (old, new, issuer) = (Signer::generate(), Signer::generate(), Arc::new(FakeIssuer::default()));
    let key = |signer: &Signer, id: &str| {
        let mut key = signer.rsa_key();
        key["kid"] = json!(id);
        key
    };
    issuer.publish(Some(&json!({"keys": [key(&old, "old")]})));
    let verifier = verifier(&issuer);
    let old_token = old.token(&json!({"alg": "RS256", "kid": "old"}), &claims());
    let new_token = new.token(&json!({"alg": "RS256", "kid": "new"}), &claims());
    let before = verifier.verify(&old_token).await.unwrap();
    tokio::time::advance(Duration::from_secs(11)).await;
    issuer.publish(Some(&json!({"keys": [key(&old, "old"), key(&new, "new")]})));
    let after = verifier.verify(&new_token).await.unwrap();
    assert_eq!(before.owner_hash(), after.owner_hash());
    // Each identity has the token that proved it, also when the token is known.
    let presented = |identity: &CallerIdentity| identity.presented_token().unwrap().expose().to_owned();
    assert_eq!((presented(&before), presented(&after)), (old_token.clone(), new_token.clone()));
    assert_eq!(presented(&verifier.verify(&new_token).await.unwrap()), new_token);
    verifier.verify(&old_token).await.unwrap();
    assert_eq!(issuer.refreshes(), 2);

    issuer.publish(Some(&json!({"keys": [key(&new, "new")]})));
    tokio::time::advance(Duration::from_secs(601)).await;
    // Starts to read the keys again in the background.
    verifier.verify(&new_token).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        verifier.verify(&old_token).await,
        Err(AuthenticationError::Invalid("the signing key is unknown"))
    );
    verifier.verify(&new_token).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_issuer_is_asked_once_and_known_keys_survive() {
    let (signer, issuer) = (Signer::generate(), Arc::new(FakeIssuer::default()));
    let verifier = Arc::new(verifier(&issuer));
    let token = Arc::new(signer.token(&header(), &claims()));
    let verify = || {
        let (verifier, token) = (Arc::clone(&verifier), Arc::clone(&token));
        tokio::spawn(async move { verifier.verify(&token).await })
    };
    let many: Vec<_> = (0..50).map(|_| verify()).collect();
    for result in many {
        let result = result.await.unwrap();
        assert!(matches!(result, Err(AuthenticationError::Unavailable { .. })), "{result:?}");
    }
    assert_eq!(issuer.refreshes(), 1);
    issuer.publish(Some(&signer.published_keys()));
    tokio::time::advance(Duration::from_secs(11)).await;
    verify().await.unwrap().unwrap();
    issuer.publish(None);
    tokio::time::advance(Duration::from_hours(23)).await;
    verify().await.unwrap().unwrap();
    tokio::time::advance(Duration::from_hours(2)).await;
    let result = verify().await.unwrap();
    assert!(matches!(result, Err(AuthenticationError::Unavailable { .. })), "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn a_removed_key_does_not_count_after_a_pause_without_requests() {
    let (old, new, issuer) = (Signer::generate(), Signer::generate(), Arc::new(FakeIssuer::default()));
    issuer.publish(Some(&old.published_keys()));
    let verifier = verifier(&issuer);
    let token = old.token(&header(), &claims());
    verifier.verify(&token).await.unwrap();
    // The key is stolen, and the issuer replaces it.
    issuer.publish(Some(&new.published_keys()));
    tokio::time::advance(Duration::from_mins(21)).await;
    assert!(verifier.verify(&token).await.is_err(), "the first request waits for the keys");
    verifier.verify(&new.token(&header(), &claims())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn requests_do_not_wait_again_and_again_for_an_unreachable_issuer() {
    let (signer, issuer) = (Signer::generate(), Arc::new(FakeIssuer::default()));
    issuer.publish(Some(&signer.published_keys()));
    let verifier = verifier(&issuer);
    let token = signer.token(&header(), &claims());
    verifier.verify(&token).await.unwrap();
    issuer.publish(None);
    tokio::time::advance(Duration::from_mins(21)).await;
    verifier.verify(&token).await.unwrap();
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let start = tokio::time::Instant::now();
        verifier.verify(&token).await.unwrap();
        assert_eq!(start.elapsed(), Duration::ZERO, "the keys are read in the background");
    }
    assert!(issuer.refreshes() > 10, "{}", issuer.refreshes());
}

#[tokio::test(start_paused = true)]
async fn clients_that_disconnect_cause_no_further_requests_to_the_issuer() {
    let (signer, issuer) = (Signer::generate(), Arc::new(FakeIssuer::default()));
    issuer.publish(Some(&signer.published_keys()));
    let verifier = verifier(&issuer);
    for number in 0..50 {
        let token = signer.token(&json!({"alg": "RS256", "kid": format!("made up {number}")}), &claims());
        // The issuer takes longer than the client waits.
        let _ = tokio::time::timeout(Duration::from_millis(1), verifier.verify(&token)).await;
    }
    verifier.verify(&signer.token(&header(), &claims())).await.unwrap();
    assert_eq!(issuer.requests(), 3, "one refresh");
}
