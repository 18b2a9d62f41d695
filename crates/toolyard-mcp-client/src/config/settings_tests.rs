//! Parsing of `[servers.NAME]`, and the messages for invalid settings.

use std::time::Duration;

use super::*;

fn read(text: &str) -> ServerSettings {
    toml::from_str(text).unwrap()
}

fn error_message(text: &str) -> String {
    read(text).into_config("excel", Path::new("/etc/toolyard")).unwrap_err().to_string()
}

#[test]
fn all_fields_of_a_program_are_read() {
    let settings = read(
        r#"
        command = "uvx"
        args = ["excel-mcp-server", "stdio"]
        cwd = "sheets"
        inherit = ["LANG"]
        trusted = true
        exclusive = true
        revision = "legacy"
        startup_timeout = "90s"
        call_timeout = "2m"
        idle_stop = "never"
        without_tools = ["delete_sheet"]
        env = { TOKEN = "${TOKEN}" }
        "#,
    );
    let config = settings.clone().into_config("excel", Path::new("/etc/to$olyard")).unwrap();
    assert_eq!(config.startup_timeout, Duration::from_secs(90));
    assert_eq!(config.call_timeout, Some(Duration::from_secs(120)));
    assert_eq!(config.idle_stop, None);
    assert_eq!(config.revision_family, Some(RevisionFamily::Legacy));
    assert!(
        config.trusted && config.exclusive && config.enabled && config.hold_new_tools == HeldTools::Added
    );
    assert!(!config.tools.allows("delete_sheet") && config.tools.allows("read_sheet"));
    assert_eq!(config.variables().into_iter().collect::<Vec<_>>(), ["LANG", "TOKEN"]);
    let resolved = config.resolve(|name| (name == "TOKEN").then(|| "hunter2".to_owned())).unwrap();
    let TransportConfig::Stdio { env, cwd, .. } = &resolved.transport else { panic!("{resolved:?}") };
    assert_eq!(env["TOKEN"], "hunter2");
    assert_eq!(cwd.as_deref(), Some(Path::new("/etc/to$olyard/sheets")));
    assert!(!format!("{resolved:?} {config:?}").contains("hunter2"));
    let again: ServerSettings = toml::from_str(&toml::to_string(&settings).unwrap()).unwrap();
    assert_eq!(again, settings);
}

#[test]
fn the_transport_of_a_url_is_read() {
    let kind = |transport: &str| {
        let text = format!("url = \"https://example.org/mcp\"\ntransport = \"{transport}\"");
        match read(&text).into_config("web", Path::new("/")).unwrap().transport {
            TransportConfig::Http { kind, .. } => kind,
            other @ TransportConfig::Stdio { .. } => panic!("{other:?}"),
        }
    };
    assert_eq!(kind("auto"), HttpKind::Auto);
    assert_eq!(kind("http"), HttpKind::Streamable);
    assert_eq!(kind("sse"), HttpKind::Sse);
}

#[test]
fn a_program_with_a_url_is_a_fallback() {
    let read = |text: &str| read(text).into_config("excel", Path::new("/yard")).unwrap();
    let both = read("command = 'excel-mcp-server'\nargs = ['sse']\nurl = 'http://127.0.0.1:8000/sse'");
    assert!(matches!(both.transport, TransportConfig::Http { .. }));
    assert!(matches!(&both.program, Some(TransportConfig::Stdio { args, .. }) if args == &["sse"]));
    let alone = read("url = 'http://127.0.0.1:8000/sse'");
    assert_eq!(alone.program, None);
    assert_ne!(alone.fingerprint(), both.fingerprint(), "another program is another server");
}

