//! What may stand in `[servers.NAME]`, what comes of it, and what is said when it makes no sense.

use std::time::Duration;

use super::*;

fn read(text: &str) -> ServerSettings {
    toml::from_str(text).unwrap()
}

fn problem(text: &str) -> String {
    read(text).into_config("excel", Path::new("/etc/toolyard")).unwrap_err().to_string()
}

#[test]
fn a_program_is_read_whole() {
    let settings = read(
        r#"
        command = "uvx"
        args = ["excel-mcp-server", "stdio"]
        cwd = "sheets"
        inherit = ["LANG"]
        trusted = true
        exclusive = true
        era = "legacy"
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
    assert_eq!(config.era, Some(ProtocolEra::Legacy));
    assert!(config.trusted && config.exclusive && config.enabled && !config.strict);
    assert!(!config.tools.admits("delete_sheet") && config.tools.admits("read_sheet"));
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
fn an_address_is_read_with_its_kind() {
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
fn a_program_with_an_address_is_started_when_the_address_does_not_answer() {
    let read = |text: &str| read(text).into_config("excel", Path::new("/yard")).unwrap();
    let both = read("command = 'excel-mcp-server'\nargs = ['sse']\nurl = 'http://127.0.0.1:8000/sse'");
    assert!(matches!(both.transport, TransportConfig::Http { .. }));
    assert!(matches!(&both.program, Some(TransportConfig::Stdio { args, .. }) if args == &["sse"]));
    let alone = read("url = 'http://127.0.0.1:8000/sse'");
    assert_eq!(alone.program, None);
    assert_ne!(alone.fingerprint(), both.fingerprint(), "another program is another server");
}

#[test]
fn nonsense_is_told_with_what_to_do() {
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
    insta::assert_snapshot!(texts.map(problem).join("\n"), @r#"
    server `excel` has neither `command` nor `url`: give the program to start or the address to ask
    server `excel`: `headers` has no meaning beside `command`: take one of them away
    server `excel`: `transport = "stdio"` has no meaning beside `url`: take one of them away
    server `excel`: `transport = "sse"` has no meaning beside `command`: take one of them away
    server `excel`: `command` is empty: give the program to start
    server `excel`: `url` must begin with `http://` or `https://`
    server `excel`: `url` must begin with `http://` or `https://`
    server `excel`: args[0]: `${input:…}` is asked for by VS Code only: set an environment variable and write `${VAR}`
    server `excel`: env.A: `${env:VAR}` is written `${VAR}` here
    server `excel`: env.A: a `${` has no `}`; a dollar sign before a brace is written `$$`
    server `excel`: `A=B` cannot be the name of an environment variable
    server `excel`: `a�b` cannot be the name of a header
    "#);
    let name = read("command = 'a'").into_config("My\u{1b}[31m Server", Path::new("/")).unwrap_err();
    insta::assert_snapshot!(name, @"`My�[31m Server` is no name for a server: it may hold only `a` to `z`, digits, `-` and `_`, and begins with a letter or digit; `my-31m-server` would be one");
}

#[test]
fn unknown_fields_are_refused() {
    assert!(toml::from_str::<ServerSettings>("comand = 'a'").is_err());
    assert!(toml::from_str::<ServerSettings>("url = 'a'\noauth = {clientid = 'x'}").is_err());
}

#[test]
fn literal_secrets_are_warned_about_and_used() {
    let settings = read(
        "command = 'npx'\nargs = ['-y', 'some-server', '--api-key', 'swordfish']\n\
         env = {GITHUB_TOKEN = 'swordfish', LANG = 'C', OTHER = '${OTHER}'}",
    );
    let warnings = settings.warnings("github").join("\n");
    assert!(!warnings.contains("swordfish"));
    insta::assert_snapshot!(warnings, @"
    server `github`: env.GITHUB_TOKEN looks like a secret that stands in the file: write `${GITHUB_TOKEN}` and set that variable
    server `github`: args[3] looks like a secret that stands in the file: write `${GITHUB_API_KEY}` and set that variable
    ");
    assert!(!format!("{settings:?}").contains("swordfish"));
    settings.into_config("github", Path::new("/")).unwrap();
}

#[test]
fn the_fingerprint_is_of_references_and_nothing_moves_unseen() {
    let fingerprint = |text: &str| read(text).into_config("a", Path::new("/")).unwrap().fingerprint();
    let one = fingerprint("command = 'a'\nargs = ['b', 'c']");
    assert_eq!(one, fingerprint("command = 'a'\nargs = ['b', 'c']\ntrusted = true"));
    for other in
        ["command = 'a'\nargs = ['b c']", "command = 'a'\nargs = ['b']\ninherit = ['c']", "command = 'a'"]
    {
        assert_ne!(one, fingerprint(other), "{other}");
    }
}

#[test]
fn the_schema_names_every_field_and_no_more() {
    let schema = schemars::schema_for!(ServerSettings).to_value();
    let fields: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    insta::assert_snapshot!(fields.join(" "), @"command args cwd inherit url transport enabled trusted exclusive strict era startup_timeout call_timeout idle_stop tools without_tools env headers oauth");
    assert_eq!(schema["additionalProperties"], false);
}
