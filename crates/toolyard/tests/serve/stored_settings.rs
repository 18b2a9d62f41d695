//! Settings in the store: running gateways follow them, every change is a version, and versions can be restored.

use serde_json::json;

use crate::{
    client::{HttpGateway, modern_params, send, tool_names},
    test_home::{TestHome, named_tool, wait_until},
};

const SETTINGS: &str = "config/toolyard/toolyard.toml";

/// Adds a server to the settings in the store.
fn add_stored(home: &TestHome, server: &str) -> String {
    home.set_tools(server, &[named_tool(&format!("{server}_tool"))]);
    let command = home.server_command(server);
    let mut arguments = vec!["servers", "add", "--store", server, "--"];
    arguments.extend(command.iter().map(String::as_str));
    home.run(&arguments)
}

/// Lists tools until one is there, or is gone.
async fn has_tool(gateway: &HttpGateway, tool: &str, is_wanted: bool) -> bool {
    for _ in 0..200 {
        let list = send(gateway.build_request("", "tools/list", &modern_params(json!({})))).await;
        if tool_names(&list.body).contains(&tool) == is_wanted {
            return is_wanted;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    !is_wanted
}

#[tokio::test]
async fn running_gateways_follow_the_settings_in_the_store() {
    let home = TestHome::new();
    home.write(SETTINGS, "stored_settings = true\n");
    let (one, other) = (HttpGateway::start(&home, &[]), HttpGateway::start(&home, &[]));
    let added = add_stored(&home, "shared");
    assert!(added.contains("added shared: settings in the store, version 1"), "{added}");
    assert!(added.contains("gateways of this store follow within seconds"), "{added}");
    assert!(has_tool(&one, "shared_tool", true).await && has_tool(&other, "shared_tool", true).await);
    assert_eq!(std::fs::read_to_string(home.path(SETTINGS)).unwrap(), "stored_settings = true\n");
    let shown = home.run(&["settings", "show"]);
    assert!(
        shown.lines().any(|line| line.contains("servers.shared.command") && line.ends_with("store")),
        "{shown}"
    );

    let without_flag = home.run(&["servers", "disable", "shared"]);
    assert!(
        without_flag.contains("hint: this server is in the settings of the store: add --store"),
        "{without_flag}"
    );
    home.run(&["servers", "disable", "--store", "shared"]);
    assert!(!has_tool(&one, "shared_tool", false).await);
    let restored = home.run(&["settings", "restore", "1"]);
    assert!(restored.contains("version 3"), "{restored}");
    assert!(has_tool(&one, "shared_tool", true).await);
    home.run(&["servers", "remove", "--store", "shared"]);
    assert!(!has_tool(&other, "shared_tool", false).await);

    let history: serde_json::Value =
        serde_json::from_str(&home.run(&["settings", "history", "--json"])).unwrap();
    let changes: Vec<_> =
        history.as_array().unwrap().iter().map(|entry| entry["change"].as_str().unwrap()).collect();
    assert_eq!(
        changes,
        ["server shared removed", "version 1 restored", "server shared disabled", "server shared added"]
    );
    let audit = home.run(&["audit", "tail", "--limit", "1000", "--json"]);
    assert!(audit.contains("decided: settings in the store, version 4: server shared removed"), "{audit}");
    one.stop().await;
    other.stop().await;
}

#[test]
fn a_gateway_that_does_not_ask_for_them_ignores_the_settings_in_the_store() {
    let home = TestHome::new();
    let added = add_stored(&home, "shared");
    assert!(
        added.contains("hint: a gateway uses it if its toolyard.toml has `stored_settings = true`"),
        "{added}"
    );
    assert!(home.run(&["servers", "list"]).contains("No servers yet"));
    // A file that came with a project cannot switch them on.
    home.write("work/toolyard.toml", "stored_settings = true\n");
    assert!(!home.run(&["servers", "list"]).contains("shared"));
}

#[test]
fn the_file_of_a_machine_is_above_the_settings_in_the_store() {
    let home = TestHome::new();
    home.write(
        "stored.toml",
        "[call]\nattempts = 5\ntimeout = \"9s\"\n[servers.a]\nurl = \"http://127.0.0.1:1/mcp\"\n",
    );
    home.write(SETTINGS, "stored_settings = true\n[call]\nattempts = 2\n");
    home.run(&["settings", "store", home.path("stored.toml").to_str().unwrap()]);
    let shown = home.run(&["settings", "show"]);
    let origins = shown.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?, words.next()?.rsplit('/').next()?))
    });
    assert_eq!(
        origins.collect::<Vec<_>>(),
        [
            ("call.attempts", "2", "toolyard.toml"),
            ("call.timeout", "9s", "store"),
            ("servers.a.url", "http://127.0.0.1:1/mcp", "store"),
            ("stored_settings", "true", "toolyard.toml"),
        ]
    );
}

#[tokio::test]
async fn settings_that_cannot_be_used_change_nothing_and_can_be_repaired() {
    let home = TestHome::new();
    home.write(SETTINGS, "stored_settings = true\n");
    for (text, message) in [
        ("store = \"other.db\"\n", "`store` can only be set in a file, not in the store"),
        ("colour = 1\n", "colour"),
        ("[servers.a]\nargs = [\"x\"]\n", "server"),
    ] {
        home.write("stored.toml", text);
        let refused = home.run(&["settings", "store", home.path("stored.toml").to_str().unwrap()]);
        assert!(refused.contains(message) && refused.contains("error:"), "{refused}");
    }
    assert!(home.run(&["settings", "history"]).contains("The store has no settings yet"));

    // Valid by themselves, but not together with this gateway's settings.
    let gateway = HttpGateway::start(&home, &[]);
    home.write("stored.toml", "[serve]\nrequired_servers = [\"missing\"]\n");
    home.run(&["settings", "store", home.path("stored.toml").to_str().unwrap()]);
    let is_refused = || gateway.stderr().contains("settings not reloaded");
    assert!(wait_until(20_000, is_refused), "{}", gateway.stderr());
    assert!(has_tool(&gateway, "calculate", true).await);
    add_stored(&home, "late");
    home.write("stored.toml", "");
    home.run(&["settings", "store", home.path("stored.toml").to_str().unwrap()]);
    assert!(wait_until(20_000, || gateway.stderr().contains("settings reloaded")), "{}", gateway.stderr());
    gateway.stop().await;
}