#[test]
fn invalid_settings_have_helpful_messages() {
    let texts = [
        "",
        "command = 'a'\nheaders = {A = 'b'}",
        "url = 'https://example.org'\ntransport = 'stdio'",
        "command = 'a'\ntransport = 'sse'",
        "command = ' '",
        "url = 'ftp://example.org'",
        "url = 'unix:///run/x.sock#/mcp'",
        "command = 'a'\nargs = ['${input:token}']",
        "command = 'a'\nenv = {A = '${env:B}'}",
        "command = 'a'\nenv = {A = '${B'}",
        "command = 'a'\nenv = {'A=B' = 'c'}",
        "url = 'https://example.org'\nheaders = {\"a\\nb\" = 'c'}",
    ];
    insta::assert_snapshot!(texts.map(error_message).join("\n"), @r#"
    server `excel` has neither `command` nor `url`: set the program to start or the URL
    server `excel`: `headers` conflicts with `command`: remove one of them
    server `excel`: `transport = "stdio"` conflicts with `url`: remove one of them
    server `excel`: `transport = "sse"` conflicts with `command`: remove one of them
    server `excel`: `command` is empty: set the program to start
    server `excel`: `url` must start with `http://` or `https://`
    server `excel`: `url` must start with `http://` or `https://`
    server `excel`: args[0]: `${input:…}` works only in VS Code: set an environment variable and write `${VAR}`
    server `excel`: env.A: write `${VAR}` instead of `${env:VAR}`
    server `excel`: env.A: `${` without `}`; write `$$` for a dollar sign before a brace
    server `excel`: `A=B` is not a valid environment variable name
    server `excel`: `a�b` is not a valid header name
    "#);
    let name = read("command = 'a'").into_config("My\u{1b}[31m Server", Path::new("/")).unwrap_err();
    insta::assert_snapshot!(name, @"`My�[31m Server` is not a valid server name: only `a` to `z`, digits, `-` and `_` are allowed, starting with a letter or digit; try `my-31m-server`");
}

#[test]
fn unknown_fields_are_rejected() {
    assert!(toml::from_str::<ServerSettings>("comand = 'a'").is_err());
    assert!(toml::from_str::<ServerSettings>("url = 'a'\noauth = {clientid = 'x'}").is_err());
}

#[test]
fn literal_secrets_are_accepted_with_a_warning() {
    let settings = read(
        "command = 'npx'\nargs = ['-y', 'some-server', '--api-key', 'swordfish']\n\
         env = {GITHUB_TOKEN = 'swordfish', LANG = 'C', OTHER = '${OTHER}'}",
    );
    let warnings = settings.warnings("github").join("\n");
    assert!(!warnings.contains("swordfish"));
    insta::assert_snapshot!(warnings, @"
    server `github`: env.GITHUB_TOKEN looks like a secret: write `${GITHUB_TOKEN}` instead and set that variable
    server `github`: args[3] looks like a secret: write `${GITHUB_API_KEY}` instead and set that variable
    ");
    assert!(!format!("{settings:?}").contains("swordfish"));
    settings.into_config("github", Path::new("/")).unwrap();
}

#[test]
fn the_fingerprint_covers_every_value_and_its_position() {
    let fingerprint = |text: &str| read(text).into_config("a", Path::new("/")).unwrap().fingerprint();
    let original = fingerprint("command = 'a'\nargs = ['b', 'c']");
    assert_eq!(original, fingerprint("command = 'a'\nargs = ['b', 'c']\ntrusted = true"));
    for other in
        ["command = 'a'\nargs = ['b c']", "command = 'a'\nargs = ['b']\ninherit = ['c']", "command = 'a'"]
    {
        assert_ne!(original, fingerprint(other), "{other}");
    }
}

#[test]
fn the_schema_lists_every_field() {
    let schema = schemars::schema_for!(ServerSettings).to_value();
    let fields: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    insta::assert_snapshot!(fields.join(" "), @"command args cwd inherit url transport enabled trusted exclusive stateless isolation hold_new_tools revision startup_timeout call_timeout idle_stop tools without_tools env headers oauth");
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn isolation_is_one_of_three_names() {
    let isolation = |text: &str| {
        let settings: Result<ServerSettings, _> = toml::from_str(&format!("command = 'a'\n{text}"));
        settings.ok().map(|settings| settings.into_config("a", Path::new("/")).unwrap().isolation)
    };
    assert_eq!(isolation(""), Some(None));
    assert_eq!(isolation("isolation = 'shared'"), Some(Some(IsolationSetting::Shared)));
    assert_eq!(isolation("isolation = 'caller'"), Some(Some(IsolationSetting::Caller)));
    assert_eq!(isolation("isolation = 'session'"), Some(Some(IsolationSetting::Session)));
    assert_eq!(isolation("isolation = 'user'"), None);
}

#[test]
fn exchanging_tokens_of_callers_needs_a_client_and_an_issuer() {
    let check = |oauth: &str| {
        let text = format!("url = 'https://example.org/mcp'\noauth = {{{oauth}}}");
        read(&text).into_config("a", Path::new("/"))
    };
    let exchange = "per_caller = 'token_exchange', client_id = 'a'";
    let id_jag = "per_caller = 'id_jag', client_id = 'a', issuer = 'https://as.example'";
    check(&format!("{exchange}, issuer = 'https://as.example', audience = 'notes'")).unwrap();
    let accepted =
        check(&format!("{id_jag}, id_jag = {{client_id = '${{ID}}', client_secret = '${{SECRET}}'}}"))
            .unwrap();
    assert_eq!(accepted.variables().into_iter().collect::<Vec<_>>(), ["ID", "SECRET"]);
    let resolved = accepted.resolve(|name| Some(format!("value of {name}"))).unwrap().oauth.unwrap();
    let client = resolved.id_jag.clone().unwrap();
    assert_eq!(
        (&*client.client_id, client.client_secret.as_deref()),
        ("value of ID", Some("value of SECRET"))
    );
    assert!(!format!("{resolved:?} {client:?}").contains("value of"));
    for (refused, expected) in [
        (exchange.to_owned(), "`oauth.issuer`"),
        ("per_caller = 'token_exchange', issuer = 'https://as.example'".to_owned(), "`oauth.client_id`"),
        (id_jag.to_owned(), "`oauth.id_jag`"),
        (format!("{id_jag}, id_jag = {{client_id = 'b'}}, audience = 'c'"), "`oauth.audience`"),
        ("per_caller = 'sign_in', id_jag = {client_id = 'b'}".to_owned(), "`oauth.id_jag`"),
        ("audience = 'c'".to_owned(), "`oauth.audience`"),
    ] {
        let error = check(&refused).unwrap_err().to_string();
        assert!(error.contains(expected), "{refused}: {error}");
    }
}

#[test]
fn only_headers_of_your_own_may_depend_on_the_caller() {
    let check = |text: &str| read(text).into_config("a", Path::new("/"));
    let url = "url = 'https://example.org/mcp'\n";
    let accepted =
        check(&format!("{url}headers = {{X-User = '${{caller:subject}}', X-Key = '${{KEY}}'}}")).unwrap();
    assert_eq!(accepted.variables().into_iter().collect::<Vec<_>>(), ["KEY"], "a caller is no variable");
    let resolved = accepted.resolve(|name| (name == "KEY").then(|| "value".to_owned())).unwrap();
    assert_eq!(resolved.caller_headers.len(), 1);
    let TransportConfig::Http { headers, .. } = resolved.transport else { panic!("not HTTP") };
    assert_eq!(headers.into_iter().collect::<Vec<_>>(), [("X-Key".to_owned(), "value".to_owned())]);
    for refused in [
        "command = '${caller:subject}'".to_owned(),
        "command = 'a'\nenv = {USER = '${caller:subject}'}".to_owned(),
        "url = 'https://example.org/${caller:subject}'".to_owned(),
        format!("{url}headers = {{Host = '${{caller:subject}}'}}"),
        format!("{url}headers = {{Mcp-Session-Id = '${{caller:subject}}'}}"),
        format!("{url}headers = {{X-User = '${{caller:token}}'}}"),
        format!("{url}oauth = {{client_id = '${{caller:subject}}'}}"),
    ] {
        check(&refused).unwrap_err();
    }
}
