//! What people are told when a server says no.

use super::*;
use crate::openai::{ApiKey, OpenAiConfig, address::Address};

fn spokesman() -> Spokesman {
    let mut config = OpenAiConfig::new("local", "http://127.0.0.1:8080/v1?key=abcd1234", "qwen");
    config.key = Some(ApiKey::new("zz-very-odd-key"));
    config.key_source = Some("LOCAL_KEY".into());
    config.headers = vec![("x-pass".into(), ApiKey::new("Bearer other-odd-key"))];
    let address = Address::read(&config.base_url).unwrap();
    let key = KeyFacts { source: config.key_source.clone(), is_given: true };
    Spokesman::new(&config.name, address.to_string(), key, config.secrets())
}

fn told(status: u16, body: &str) -> String {
    let error = spokesman().complain(&Complaint::in_body(status, body));
    let hint = error.hint.clone().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
    format!("{:?}: {error}{hint}", error.kind)
}

#[test]
fn errors_say_what_to_do() {
    let all = [
        told(401, r#"{"error": {"message": "Incorrect API key provided: zz-very-odd-key"}}"#),
        told(403, ""),
        told(404, "<html>not found</html>"),
        told(429, r#"{"error": {"message": "slow down"}}"#),
        told(
            429,
            r#"{"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}"#,
        ),
        told(503, r#"{"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}"#),
        told(400, r#"{"error": {"message": "response_format json_schema is not supported"}}"#),
        told(400, r#"{"error": {"message": "the request exceeds the available context size"}}"#),
        told(400, r#"{"object": "error", "message": "tools param requires --jinja"}"#),
        told(422, r#"[{"error": "a list of one"}]"#),
        told(418, "plain words\nover lines\u{202e}"),
    ];
    insta::assert_snapshot!(all.join("\n"), @r#"
    Unauthorized: model local answered with status 401: Incorrect API key provided: [redacted:key]
      hint: the key in LOCAL_KEY is not accepted at http://127.0.0.1:8080/v1
    Unauthorized: model local answered with status 403 and nothing more
      hint: the key in LOCAL_KEY is not accepted at http://127.0.0.1:8080/v1
    Refused: model local answered with status 404 and nothing more
      hint: nothing answers at http://127.0.0.1:8080/v1/chat/completions; the address usually ends in /v1
    Busy: model local answered with status 429: slow down
      hint: it takes no more requests now; try again
    Refused: model local answered with status 429: You exceeded your current quota
      hint: the account at this provider has nothing left to spend
    Busy: model local answered with status 503: Loading model
    Unsupported: model local answered with status 400: response_format json_schema is not supported
      hint: it cannot be held to this schema; let it call tools another way (tool_calling = "native" or "text")
    Unsupported: model local answered with status 400: the request exceeds the available context size
      hint: the conversation is longer than the model can read; begin a new one or show it less
    Unsupported: model local answered with status 400: tools param requires --jinja
      hint: it cannot call tools by itself; let it call them another way (tool_calling = "text" or "schema")
    Unsupported: model local answered with status 422: a list of one
    Refused: model local answered with status 418: plain words over lines\u{202e}
    "#);
}

#[test]
fn secrets_are_not_repeated() {
    let said =
        "keys: zz-very-odd-key, other-odd-key and sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH";
    let error = spokesman().complain(&Complaint::in_body(400, said));
    let everything = format!("{error} {error:?} {:?}", spokesman());
    for secret in ["odd-key", "sk-proj-abc", "abcd1234"] {
        assert!(!everything.contains(secret), "{everything}");
    }
}

#[test]
fn long_complaints_are_cut() {
    let error = spokesman().complain(&Complaint::in_body(400, &"x ".repeat(10_000)));
    assert!(error.message.len() < 400);
}
