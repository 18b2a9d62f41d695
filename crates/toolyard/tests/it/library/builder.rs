//! Tools, settings and servers of the builder.

use std::sync::Arc;

use parking_lot::Mutex;
use toolyard::{
    Settings,
    core::{CallRecord, History, SourceId},
    prelude::*,
};

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

/// Another Toolyard as an MCP server, in an empty home folder.
pub(crate) fn inner_server(home: &std::path::Path) -> McpServerConfig {
    McpServerConfig::stdio("inner", env!("CARGO_BIN_EXE_toolyard"), ["serve", "--stdio"])
        .with_variable("HOME", home.to_string_lossy())
        .with_variable("XDG_DATA_HOME", home.join("data").to_string_lossy())
        .with_variable("XDG_CONFIG_HOME", home.join("config").to_string_lossy())
}

#[tokio::test]
async fn tools_that_clients_would_reject_are_refused() {
    let plain = Toolyard::builder().function("plain", "", |x: i64| async move { x }).build().await;
    let error = plain.unwrap_err().to_string();
    assert_eq!(error, "tool `plain`: its arguments must be an object, and the schema says `integer`");
    let named = Toolyard::builder().function("bad name!", "", |g: Greet| async move { g.name }).build().await;
    assert!(named.unwrap_err().to_string().starts_with("`bad name!` is not the name of a tool"));
}

#[tokio::test]
async fn native_tools_can_be_chosen_or_left_out() {
    let names = |toolyard: &Toolyard| -> Vec<String> {
        let specs = toolyard.hub().tools();
        let mut names: Vec<String> = specs.iter().map(|tool| tool.spec().name.to_string()).collect();
        names.sort();
        names
    };
    let greet = |g: Greet| async move { g.name };
    let none = Toolyard::builder().native_tools([]).function("greet", "", greet).build().await.unwrap();
    assert_eq!(names(&none), ["greet"]);
    let some = Toolyard::builder().native_tools(["calculate", "get_time"]).build().await.unwrap();
    assert_eq!(names(&some), ["calculate", "get_time"]);
    let unknown = Toolyard::builder().native_tools(["compute"]).build().await.unwrap_err();
    assert!(unknown.to_string().contains("`compute` does not exist; there are calculate, "), "{unknown}");
}

#[tokio::test]
async fn the_tools_of_a_server_are_found_by_the_first_call() {
    let home = tempfile::tempdir().unwrap();
    let toolyard = Toolyard::builder()
        .native_tools([])
        .server(inner_server(home.path()))
        .environment(std::env::vars())
        .build()
        .await
        .unwrap();
    let output = toolyard.call("calculate", json!({"expression": "6*7"})).await.unwrap();
    assert_eq!(output.to_text(), "42");
    toolyard.close().await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_added_later_is_found_too() {
    let home = tempfile::tempdir().unwrap();
    let toolyard = Toolyard::builder()
        .native_tools([])
        .server(McpServerConfig::stdio("gone", "/no/such/program", [""; 0]))
        .environment(std::env::vars())
        .build()
        .await
        .unwrap();
    assert!(toolyard.call("calculate", json!({"expression": "1+1"})).await.is_err());
    toolyard.reload_servers(vec![inner_server(home.path())]).await.unwrap();
    assert_eq!(toolyard.call("calculate", json!({"expression": "1+1"})).await.unwrap().to_text(), "2");
    toolyard.close().await.unwrap();
}

#[tokio::test]
async fn an_unknown_tool_is_explained_by_a_server_that_failed() {
    let toolyard = Toolyard::builder()
        .server(McpServerConfig::stdio("gone", "/no/such/program", [""; 0]))
        .build()
        .await
        .unwrap();
    let error = toolyard.call("get_weather", json!({})).await.unwrap_err();
    let Error::Call(error) = error else { panic!("{error:?}") };
    assert!(error.hint().is_some_and(|hint| hint.contains("server `gone` failed")), "{error:?}");
    assert_eq!(toolyard.server_problems().len(), 1);
}

#[tokio::test]
async fn servers_of_the_settings_are_mounted() {
    let home = tempfile::tempdir().unwrap();
    let text = format!(
        "[servers.inner]\ncommand = {:?}\nargs = [\"serve\", \"--stdio\"]\nenv = {{ HOME = {:?} }}\n",
        env!("CARGO_BIN_EXE_toolyard"),
        home.path(),
    );
    let settings = Settings::parse(&text, "toolyard.toml".as_ref()).unwrap();
    let toolyard = Toolyard::builder()
        .native_tools([])
        .settings(settings)
        .environment(std::env::vars())
        .build()
        .await
        .unwrap();
    assert_eq!(toolyard.call("calculate", json!({"expression": "1+1"})).await.unwrap().to_text(), "2");
    toolyard.close().await.unwrap();
}

#[tokio::test]
async fn an_unusable_search_engine_of_the_settings_is_an_error() {
    let text = "[web_search]\nengine = \"brave\"\nkey = \"${BRAVE_API_KEY}\"\n";
    let settings = || Settings::parse(text, "toolyard.toml".as_ref()).unwrap();
    let error = Toolyard::builder().settings(settings()).build().await.unwrap_err();
    assert!(error.to_string().contains("BRAVE_API_KEY"), "{error}");
    let variables = [("BRAVE_API_KEY".to_owned(), "k".to_owned())];
    assert!(Toolyard::builder().settings(settings()).environment(variables).build().await.is_ok());
}

#[derive(Debug, Default)]
struct Recorded(Mutex<Vec<(String, bool)>>);

impl History for Recorded {
    fn record(&self, call: &CallRecord<'_>) {
        self.0.lock().push((call.tool.to_owned(), call.error.is_none()));
    }

    fn last_success(&self, _tool: &str, _source: &SourceId) -> Option<u64> {
        None
    }
}

#[tokio::test]
async fn a_history_of_the_program_sees_every_call() {
    let history = Arc::new(Recorded::default());
    let toolyard = Toolyard::builder().history(Arc::clone(&history) as _).build().await.unwrap();
    toolyard.call("calculate", json!({"expression": "1+1"})).await.unwrap();
    assert_eq!(*history.0.lock(), [("calculate".to_owned(), true)]);
}
