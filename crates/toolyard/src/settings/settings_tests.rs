//! Valid and invalid settings.

use std::path::Path;

use toolyard_agent::OpenWorldRule;
use toolyard_hub::Budget;
use toolyard_hub::Surface;

use std::time::Duration;

use super::*;

fn parse(text: &str) -> Result<Settings, String> {
    Settings::parse(text, Path::new("toolyard.toml")).map_err(|error| error.to_string())
}

#[test]
fn empty_settings_are_the_defaults() {
    assert_eq!(parse(""), Ok(Settings::default()));
}

#[test]
fn settings_of_each_section_take_effect() {
    let settings = parse(
        r#"
        [call]
        timeout = "1m 30s"
        [routing]
        prefer = "mcp-first"
        pin = { search_web = "native" }
        [equivalent]
        search = ["brave", "tavily"]
        [hints.excel.read_data_from_excel]
        read_only = true
        [[capability]]
        tags = ["kitchen"]
        keywords = ["recipe*"]
        [time]
        zone = "Asia/Shanghai"
        [web_search]
        engine = "brave"
        key = "${BRAVE_API_KEY}"
        [skills]
        folders = ["skills"]
        [agents.clerk]
        instructions = "Ask before you overwrite cells."
        tools = ["read_*", "*@excel"]
        language = "zh"
        "#,
    )
    .unwrap();
    assert_eq!(settings.call.timeout().as_secs(), 90);
    assert!(settings.routing_rules().is_pinned("search_web", &"native".into()));
    assert!(settings.routing_rules().is_declared_equivalent("search", &"tavily".into()));
    assert_eq!(
        settings.routing_rules().hints_for("read_data_from_excel", &"excel".into()).read_only,
        Some(true)
    );
    assert_eq!(settings.capability_table().extract("x", "Recipes"), ["kitchen".into()]);
    let clerk = settings.agents["clerk"].config("clerk");
    assert!(clerk.capabilities.enable_tool_calling && clerk.can_use("apply_formula", "excel"));
    assert_eq!(clerk.language, toolyard_agent::Language::Chinese);
}

