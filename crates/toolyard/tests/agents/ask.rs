//! `toolyard ask`.

use serde_json::Value;

use crate::{Fixture, TestHome};

#[test]
fn a_missing_model_is_explained() {
    insta::assert_snapshot!(TestHome::new().run(&["ask", "hello"]), @r#"
    --- stderr
    error: no model is configured
      hint: add a model with `toolyard models add`, or in toolyard.toml:
        [models.local]
        url = "http://127.0.0.1:11434/v1"      # Ollama; llama.cpp: http://127.0.0.1:8080/v1
        model = "qwen2.5:7b"
      or
        [models.gpt]
        url = "https://api.openai.com/v1"
        model = "gpt-5-mini"
        key = "${OPENAI_API_KEY}"
    --- exit 2
    "#);
}

#[test]
fn a_question_that_needs_no_tool_is_answered_at_once() {
    let fixture = Fixture::new();
    fixture.model.script_direct_answer("hello", "Hello to you.");
    insta::assert_snapshot!(fixture.run(&["ask", "hello"]), @r#"
    Hello to you.
    --- stderr
    run RUN inspect: toolyard runs show RUN
    "#);
    assert_eq!(fixture.model.requests().len(), 1);
}

#[test]
fn a_task_is_planned_executed_and_answered() {
    let fixture = Fixture::new();
    fixture.script_note();
    insta::assert_snapshot!(fixture.run(&["ask", "--yes", "compute 2^10 and note it"]), @r#"
    I wrote it down.
    --- stderr
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     ? write write_note skill:notebook writes: {"text":1024}
     ✓ write write_note skill:notebook {"written":true} N s
     ✓ verify 2 of 2 results
    run RUN inspect: toolyard runs show RUN
    "#);
    assert_eq!(fixture.notes(), [r#"{"text":1024}"#]);
    insta::assert_snapshot!(fixture.run(&["runs", "show"]), @r#"
    RUN done, started DATE
      assistant: compute 2^10 and note it
    plan power → write N s
     ✓ power calculate native 1024 N s
     ✓ write write_note skill:notebook {"written":true} N s
     ✓ verify 2 of 2 results
      2 model calls, 200 input tokens, 40 output tokens
    I wrote it down.
    "#);
    let replayed = fixture.home.command(&["runs", "replay", "last"]).output().unwrap();
    assert_eq!(String::from_utf8(replayed.stdout).unwrap(), "I wrote it down.\n");
    assert_eq!(fixture.model.requests().len(), 2, "a replay sends no model request");
}

#[test]
fn plan_only_prints_the_plan_as_json() {
    let fixture = Fixture::new();
    fixture.script_note();
    let output = fixture.home.command(&["ask", "--plan-only", "note it"]).output().unwrap();
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["steps"][1]["arguments"]["text"], "$power", "{plan}");
    assert!(output.status.success() && fixture.notes().is_empty());
}

#[test]
fn a_dry_run_skips_calls_with_side_effects() {
    let fixture = Fixture::new();
    fixture.script_note();
    insta::assert_snapshot!(fixture.run(&["ask", "--dry-run", "note it"]), @r#"
    I wrote it down.
    --- stderr
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     ~ write write_note skill:notebook would be called with {"text":1024}
     ✓ verify 1 of 1 results
    run RUN inspect: toolyard runs show RUN
    "#);
    assert!(fixture.notes().is_empty());
}

#[test]
fn json_output_streams_all_updates() {
    let fixture = Fixture::new();
    fixture.script_note();
    let output = fixture.home.command(&["ask", "--json", "--yes", "note it"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = lines.iter().filter_map(|line| line["event"]["event"].as_str()).collect();
    assert_eq!(events.first(), Some(&"requested"), "{text}");
    assert_eq!(events.last(), Some(&"ended"), "{text}");
    assert!(lines.iter().any(|line| line["update"] == "answer_delta"), "{text}");
    assert!(output.stderr.is_empty());
}

#[test]
fn approval_rules_apply_without_a_terminal() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture.append_settings("[approvals]\nallow = [\"write_*\"]\n");
    let output = fixture.home.command(&["ask", "note it"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "I wrote it down.\n");
    assert_eq!(fixture.notes().len(), 1);
    fixture.append_settings("deny = [\"write_note@skill*\"]\n");
    insta::assert_snapshot!(fixture.run(&["ask", "--yes", "note it"]), @r#"
    I wrote it down.
    --- stderr
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     - write write_note skill:notebook denied by rules
     ✓ verify 1 of 1 results
    run RUN inspect: toolyard runs show RUN
    "#);
    assert_eq!(fixture.notes().len(), 1, "a denied call is not made, even with --yes");
}

#[test]
fn unreachable_and_unknown_models_are_reported() {
    let fixture = Fixture::new();
    fixture.append_settings("[models.gone]\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\nattempts = 1\ntool_calling = \"text\"\n");
    insta::assert_snapshot!(fixture.run(&["ask", "--model", "gone", "hello"]), @r#"
    --- stderr
    error: model `gone` cannot be reached at http://127.0.0.1:9/v1: Connection refused (os error 111)
      hint: check that a server is running at http://127.0.0.1:9/v1
    run RUN inspect: toolyard runs show RUN
    --- exit 3
    "#);
    insta::assert_snapshot!(fixture.run(&["ask", "hello"]), @r#"
    --- stderr
    error: several models are configured (gone, local), and no `default_model`
      hint: choose one with --model, or in toolyard.toml: default_model = "gone"
    --- exit 2
    "#);
    insta::assert_snapshot!(fixture.run(&["ask", "--model", "none", "hello"]), @r#"
    --- stderr
    error: model `none` does not exist; known models: gone, local
      hint: list models: toolyard models list
    --- exit 2
    "#);
    insta::assert_snapshot!(fixture.run(&["ask", "--agent", "nobody", "hello"]), @r#"
    --- stderr
    error: agent `nobody` does not exist; known agents: assistant
      hint: define it in toolyard.toml: [agents.nobody]
    --- exit 2
    "#);
}
