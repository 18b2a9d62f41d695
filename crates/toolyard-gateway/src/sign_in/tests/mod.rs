//! Sign-ins from the link to the tokens, and everything that must be refused on the way.

mod fixture;

use std::time::Duration;

use http::StatusCode;
use toolyard_core::{API_KEY_ISSUER, PROXY_ISSUER};

use self::fixture::{Fixture, ISSUER, ORIGIN, caller};
use super::pending::{MAX_ATTEMPTS, MAX_PER_CALLER, STEP_TIMEOUT};

#[tokio::test]
async fn a_caller_with_an_api_key_signs_in() {
    let fixture = Fixture::start().await;
    let ada = caller(API_KEY_ISSUER, "ada <b>");
    let (link, browser) = (fixture.link(&ada), fixture.browser());
    let page = browser.get(&link).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("notes") && page.text.contains("ada &lt;b&gt;"), "{}", page.text);
    assert!(!page.text.contains("<script") && page.next().is_none(), "{}", page.text);
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(page.headers["cache-control"], "no-store");

    let page = browser.post(&link, "key=key-of-ada+%3Cb%3E").await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(page.next().unwrap().starts_with(&format!("{}/authorize?", fixture.server)));
    assert_eq!(page.next_parameter("code_challenge_method"), "S256");
    assert_eq!(page.next_parameter("redirect_uri"), "https%3A%2F%2Ftools.example%2Foauth%2Fcallback");
    assert!(!fixture.has_tokens(&ada).await);

    let answer =
        format!("/oauth/callback?code=c&state={}&iss={}", page.next_parameter("state"), fixture.server);
    let page = browser.get(&answer).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text);
    assert!(page.text.contains("return to your client") && !page.text.contains("s3cret"), "{}", page.text);
    assert!(fixture.has_tokens(&ada).await);
    assert!(!fixture.has_tokens(&caller(API_KEY_ISSUER, "bob")).await);
    assert_eq!(browser.get(&answer).await.status, StatusCode::NOT_FOUND, "a response counts once");
}

#[tokio::test]
async fn a_link_works_once_and_only_for_its_caller() {
    let fixture = Fixture::start().await;
    let (ada, browser) = (caller(API_KEY_ISSUER, "ada"), fixture.browser());
    for wrong in ["/sign-in/0", "/sign-in/", "/sign-in/callback", "/sign-in/x/y"] {
        let page = browser.get(wrong).await;
        assert_eq!(page.status, StatusCode::NOT_FOUND, "{wrong}");
    }
    let link = fixture.link(&ada);
    assert_eq!(browser.post("/sign-in/0", "key=key-of-ada").await.status, StatusCode::NOT_FOUND);
    // Whoever gets the link from its caller has another key.
    for wrong in ["key-of-bob", "", "the-token-of-the-gateway"] {
        let page = browser.prove(&link, wrong).await;
        assert_eq!((page.status, page.next()), (StatusCode::FORBIDDEN, None), "{wrong}");
    }
    assert_eq!(fixture.link(&ada), link, "a repeated call gets the same link until it is used");
    assert!(browser.prove(&link, "key-of-ada").await.next().is_some());
    for page in [browser.get(&link).await, browser.post(&link, "key=key-of-ada").await] {
        assert_eq!((page.status, page.next()), (StatusCode::NOT_FOUND, None), "it was used");
    }
    assert_ne!(fixture.link(&ada), link);
}

