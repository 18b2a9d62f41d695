//! `toolyard models`.

use crate::{Place, Yard};

#[test]
fn models_are_added_listed_and_removed() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["models", "list"]), @r#"
    --- stderr
    no models yet; add one: toolyard models add local --url http://127.0.0.1:11434/v1 --model qwen2.5:7b
    "#);
    insta::assert_snapshot!(place.run(&["models", "add", "local", "--url", "http://127.0.0.1:11434/v1", "--model", "qwen"]), @r#"
    --- stderr
    added local: HOME/config/toolyard/toolyard.toml
      hint: see whether it works: toolyard models test local
    "#);
    insta::assert_snapshot!(place.run(&["models", "add", "gpt", "--url", "https://api.openai.com/v1", "--model", "gpt-5-mini", "--key", "${OPENAI_API_KEY}", "--default"]), @r#"
    --- stderr
    added gpt: HOME/config/toolyard/toolyard.toml
      hint: see whether it works: toolyard models test gpt
    "#);
    insta::assert_snapshot!(std::fs::read_to_string(place.path("config/toolyard/toolyard.toml")).unwrap(), @r#"
    default_model = "gpt"
    [models.local]
    url = "http://127.0.0.1:11434/v1"
    model = "qwen"

    [models.gpt]
    url = "https://api.openai.com/v1"
    model = "gpt-5-mini"
    key = "${OPENAI_API_KEY}"
    "#);
    insta::assert_snapshot!(place.run(&["models", "list"]), @r#"
    NAME   MODEL       CALLS TOOLS  NOTE                                 ASKED AT
    gpt    gpt-5-mini  not tested   default, $OPENAI_API_KEY is not set  https://api.openai.com/v1
    local  qwen        not tested                                        http://127.0.0.1:11434/v1
    "#);
    insta::assert_snapshot!(place.run(&["models", "add", "gpt", "--url", "x", "--model", "y"]), @r#"
    --- stderr
    error: model `gpt` is there already
      hint: remove it first: toolyard models remove gpt
    --- exit 2
    "#);
    insta::assert_snapshot!(place.run(&["models", "remove", "gpt"]), @r#"
    --- stderr
    removed gpt: HOME/config/toolyard/toolyard.toml
    "#);
    insta::assert_snapshot!(std::fs::read_to_string(place.path("config/toolyard/toolyard.toml")).unwrap(), @r#"
    [models.local]
    url = "http://127.0.0.1:11434/v1"
    model = "qwen"
    "#);
}

#[test]
fn keys_are_not_written_into_files() {
    let place = Place::new();
    let seen = place.run(&[
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
    assert!(seen.contains("do not belong in files") && !seen.contains("canary"), "{seen}");
    assert!(!place.path("config/toolyard/toolyard.toml").exists());
}

#[test]
fn several_models_need_a_word_on_which() {
    let yard = Yard::new();
    yard.set("[models.other]\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n");
    insta::assert_snapshot!(yard.run(&["ask", "hello"]), @r#"
    --- stderr
    error: there are several models (local, other) and no `default_model`
      hint: say which with --model, or in toolyard.toml: default_model = "local"
    --- exit 2
    "#);
}

#[test]
fn how_a_model_calls_tools_best_is_found_out_and_remembered() {
    let yard = Yard::new();
    let file = yard.place.path("config/toolyard/toolyard.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace("schema", "auto");
    std::fs::write(file, text).unwrap();
    yard.model.answers_at_once("hello", "Hello to you.");
    assert!(yard.run(&["ask", "hello"]).contains("note: how local calls tools best is not known yet"));
    yard.model.says(
        "Tokyo",
        true,
        r#"{"call": {"tool_name": "get_time", "arguments": {"timezone": "Asia/Tokyo"}}}"#,
    );
    yard.model.says("17", true, r#"{"call": {"tool_name": "add", "arguments": {"a": 17, "b": 25}}}"#);
    let seen = yard.run(&["models", "test"]);
    assert!(
        seen.contains("local by schema 2 of 2") && seen.contains("local calls tools by schema from now on"),
        "{seen}"
    );
    assert!(yard.run(&["models", "list"]).contains("local scripted by schema default"), "{seen}");
    assert!(!yard.run(&["ask", "hello"]).contains("not known yet"));
}

#[test]
fn models_that_cannot_be_used_are_one_document_and_keep_none_from_being_tested() {
    let yard = Yard::new();
    yard.set("[models.away]\nmodel = \"m\"\nurl = \"http://127.0.0.1:9/v1\"\n[models.keyless]\nmodel = \"m\"\nkey = \"${NO_SUCH_KEY}\"\nurl = \"http://127.0.0.1:9/v1\"\n");
    let output = yard.place.command(&["models", "test", "keyless", "away", "--json"]).output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let named: Vec<_> = told.as_array().unwrap().iter().map(|one| one["model"].clone()).collect();
    assert_eq!(named, ["keyless", "away"], "{told}");
    assert!(told[0]["error"].as_str().unwrap().contains("NO_SUCH_KEY"), "{told}");
    assert!(!output.status.success());
}

#[test]
fn the_doctor_looks_at_models() {
    let yard = Yard::new();
    yard.set("[models.gpt]\nmodel = \"m\"\nurl = \"https://x.example/v1\"\nkey = \"${NO_SUCH_KEY}\"\n[agents.clerk]\nmodel = \"none\"\n");
    let seen = yard.run(&["doctor"]);
    let lines: Vec<&str> = seen.lines().skip_while(|line| !line.contains(" models ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    PROBLEM models [models.gpt] key: the environment variable `NO_SUCH_KEY` is not set
                       hint: agents cannot think with gpt until then
    ok models local: scripted
    PROBLEM agents agent clerk thinks with model `none`, which does not exist
                       hint: list them: toolyard models list
    --- stderr
    error: 2 problems were found
    --- exit 1
    "#);
}
