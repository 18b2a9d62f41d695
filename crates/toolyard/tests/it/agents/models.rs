//! `toolyard models`.

use super::{Fixture, TestHome};
use crate::model_server::ReplyFormat;

#[test]
fn models_are_added_listed_and_removed() {
    let home = TestHome::new();
    insta::assert_snapshot!(home.run(&["models", "list"]), @r#"
    --- stderr
    No models yet. Add one: toolyard models add local --url http://127.0.0.1:11434/v1 --model qwen2.5:7b
    "#);
    insta::assert_snapshot!(home.run(&["models", "add", "local", "--url", "http://127.0.0.1:11434/v1", "--model", "qwen"]), @r#"
    --- stderr
    added local: HOME/config/toolyard/toolyard.toml
      hint: test it: toolyard models test local
    "#);
    insta::assert_snapshot!(home.run(&["models", "add", "gpt", "--url", "https://api.openai.com/v1", "--model", "gpt-5-mini", "--key", "${OPENAI_API_KEY}", "--default"]), @r#"
    --- stderr
    added gpt: HOME/config/toolyard/toolyard.toml
      hint: test it: toolyard models test gpt
    "#);
    insta::assert_snapshot!(std::fs::read_to_string(home.path("config/toolyard/toolyard.toml")).unwrap(), @r#"
    default_model = "gpt"
    [models.local]
    url = "http://127.0.0.1:11434/v1"
    model = "qwen"

    [models.gpt]
    url = "https://api.openai.com/v1"
    model = "gpt-5-mini"
    key = "${OPENAI_API_KEY}"
    "#);
    insta::assert_snapshot!(home.run(&["models", "list"]), @r#"
    NAME   MODEL       TOOL CALLING  NOTE                                 ENDPOINT
    gpt    gpt-5-mini  not tested    default, $OPENAI_API_KEY is not set  https://api.openai.com/v1
    local  qwen        not tested                                         http://127.0.0.1:11434/v1
    "#);
    insta::assert_snapshot!(home.run(&["models", "add", "gpt", "--url", "x", "--model", "y"]), @r#"
    --- stderr
    error: model `gpt` already exists
      hint: remove it first: toolyard models remove gpt
    --- exit 2
    "#);
    insta::assert_snapshot!(home.run(&["models", "remove", "gpt"]), @r#"
    --- stderr
    removed gpt: HOME/config/toolyard/toolyard.toml
    "#);
    insta::assert_snapshot!(std::fs::read_to_string(home.path("config/toolyard/toolyard.toml")).unwrap(), @r#"
    [models.local]
    url = "http://127.0.0.1:11434/v1"
    model = "qwen"
    "#);
}

#[test]
fn literal_keys_are_rejected() {
    let home = TestHome::new();
    let output = home.run(&[
        "models",
        "add",
        "gpt",
        "--url",
        "https://x.example/v1",
        "--model",
        "m",
        "--key",
        "sk-canary-1234567",
    ]);
    assert!(output.contains("do not belong in files") && !output.contains("canary"), "{output}");
    assert!(!home.path("config/toolyard/toolyard.toml").exists());
}

#[test]
fn several_models_need_a_default() {
    let fixture = Fixture::new();
    fixture.append_settings("[models.other]\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n");
    insta::assert_snapshot!(fixture.run(&["ask", "hello"]), @r#"
    --- stderr
    error: several models are configured (local, other), and no `default_model`
      hint: choose one with --model, or in toolyard.toml: default_model = "local"
    --- exit 2
    "#);
}

#[test]
fn the_best_tool_calling_mode_is_tested_and_stored() {
    let fixture = Fixture::new();
    let file = fixture.home.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace("schema", "auto");
    std::fs::write(file, text).unwrap();
    fixture.model.script_direct_answer("hello", "Hello to you.");
    assert!(
        fixture.run(&["ask", "hello"]).contains("note: model local has not been tested for tool calling")
    );
    fixture.model.script_reply(
        "Tokyo",
        ReplyFormat::Json,
        r#"{"call": {"tool_name": "get_time", "arguments": {"timezone": "Asia/Tokyo"}}}"#,
    );
    fixture.model.script_reply(
        "17",
        ReplyFormat::Json,
        r#"{"call": {"tool_name": "add", "arguments": {"a": 17, "b": 25}}}"#,
    );
    let output = fixture.run(&["models", "test"]);
    assert!(
        output.contains("local schema 2 of 2") && output.contains("local now uses tool calling: schema"),
        "{output}"
    );
    assert!(fixture.run(&["models", "list"]).contains("local scripted schema default"), "{output}");
    assert!(!fixture.run(&["ask", "hello"]).contains("has not been tested"));
}

#[test]
fn failing_models_do_not_stop_the_test_of_others() {
    let fixture = Fixture::new();
    fixture.append_settings("[models.away]\nmodel = \"m\"\nurl = \"http://127.0.0.1:9/v1\"\n[models.keyless]\nmodel = \"m\"\nkey = \"${NO_SUCH_KEY}\"\nurl = \"http://127.0.0.1:9/v1\"\n");
    let output = fixture.home.command(&["models", "test", "keyless", "away", "--json"]).output().unwrap();
    let results: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<_> = results.as_array().unwrap().iter().map(|one| one["model"].clone()).collect();
    assert_eq!(names, ["keyless", "away"], "{results}");
    assert!(results[0]["error"].as_str().unwrap().contains("NO_SUCH_KEY"), "{results}");
    assert!(!output.status.success());
}

#[test]
fn doctor_checks_models() {
    let fixture = Fixture::new();
    fixture.append_settings("[models.gpt]\nmodel = \"m\"\nurl = \"https://x.example/v1\"\nkey = \"${NO_SUCH_KEY}\"\n[agents.clerk]\nmodel = \"none\"\n");
    let output = fixture.run(&["doctor"]);
    let lines: Vec<&str> = output.lines().skip_while(|line| !line.contains(" models ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    PROBLEM models [models.gpt] key: the environment variable `NO_SUCH_KEY` is not set
                       hint: agents cannot use gpt until this is fixed
    ok models local: scripted
    PROBLEM models several models are configured (gpt, local), and no `default_model`
                       hint: choose one in toolyard.toml: default_model = "NAME"
    PROBLEM agents agent clerk uses model `none`, which does not exist
                       hint: list models: toolyard models list
    --- stderr
    error: found 3 problems
    --- exit 1
    "#);
}