#[tokio::test]
async fn keys_cannot_be_tried_for_ever() {
    let fixture = Fixture::without_server();
    let (ada, browser) = (caller(API_KEY_ISSUER, "ada"), fixture.browser());
    let link = fixture.link(&ada);
    for _ in 0..MAX_ATTEMPTS {
        assert_eq!(browser.prove(&link, "key-of-bob").await.status, StatusCode::FORBIDDEN);
    }
    assert_eq!(browser.prove(&link, "key-of-ada").await.status, StatusCode::FORBIDDEN);
    assert_eq!(browser.get(&link).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn links_expire() {
    let fixture = Fixture::without_server();
    let (ada, browser) = (caller(API_KEY_ISSUER, "ada"), fixture.browser());
    let link = fixture.link(&ada);
    tokio::time::advance(STEP_TIMEOUT - Duration::from_secs(1)).await;
    assert_eq!(browser.get(&link).await.status, StatusCode::OK);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(browser.get(&link).await.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.post(&link, "key=key-of-ada").await.status, StatusCode::NOT_FOUND);
    assert_ne!(fixture.link(&ada), link);
}

#[tokio::test]
async fn forms_of_other_sites_are_refused() {
    let fixture = Fixture::without_server();
    let ada = caller(API_KEY_ISSUER, "ada");
    let link = fixture.link(&ada);
    // An attacker lets the browser of somebody else submit the attacker's own link and key.
    let mut browser = fixture.browser();
    assert_eq!(browser.post(&link, "key=key-of-ada").await.status, StatusCode::FORBIDDEN, "no cookie");
    browser.get(&link).await;
    for origin in
        ["https://evil.example", "null", "https://tools.example.evil.example", "http://tools.example"]
    {
        browser.origin = origin;
        let page = browser.post(&link, "key=key-of-ada").await;
        assert_eq!((page.status, page.next()), (StatusCode::FORBIDDEN, None), "{origin}");
    }
}

#[tokio::test]
async fn a_response_must_come_to_the_browser_of_the_caller() {
    let fixture = Fixture::start().await;
    let ada = caller(API_KEY_ISSUER, "ada");
    let (browser, victim) = (fixture.browser(), fixture.browser());
    let page = browser.prove(&fixture.link(&ada), "key-of-ada").await;
    let answer =
        format!("/oauth/callback?code=c&state={}&iss={}", page.next_parameter("state"), fixture.server);
    let refused = victim.get(&answer).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(!fixture.has_tokens(&ada).await, "the victim's access is not the caller's");
    for wrong in ["", "?state=x", "?code=c", "?code=c&state=x", "?code=c&state=x&state=y"] {
        assert_eq!(
            browser.get(&format!("/oauth/callback{wrong}")).await.status,
            StatusCode::NOT_FOUND,
            "{wrong}"
        );
    }
    assert_eq!(browser.get(&answer).await.status, StatusCode::OK);
    assert!(fixture.has_tokens(&ada).await);
}

#[tokio::test]
async fn responses_of_another_issuer_and_refusals_store_nothing() {
    let fixture = Fixture::start().await;
    let (ada, browser) = (caller(API_KEY_ISSUER, "ada"), fixture.browser());
    for rest in ["&code=c&iss=https://evil.example", "&code=c", "&error=access_denied"] {
        let page = browser.prove(&fixture.link(&ada), "key-of-ada").await;
        let answer = format!("/oauth/callback?state={}{rest}", page.next_parameter("state"));
        let page = browser.get(&answer).await;
        assert_eq!(page.status, StatusCode::BAD_GATEWAY, "{rest}: {}", page.text);
        assert!(!fixture.has_tokens(&ada).await);
        assert_eq!(browser.get(&answer).await.status, StatusCode::NOT_FOUND, "it is over");
    }
}

#[tokio::test]
async fn no_parameter_leads_to_another_site() {
    let fixture = Fixture::start().await;
    let (ada, browser) = (caller(API_KEY_ISSUER, "ada"), fixture.browser());
    let link = fixture.link(&ada);
    let evil = "redirect_uri=https://evil.example&next=https://evil.example&return_to=//evil.example";
    assert!(!browser.get(&format!("{link}?{evil}")).await.text.contains("evil"));
    let page = browser.post(&format!("{link}?{evil}"), &format!("key=key-of-ada&{evil}")).await;
    assert!(
        page.next().unwrap().starts_with(&fixture.server) && !page.text.contains("evil"),
        "{}",
        page.text
    );
    let (state, server) = (page.next_parameter("state"), &fixture.server);
    let page = browser.get(&format!("/oauth/callback?code=c&state={state}&iss={server}&{evil}")).await;
    assert_eq!((page.status, page.next()), (StatusCode::OK, None));
    assert!(!page.headers.contains_key("location") && !page.text.contains("evil"), "{}", page.text);
}

#[tokio::test]
async fn callers_of_a_proxy_are_recognised_by_it() {
    let fixture = Fixture::start().await;
    let ada = caller(PROXY_ISSUER, "ada");
    let (link, mut browser) = (fixture.link(&ada), fixture.browser());
    for other in [caller(PROXY_ISSUER, "bob"), caller(API_KEY_ISSUER, "ada"), std::sync::Arc::default()] {
        browser.identity = other;
        let page = browser.prove(&link, "key-of-ada").await;
        assert_eq!((page.status, page.next()), (StatusCode::FORBIDDEN, None));
    }
    browser.identity = ada;
    assert!(browser.prove(&link, "").await.next().unwrap().starts_with(&fixture.server));
}

#[tokio::test]
async fn callers_with_access_tokens_sign_in_at_their_issuer_first() {
    let fixture = Fixture::with_issuer().await;
    let ada = caller(ISSUER, "ada");
    let answer = |person: &str| format!("/sign-in/callback?code={person}&state=state-of-person");
    let browser = fixture.browser();
    let link = fixture.link(&ada);
    let page = browser.prove(&link, "key-of-ada").await;
    assert!(page.next().unwrap().starts_with(ISSUER), "a key does not replace the issuer");
    assert_eq!(browser.get(&link).await.status, StatusCode::NOT_FOUND, "the ticket is used");
    assert_eq!(fixture.browser().get(&answer("ada")).await.status, StatusCode::FORBIDDEN, "another browser");
    let page = browser.get(&answer("bob")).await;
    assert_eq!((page.status, page.next()), (StatusCode::FORBIDDEN, None), "another person");
    assert_eq!(browser.get(&answer("ada")).await.status, StatusCode::NOT_FOUND, "it is over");

    browser.prove(&fixture.link(&ada), "").await;
    let page = browser.get(&answer("ada")).await;
    assert!(page.next().unwrap().starts_with(&fixture.server), "{}", page.text);
    let (state, server) = (page.next_parameter("state"), &fixture.server);
    let page = browser.get(&format!("/oauth/callback?code=c&state={state}&iss={server}")).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(fixture.has_tokens(&ada).await);
}

#[tokio::test]
async fn without_a_client_at_the_issuer_the_page_names_the_setting() {
    let fixture = Fixture::start().await;
    let (link, browser) = (fixture.link(&caller(ISSUER, "ada")), fixture.browser());
    let page = browser.get(&link).await;
    assert_eq!(page.status, StatusCode::NOT_IMPLEMENTED);
    assert!(page.text.contains("sign_in_client_id"), "{}", page.text);
    assert_eq!(browser.post(&link, "").await.status, StatusCode::FORBIDDEN);
    // An issuer that is configured now does not vouch for callers of an earlier one.
    let fixture = Fixture::with_issuer().await;
    let page = fixture.browser().get(&fixture.link(&caller("https://former.example", "ada"))).await;
    assert_eq!(page.status, StatusCode::NOT_IMPLEMENTED);
}

#[tokio::test]
async fn sign_ins_are_bounded_for_each_caller() {
    let fixture = Fixture::without_server();
    let (ada, bob) = (caller(API_KEY_ISSUER, "ada"), caller(API_KEY_ISSUER, "bob"));
    for number in 0..MAX_PER_CALLER {
        assert!(fixture.sign_ins.begin(fixture.request(&format!("server-{number}"), &ada)).is_some());
    }
    assert!(fixture.sign_ins.begin(fixture.request("one-more", &ada)).is_none());
    assert!(fixture.sign_ins.begin(fixture.request("server-0", &ada)).is_some(), "it is offered already");
    let link = fixture.sign_ins.begin(fixture.request("one-more", &bob)).unwrap();
    let ticket = link.url().strip_prefix(&format!("{ORIGIN}/sign-in/")).unwrap();
    assert_eq!(ticket.len(), 64);
    assert!(!format!("{link:?} {:?}", fixture.sign_ins).contains(ticket));
    assert_eq!(toolyard_core::redact(link.instruction()), link.instruction(), "the link survives redaction");
}
