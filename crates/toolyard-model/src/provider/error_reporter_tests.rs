//! Messages and hints for errors that servers return.

use super::*;

fn reporter() -> ErrorReporter {
    let api_key = ApiKeyInfo { source: Some("LOCAL_KEY".to_owned()), is_configured: true };
    let secrets = ["zz-very-odd-key", "Bearer other-odd-key"].map(SecretText::new);
    let secrets = secrets.iter().flat_map(redactions).collect();
    ErrorReporter::new("local", "http://127.0.0.1:8080/v1".to_owned(), api_key, secrets)
}

fn report(status: u16, body: &str) -> String {
    let error = reporter().server_error(&ServerError::from_response(status, body));
    let hint = error.hint.clone().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
    format!("{:?}: {error}{hint}", error.kind)
}

#[test]
fn errors_have_hints() {
    let all = [
        report(401, r#"{"error": {"message": "Incorrect API key provided: zz-very-odd-key"}}"#),
        report(403, ""),
        report(404, "<html>not found</html>"),
        report(429, r#"{"error": {"message": "slow down"}}"#),
        report(
            429,
            r#"{"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}"#,
        ),
        report(503, r#"{"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}"#),
        report(400, r#"{"error": {"message": "response_format json_schema is not supported"}}"#),
        report(400, r#"{"error": {"message": "the request exceeds the available context size"}}"#),
        report(400, r#"{"object": "error", "message": "tools param requires --jinja"}"#),
        report(422, r#"[{"error": "a list of one"}]"#),
        report(418, "plain words\nover lines\u{202e}"),
    ];
    insta::assert_snapshot!(all.join("\n"), @r#"
    Unauthorized: model `local` returned HTTP 401: Incorrect API key provided: [redacted:key]
      hint: http://127.0.0.1:8080/v1 rejected the key in LOCAL_KEY
    Unauthorized: model `local` returned HTTP 403
      hint: http://127.0.0.1:8080/v1 rejected the key in LOCAL_KEY
    Rejected: model `local` returned HTTP 404
      hint: http://127.0.0.1:8080/v1 has no such path; the base URL usually ends in /v1
    Busy: model `local` returned HTTP 429: slow down
      hint: rate limit reached; retry later
    Rejected: model `local` returned HTTP 429: You exceeded your current quota
      hint: the account at this provider has no credit left
    Busy: model `local` returned HTTP 503: Loading model
    Unsupported: model `local` returned HTTP 400: response_format json_schema is not supported
      hint: the server does not support this schema; set tool_calling = "native" or "text"
    ContextOverflow: model `local` returned HTTP 400: the request exceeds the available context size
      hint: the conversation exceeds the model's context window; shorten it or start a new one
    Unsupported: model `local` returned HTTP 400: tools param requires --jinja
      hint: the server does not support native tool calls; set tool_calling = "text" or "schema"
    Unsupported: model `local` returned HTTP 422: a list of one
    Rejected: model `local` returned HTTP 418: plain words over lines\u{202e}
    "#);
}

#[test]
fn an_exceeded_context_window_is_recognized() {
    for (status, message) in [
        (
            400,
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        ),
        (400, "the request exceeds the available context size"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575)."),
        (413, "Range of input length should be [1, 30720]"),
    ] {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        assert!(report(status, &body).starts_with("ContextOverflow: "), "{message}");
    }
    let coded = r#"{"error": {"code": "context_length_exceeded", "message": "no"}}"#;
    assert!(report(400, coded).starts_with("ContextOverflow: "));
    for (status, message) in [
        (400, "unexpected field `context`"),
        (429, "too many tokens per minute"),
        (500, "context length exceeded"),
    ] {
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        assert!(!report(status, &body).starts_with("ContextOverflow: "), "{message}");
    }
}

#[test]
fn secrets_are_redacted() {
    let body =
        "keys: zz-very-odd-key, other-odd-key and sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH";
    let error = reporter().server_error(&ServerError::from_response(400, body));
    let everything = format!("{error} {error:?} {:?}", reporter());
    for secret in ["odd-key", "sk-proj-abc"] {
        assert!(!everything.contains(secret), "{everything}");
    }
}

#[test]
fn a_timeout_names_the_setting_that_raises_it() {
    let error = reporter().first_token_timeout(Duration::from_secs(120));
    assert!(error.to_string().contains("did not start to reply within 120 s"), "{error}");
    let hint = error.hint.unwrap_or_default();
    assert!(hint.contains("`timeout` of [models.local] in toolyard.toml"), "{hint}");
}

#[test]
fn long_messages_are_truncated() {
    let error = reporter().server_error(&ServerError::from_response(400, &"x ".repeat(10_000)));
    assert!(error.message.len() < 400);
}