#[test]
fn an_unknown_key_is_reported_with_its_line() {
    let error = parse("[time]\nzoen = 1\n").unwrap_err();
    insta::assert_snapshot!(error, @r"
    failed to parse toolyard.toml: TOML parse error at line 2, column 1
      |
    2 | zoen = 1
      | ^^^^
    unknown field `zoen`, expected `zone`
    ");
}

#[test]
fn durations_are_parsed_with_units() {
    assert_eq!("500ms".parse::<DurationSetting>().unwrap().0, Duration::from_millis(500));
    assert_eq!("2m".parse::<DurationSetting>().unwrap().0, Duration::from_secs(120));
    assert!(
        "0s".parse::<DurationSetting>().is_err()
            && "-3s".parse::<DurationSetting>().is_err()
            && "soon".parse::<DurationSetting>().is_err()
    );
}

#[test]
fn a_literal_key_is_rejected_and_not_repeated_in_the_error() {
    let settings = parse("[web_search]\nengine = \"tavily\"\nkey = \"tvly-123\"\n").unwrap();
    let error = settings.search_engine(|_| None).unwrap_err().to_string();
    assert!(error.contains("secrets do not belong in files") && !error.contains("tvly-123"), "{error}");
}

#[test]
fn an_unset_variable_is_reported() {
    let settings = parse("[web_search]\nengine = \"brave\"\nkey = \"${BRAVE}\"\n").unwrap();
    assert!(settings.search_engine(|_| None).unwrap_err().to_string().contains("`BRAVE` is not set"));
    assert!(settings.search_engine(|name| (name == "BRAVE").then(|| "k".to_owned())).is_ok());
}

#[test]
fn the_store_is_a_path_a_url_or_a_reference() {
    let location = |text: &str, variable: Option<&str>| {
        let settings = parse(&format!("store = \"{text}\"")).unwrap();
        let result = settings.store_location(Path::new("/base"), |_| variable.map(str::to_owned));
        result.map(|location| location.unwrap().to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(location("my.db", None), Ok("/base/my.db".to_owned()));
    assert_eq!(location("postgres://u:secret@h/d", None), Ok("postgres://…@h/d".to_owned()));
    assert_eq!(location("${DB}", Some("postgres://h/d")), Ok("postgres://h/d".to_owned()));
    assert!(location("${DB}", None).unwrap_err().contains("`DB` is not set"));
    assert_eq!(location("/var/lib/toolyard.db", None), Ok("/var/lib/toolyard.db".to_owned()));
    assert_eq!(location("data/toolyard.db", None), Ok("/base/data/toolyard.db".to_owned()));
    for misspelt in ["mysql://h/d", "postgres//h/d", "postgres:/h/d", "Postgres://h/d", "sqlite:my.db"] {
        assert!(location(misspelt, None).unwrap_err().contains("expected `postgres://"), "{misspelt}");
    }
}

/// The schema file in the repository matches the code; `UPDATE_SCHEMA=1 cargo test` regenerates it.
#[test]
fn the_schema_file_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/toolyard.schema.json");
    let generated = format!("{}\n", serde_json::to_string_pretty(&Settings::json_schema()).unwrap());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == generated, "schema/toolyard.schema.json is out of date: run `just schema`");
}

#[test]
fn profiles_inherit_unset_keys_from_serve() {
    let settings = parse(
        r#"
        [serve]
        surface = "search"
        output_budget = 9000
        [serve.profiles.office]
        surface = "full"
        servers = ["excel"]
        deny = ["delete_*"]
        [serve.profiles.home]
        tools = ["get_time"]
        "#,
    )
    .unwrap();
    let serve = &settings.serve;
    assert_eq!(serve.main_profile().surface, Surface::Search);
    let office = serve.profile("office").unwrap();
    assert_eq!((office.surface, office.budget), (Surface::Full, Budget::Characters(9000)));
    assert!(office.allows("read", "excel") && !office.allows("delete_row", "excel"));
    let home = serve.profile("home").unwrap();
    assert_eq!((home.surface, home.budget), (Surface::Search, Budget::Characters(9000)));
    let unlimited = parse("[serve]\noutput_budget = 0").unwrap().serve.main_profile();
    assert_eq!(unlimited.budget, Budget::Unlimited);
    let names: Vec<String> =
        serve.profiles().unwrap().iter().map(|profile| profile.name.to_string()).collect();
    assert_eq!(names, ["home", "office"]);
    let unknown = serve.profile("ofice").unwrap_err().to_string();
    assert_eq!(unknown, "[serve] profile `ofice` does not exist; known profiles: home, office");
}

#[test]
fn the_call_timeout_holds_for_clients() {
    let timeouts = |text: &str| {
        let settings = parse(text).unwrap();
        let serve = settings.serve.clone().with_call_timeout(&settings.call);
        (serve.main_profile().timeout.as_secs(), serve.profile("office").unwrap().timeout.as_secs())
    };
    assert_eq!(timeouts("[call]\ntimeout = \"10s\"\n[serve.profiles.office]"), (10, 10));
    assert_eq!(timeouts("[serve.profiles.office]"), (120, 120), "that of `toolyard call` is shorter");
    assert_eq!(parse("").unwrap().call.timeout().as_secs(), 30);
}

#[test]
fn the_lease_on_runs_is_bounded() {
    let lease = |text: &str| parse(text).unwrap().serve.run_lease();
    assert_eq!(lease("").unwrap().as_secs(), 30);
    assert_eq!(lease("[serve]\nrun_lease = \"1m\"").unwrap().as_secs(), 60);
    for refused in ["500ms", "61s", "1h"] {
        let error = lease(&format!("[serve]\nrun_lease = \"{refused}\"")).unwrap_err().to_string();
        assert_eq!(error, "[serve] run_lease: expected a duration from 1s to 60s", "{refused}");
    }
}

#[test]
fn secrets_of_serve_must_be_references() {
    let serve = |text: &str| parse(text).unwrap().serve;
    let variable = |name: &str| match name {
        "TOKEN" => Some("a-token-that-is-long-enough".to_owned()),
        "SHORT" => Some("short".to_owned()),
        _ => None,
    };
    let token = |text: &str| serve(text).token(variable).map_err(|error| error.to_string());
    assert_eq!(token(""), Ok(None));
    assert_eq!(token("[serve]\ntoken = \"${TOKEN}\""), Ok(Some("a-token-that-is-long-enough".to_owned())));
    assert!(token("[serve]\ntoken = \"${SHORT}\"").unwrap_err().contains("at least 16 characters"));
    assert!(token("[serve]\ntoken = \"${NOPE}\"").unwrap_err().contains("`NOPE` is not set"));
    assert!(token("[serve]\ntoken = \"hunter2\"").unwrap_err().contains("do not belong in files"));
    let short = parse("[telemetry]\nmetrics_token = \"${SHORT}\"").unwrap().telemetry;
    assert_eq!(
        short.metrics_token(variable).unwrap_err().to_string(),
        "[telemetry] metrics_token: a token needs at least 16 characters"
    );
}

#[test]
fn a_model_needs_only_url_and_name() {
    let settings = parse("[models.local]\nurl = \"http://127.0.0.1:11434/v1\"\nmodel = \"qwen\"\n").unwrap();
    let local = &settings.models["local"];
    assert_eq!((local.provider.as_str(), local.tool_calling), ("openai", ToolCallingSetting::Auto));
    assert!(local.secrets("local", |_| None).unwrap().key.is_none());
    assert!(parse("[models.local]\nurl = \"http://x/v1\"\n").unwrap_err().contains("missing field `model`"));
}

#[test]
fn secrets_of_models_must_be_references() {
    let secrets = |text: &str, variable: Option<&str>| {
        let settings = parse(&format!("[models.gpt]\nmodel = \"m\"\n{text}")).unwrap();
        let found = settings.models["gpt"].secrets("gpt", |_| variable.map(str::to_owned));
        found.map_err(|error| error.to_string())
    };
    let key = secrets("key = \"${KEY}\"", Some("s3cret")).unwrap();
    assert_eq!(key.key.as_ref().unwrap().expose(), "s3cret");
    assert!(!format!("{key:?}").contains("s3cret"));
    let literal = secrets("key = \"sk-123\"", Some("s3cret")).unwrap_err();
    assert!(literal.contains("do not belong in files") && !literal.contains("sk-123"), "{literal}");
    let header = secrets("headers = { X-Api-Key = \"abc\" }", Some("s3cret")).unwrap_err();
    assert!(header.contains("headers.X-Api-Key") && !header.contains("abc"), "{header}");
    assert!(secrets("headers = { X-Title = \"toolyard\" }", Some("s3cret")).is_ok());
    assert_eq!(
        secrets("key = \"${KEY}\"", None).unwrap_err(),
        "[models.gpt] key: the environment variable `KEY` is not set"
    );
}

#[test]
fn limits_of_agents_become_run_limits() {
    let settings = parse("[agents.clerk]\nlimits = { tool_calls = 3, cost = 0.5, time = \"2m\" }").unwrap();
    let limits = settings.agents["clerk"].limits.run_limits();
    assert_eq!((limits.calls, limits.cost_micros, limits.time.as_secs()), (3, 500_000, 120));
    assert_eq!(limits.steps, toolyard_agent::RunLimits::default().steps);
}

#[test]
fn the_operators_word_on_data_that_leaves_wins() {
    let rules = |operator: &str, project: &str| {
        let layer = |text: &str| {
            SettingsLayer::parse(&format!("[approvals]\n{text}"), Path::new("toolyard.toml")).unwrap()
        };
        SettingsLayer::merge([&layer(operator), &layer(project)]).unwrap().approvals.rules()
    };
    let open_world = |operator, project| rules(operator, project).open_world;
    let (ask, allow) = ("open_world = \"ask\"", "open_world = \"allow\"");
    assert_eq!(open_world("", ""), OpenWorldRule::Ask, "by default");
    assert_eq!(open_world(allow, ""), OpenWorldRule::Allow);
    assert_eq!(open_world(ask, allow), OpenWorldRule::Ask);
    assert_eq!(open_world("", allow), OpenWorldRule::Allow, "the project is trusted");
    assert_eq!(rules("public = [\"a\"]", "public = [\"b\"]").public, ["a", "b"]);
    let hinted = parse("[hints.web.fetch]\nopen_world = true").unwrap();
    assert_eq!(hinted.routing_rules().hints_for("fetch", &"web".into()).open_world, Some(true));
}
