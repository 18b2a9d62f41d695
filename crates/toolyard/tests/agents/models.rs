//! `toolyard models`.

use crate::{Place, Yard};

#[test]
fn models_are_added_listed_and_removed() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["models", "list"]), @"");
    insta::assert_snapshot!(place.run(&["models", "add", "local", "--url", "http://127.0.0.1:11434/v1", "--model", "qwen"]), @"");
    insta::assert_snapshot!(place.run(&["models", "add", "gpt", "--url", "https://api.openai.com/v1", "--model", "gpt-5-mini", "--key", "${OPENAI_API_KEY}", "--default"]), @"");
    insta::assert_snapshot!(std::fs::read_to_string(place.path("config/toolyard/toolyard.toml")).unwrap(), @"");
    insta::assert_snapshot!(place.run(&["models", "list"]), @"");
    insta::assert_snapshot!(place.run(&["models", "add", "gpt", "--url", "x", "--model", "y"]), @"");
    insta::assert_snapshot!(place.run(&["models", "remove", "gpt"]), @"");
    insta::assert_snapshot!(std::fs::read_to_string(place.path("config/toolyard/toolyard.toml")).unwrap(), @"");
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
    insta::assert_snapshot!(yard.run(&["ask", "hello"]), @"");
}
