use proptest::prelude::*;

use super::*;

fn state() -> HiddenText {
    HiddenText::new("s3cret-state")
}

fn request(target: &str, host: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nCookie: a=b\r\n\r\n").into_bytes()
}

fn judged(target: &str) -> Visit {
    judge(&request(target, "127.0.0.1:4000"), 4000, &state())
}

#[test]
fn takes_the_answer_to_our_question() {
    let Visit::Answer(answer) = judged("/callback?code=a%2Bb&state=s3cret-state&iss=https%3A%2F%2Fissuer")
    else {
        panic!("refused");
    };
    assert_eq!((answer.code.reveal(), answer.issuer.as_deref()), ("a+b", Some("https://issuer")));
    assert!(!format!("{answer:?}").contains("a+b"));
    let Visit::Refusal(reason) =
        judged("/callback?error=access_denied&error_description=no%0A%1b%5B31mway&state=s3cret-state")
    else {
        panic!("no refusal");
    };
    assert_eq!(reason, "access_denied no [31mway");
}

#[test]
fn ignores_whatever_else_knocks() {
    for target in [
        "/callback",
        "/callback?code=a",
        "/callback?code=a&state=",
        "/callback?code=a&state=other",
        "/callback?code=a&state=s3cret-stat",
        "/callback?code=&state=s3cret-state",
        "/callback?state=s3cret-state",
        "/callback?code=a&state=s3cret-state&state=other",
        "/callback?code=a&code=b&state=s3cret-state",
        "/callback?code=a&error=b&state=s3cret-state",
        "/callback?code=a&state=s3cret-state&iss=a&iss=b",
        "/callback/?code=a&state=s3cret-state",
        "//callback?code=a&state=s3cret-state",
        "/favicon.ico",
        "/other?code=a&state=s3cret-state",
        "http://127.0.0.1:4000/callback?code=a&state=s3cret-state",
        "/callback?code=a&state=s3cret-state extra",
        "*",
    ] {
        assert!(matches!(judged(target), Visit::Other(_)), "{target}");
    }
    let long = format!("/callback?code={}&state=s3cret-state", "a".repeat(MOST_VALUE_BYTES + 1));
    assert!(matches!(judged(&long), Visit::Other(_)));
}

#[test]
fn ignores_pages_that_bent_their_name_to_this_machine() {
    for host in [
        "evil.example.org",
        "evil.example.org:4000",
        "127.0.0.1",
        "127.0.0.1:4001",
        "",
        "127.0.0.1:4000.evil",
    ] {
        let visit = judge(&request("/callback?code=a&state=s3cret-state", host), 4000, &state());
        assert!(matches!(visit, Visit::Other(_)), "{host}");
    }
    for head in [
        "GET /callback?code=a&state=s3cret-state HTTP/1.1\r\n\r\n",
        "GET /callback?code=a&state=s3cret-state HTTP/1.1\r\nHost: 127.0.0.1:4000\r\nhost: evil\r\n\r\n",
        "GET /callback?code=a&state=s3cret-state HTTP/1.1\r\nHost: 127.0.0.1:4000",
        "POST /callback?code=a&state=s3cret-state HTTP/1.1\r\nHost: 127.0.0.1:4000\r\n\r\n",
        "GET /callback?code=a&state=s3cret-state HTTP/2\r\nHost: 127.0.0.1:4000\r\n\r\n",
        "GET /callback?code=a&state=s3cret-state\r\nHost: 127.0.0.1:4000\r\n\r\n",
        "\r\n\r\n",
        "",
    ] {
        assert!(matches!(judge(head.as_bytes(), 4000, &state()), Visit::Other(_)), "{head:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_are_an_answer_without_the_state(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(matches!(judge(&bytes, 4000, &state()), Visit::Other(_)));
    }

    #[test]
    fn no_query_is_an_answer_without_the_state(query in "[a-z=&%+;?#0-9]{0,60}") {
        let visit = judged(&format!("/callback?code=a&{query}"));
        prop_assert!(matches!(visit, Visit::Other(_)));
    }
}

async fn say(port: u16, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    // The listener may stop reading in the middle of too much.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn the_browser_comes_back_among_others() {
    let callback = LoopbackCallback::listen(None).await.unwrap();
    let port = callback.port;
    assert_eq!(callback.redirect_uri(), format!("http://127.0.0.1:{port}/callback"));
    assert_eq!(redirect_port(&callback.redirect_uri()), Some(port));
    let waiting = tokio::spawn(async move { callback.wait(&state(), Duration::from_secs(20)).await });

    let host = format!("127.0.0.1:{port}");
    let idle = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    assert!(say(port, b"\x16\x03\x01 garbage \xff\xff\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    assert!(say(port, &request("/favicon.ico", &host)).await.starts_with("HTTP/1.1 404"));
    let forged = say(port, &request("/callback?code=evil&state=<script>", &host)).await;
    assert!(forged.starts_with("HTTP/1.1 400") && !forged.contains("script"), "{forged}");
    say(port, &vec![b'a'; MOST_HEAD_BYTES + 4096]).await;
    let page = say(port, &request("/callback?code=good&state=s3cret-state", &host)).await;
    assert!(page.starts_with("HTTP/1.1 200") && !page.contains("good"), "{page}");
    assert_eq!(waiting.await.unwrap().unwrap().code.reveal(), "good");
    drop(idle);
    // Nobody listens any more: the second answer reaches no one.
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err());
}

#[tokio::test]
async fn idle_visitors_keep_nobody_out_for_long() {
    let callback = LoopbackCallback::listen(None).await.unwrap();
    let port = callback.port;
    let waiting = tokio::spawn(async move { callback.wait(&state(), Duration::from_secs(30)).await });
    let mut idle = Vec::new();
    for _ in 0..MOST_VISITORS {
        idle.push(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap());
    }
    say(port, &request("/callback?code=good&state=s3cret-state", &format!("127.0.0.1:{port}"))).await;
    assert_eq!(waiting.await.unwrap().unwrap().code.reveal(), "good");
}

#[tokio::test]
async fn gives_up_in_time_and_says_which_port_is_taken() {
    let callback = LoopbackCallback::listen(None).await.unwrap();
    let port = callback.port;
    let taken = LoopbackCallback::listen(Some(port)).await.unwrap_err();
    assert!(taken.to_string().contains(&format!("port {port}")), "{taken}");
    let error = callback.wait(&state(), Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(error, CallbackError::TimedOut(_)));
}
