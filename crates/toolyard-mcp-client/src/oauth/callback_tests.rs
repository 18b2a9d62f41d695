//! The loopback redirect under valid, forged and malformed requests.

use proptest::prelude::*;

use super::*;

fn state() -> SecretText {
    SecretText::new("s3cret-state")
}

fn request(target: &str, host: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nCookie: a=b\r\n\r\n").into_bytes()
}

fn parse_target(target: &str) -> CallbackRequest {
    parse_request(&request(target, "127.0.0.1:4000"), 4000, &state())
}

#[test]
fn a_response_with_the_expected_state_is_accepted() {
    let CallbackRequest::Code(response) =
        parse_target("/callback?code=a%2Bb&state=s3cret-state&iss=https%3A%2F%2Fissuer")
    else {
        panic!("refused");
    };
    assert_eq!((response.code.expose(), response.issuer.as_deref()), ("a+b", Some("https://issuer")));
    assert!(!format!("{response:?}").contains("a+b"));
    let CallbackRequest::Denied(reason) =
        parse_target("/callback?error=access_denied&error_description=no%0A%1b%5B31mway&state=s3cret-state")
    else {
        panic!("no refusal");
    };
    assert_eq!(reason, "access_denied no [31mway");
}

#[test]
fn all_other_requests_are_rejected() {
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
        assert!(matches!(parse_target(target), CallbackRequest::Unrelated(_)), "{target}");
    }
    let long = format!("/callback?code={}&state=s3cret-state", "a".repeat(MAX_VALUE_BYTES + 1));
    assert!(matches!(parse_target(&long), CallbackRequest::Unrelated(_)));
}

#[test]
fn dns_rebinding_is_rejected() {
    for host in [
        "evil.example.org",
        "evil.example.org:4000",
        "127.0.0.1",
        "127.0.0.1:4001",
        "",
        "127.0.0.1:4000.evil",
    ] {
        let request = parse_request(&request("/callback?code=a&state=s3cret-state", host), 4000, &state());
        assert!(matches!(request, CallbackRequest::Unrelated(_)), "{host}");
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
        assert!(
            matches!(parse_request(head.as_bytes(), 4000, &state()), CallbackRequest::Unrelated(_)),
            "{head:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_bytes_are_accepted_without_the_state(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(matches!(parse_request(&bytes, 4000, &state()), CallbackRequest::Unrelated(_)));
    }

    #[test]
    fn no_query_is_accepted_without_the_state(query in "[a-z=&%+;?#0-9]{0,60}") {
        let request = parse_target(&format!("/callback?code=a&{query}"));
        prop_assert!(matches!(request, CallbackRequest::Unrelated(_)));
    }
}

async fn send_bytes(port: u16, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    // The listener stops reading when the head is too long.
    let _ = stream.write_all(bytes).await;
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    String::from_utf8_lossy(&response).into_owned()
}

#[tokio::test]
async fn the_redirect_is_found_among_other_requests() {
    let callback = LoopbackCallback::listen(None).await.unwrap();
    let port = callback.port;
    assert_eq!(callback.redirect_uri(), format!("http://127.0.0.1:{port}/callback"));
    assert_eq!(redirect_port(&callback.redirect_uri()), Some(port));
    let waiting = tokio::spawn(async move { callback.wait(&state(), Duration::from_secs(20)).await });

    let host = format!("127.0.0.1:{port}");
    let idle = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    assert!(send_bytes(port, b"\x16\x03\x01 garbage \xff\xff\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    assert!(send_bytes(port, &request("/favicon.ico", &host)).await.starts_with("HTTP/1.1 404"));
    let forged = send_bytes(port, &request("/callback?code=evil&state=<script>", &host)).await;
    assert!(forged.starts_with("HTTP/1.1 400") && !forged.contains("script"), "{forged}");
    send_bytes(port, &vec![b'a'; MAX_HEAD_BYTES + 4096]).await;
    let page = send_bytes(port, &request("/callback?code=good&state=s3cret-state", &host)).await;
    assert!(page.starts_with("HTTP/1.1 200") && !page.contains("good"), "{page}");
    assert_eq!(waiting.await.unwrap().unwrap().code.expose(), "good");
    drop(idle);
    // The listener is closed after the response.
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err());
}

#[tokio::test]
async fn idle_connections_do_not_block_the_redirect() {
    let callback = LoopbackCallback::listen(None).await.unwrap();
    let port = callback.port;
    let waiting = tokio::spawn(async move { callback.wait(&state(), Duration::from_secs(30)).await });
    let mut idle = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        idle.push(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap());
    }
    send_bytes(port, &request("/callback?code=good&state=s3cret-state", &format!("127.0.0.1:{port}"))).await;
    assert_eq!(waiting.await.unwrap().unwrap().code.expose(), "good");
}

#[tokio::test]
async fn waiting_times_out_and_a_taken_port_is_named() {
    let callback = LoopbackCallback::listen(None).await.unwrap();
    let port = callback.port;
    let taken = LoopbackCallback::listen(Some(port)).await.unwrap_err();
    assert!(taken.to_string().contains(&format!("port {port}")), "{taken}");
    let error = callback.wait(&state(), Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(error, CallbackError::TimedOut(_)));
}
