//! Expansion of references; invalid references; no value is displayed.

use proptest::prelude::*;

use super::*;
use crate::config::{HttpKind, McpServerConfig, TransportConfig};

fn lookup(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("hunter2".to_owned()),
        "EMPTY" => Some(String::new()),
        "BROKEN" => Some("a\nX-Evil: b".to_owned()),
        "secret:TOKEN" => Some("stored".to_owned()),
        "file:/run/secrets/a b:-c" => Some("from a file".to_owned()),
        _ => None,
    }
}

fn expand(text: &str) -> Result<String, String> {
    let template = Template::parse(text).map_err(|problem| problem.to_string())?;
    template.expand(lookup).map(SecretText::into_exposed).map_err(|UnsetVariable(name)| name)
}

#[test]
fn references_are_expanded() {
    let cases = [
        ("Bearer ${TOKEN}", "Bearer hunter2"),
        ("${TOKEN}${TOKEN}", "hunter2hunter2"),
        ("${UNSET:-else}", "else"),
        ("${UNSET:-}", ""),
        ("${UNSET:-a:-b}", "a:-b"),
        ("${EMPTY:-else}", "else"),
        ("${EMPTY}", ""),
        ("$${TOKEN}", "${TOKEN}"),
        ("$$${TOKEN}", "$hunter2"),
        ("pa$$word", "pa$word"),
        ("costs 5$", "costs 5$"),
        ("$TOKEN", "$TOKEN"),
        ("Bearer ${secret:TOKEN}", "Bearer stored"),
        ("${file:/run/secrets/a b:-c}", "from a file"),
        ("", ""),
    ];
    for (text, value) in cases {
        assert_eq!(expand(text).as_deref(), Ok(value), "{text}");
    }
    assert_eq!(expand("${UNSET}"), Err("UNSET".to_owned()));
    assert_eq!(expand("${file:~/token}"), Err("file:~/token".to_owned()));
    for wrong in [
        "${",
        "${TOKEN",
        "${}",
        "${9}",
        "${a b}",
        "${A:-${B}}",
        "${env:A}",
        "${input:a}",
        "${userHome}/x",
        "${secret:}",
        "${secret:a-b}",
        "${secret:A:-default}",
        "${file:}",
        "${file:token}",
        "${file:../token}",
        "${file:/a/${HOME}}",
    ] {
        assert!(Template::parse(wrong).is_err(), "{wrong}");
    }
}

fn server(url: &str, header: &str) -> McpServerConfig {
    let headers = [("Authorization".to_owned(), header.to_owned())].into();
    McpServerConfig::new(
        "github",
        TransportConfig::Http { url: url.to_owned(), headers, kind: HttpKind::Auto },
    )
}

#[test]
fn errors_name_the_variable_without_values() {
    let message = |url, header| server(url, header).resolve(lookup).unwrap_err().to_string();
    let messages = [
        message("https://example.org", "Bearer ${GITHUB_TOKEN}"),
        message("https://example.org", "Bearer ${secret:GITHUB_TOKEN}"),
        message("https://example.org", "Bearer ${file:/run/secrets/github}"),
        message("https://example.org", "Bearer ${file:github}"),
        message("https://example.org", "Bearer ${BROKEN}"),
        message("${TOKEN}", ""),
        message("https://${EMPTY}/", ""),
        message("https://example.org", "Bearer ${input:x}"),
    ]
    .join("\n");
    assert!(!messages.contains("hunter2") && !messages.contains("Evil"));
    insta::assert_snapshot!(messages, @"
    server `github` needs the environment variable `GITHUB_TOKEN` (headers.Authorization), which is not set
    server `github` needs the stored secret `GITHUB_TOKEN` (headers.Authorization), which is not available
    server `github` needs the file `/run/secrets/github` (headers.Authorization), which cannot be read
    server `github`: headers.Authorization: the path in `${file:PATH}` must start with `/` or `~/`
    server `github`: headers.Authorization contains a line break or another invalid character
    server `github`: url is not a URL that starts with `http://` or `https://`
    server `github`: url is not a URL that starts with `http://` or `https://`
    server `github`: headers.Authorization: `${input:…}` works only in VS Code: set an environment variable and write `${VAR}`
    ");
}

#[test]
fn debug_output_contains_no_values() {
    let resolved = server("https://example.org/?key=${TOKEN}", "Bearer ${TOKEN}").resolve(lookup).unwrap();
    insta::assert_snapshot!(format!("{resolved:?}"), @r#"ResolvedServer { transport: Http { url: https://example.org/…, headers: {"Authorization"}, kind: Auto }, caller_headers: [], program: None, oauth: None }"#);
    assert_eq!(
        format!("{:?}", Template::parse("a${TOKEN}b").unwrap().expand(lookup).unwrap()),
        "SecretText(…)"
    );
    assert_eq!(format!("{:?}", Template::parse("secret${TOKEN:-secret}").unwrap()), "[\"TOKEN\"]");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn parsed_templates_round_trip(text in "([$]|[{}:-]|[A-Z_]{1,3}|.){0,24}") {
        if let Ok(template) = Template::parse(&text) {
            let again = Template::parse(&template.to_string());
            prop_assert!(again.as_ref() == Ok(&template));
            prop_assert_eq!(template.expand(|_| Some("x".into())), again.unwrap().expand(|_| Some("x".into())));
        }
    }

    #[test]
    fn escaped_text_expands_to_itself(text in "([$]|[{}]|.){0,24}") {
        prop_assert_eq!(expand(&Template::escape(&text)), Ok(text));
    }

    #[test]
    fn values_are_not_expanded_again(value in "([$]|[{}]|.){0,24}") {
        let template = Template::parse("a${VAR}b").unwrap();
        let expanded = template.expand(|_| Some(value.clone())).unwrap();
        prop_assert_eq!(expanded.expose(), format!("a{value}b"));
    }

    #[test]
    fn the_first_unset_variable_is_named(names in proptest::collection::vec("[A-Z]{1,4}", 1..4)) {
        let text: String = names.iter().map(|name| format!("x${{{name}}}")).collect();
        prop_assert_eq!(Template::parse(&text).unwrap().expand(|_| None), Err(UnsetVariable(names[0].clone())));
    }
}
