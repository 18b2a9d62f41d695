//! `toolyard ask`.

use serde_json::Value;

use crate::{Place, Yard};

#[test]
fn without_a_model_it_says_what_to_write() {
    insta::assert_snapshot!(Place::new().run(&["ask", "hello"]), @r#"
    --- stderr
    error: no model is configured
      hint: give it one in your toolyard.toml, or with `toolyard models add`:
        [models.local]
        url = "http://127.0.0.1:11434/v1"      # Ollama; llama.cpp has http://127.0.0.1:8080/v1
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
    let yard = Yard::new();
    yard.model.answers_at_once("hello", "Hello to you.");
    insta::assert_snapshot!(yard.run(&["ask", "hello"]), @r#"
    Hello to you.
    --- stderr
    run RUN resume, inspect or replay: toolyard runs show RUN
    "#);
    assert_eq!(yard.model.requests().len(), 1);
}

#[test]
fn a_task_is_planned_carried_out_and_answered() {
    let yard = Yard::new();
    yard.plans_to_note();
    insta::assert_snapshot!(yard.run(&["ask", "--yes", "compute 2^10 and note it"]), @r#"
    I wrote it down.
    --- stderr
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     ? write write_note skill:notebook writes: {"text":1024}
     ✓ write write_note skill:notebook {"written":true} N s
     ✓ verify 2 of 2 results
    run RUN resume, inspect or replay: toolyard runs show RUN
    "#);
    assert_eq!(yard.notes(), [r#"{"text":1024}"#]);
    insta::assert_snapshot!(yard.run(&["runs", "show"]), @r#"
    RUN done, begun DATE
      assistant: compute 2^10 and note it
    plan power → write N s
     ✓ power calculate native 1024 N s
     ✓ write write_note skill:notebook {"written":true} N s
     ✓ verify 2 of 2 results
      model asked 2 times, tokens 200 read and 40 written
    I wrote it down.
    "#);
    let replayed = yard.place.command(&["runs", "replay", "last"]).output().unwrap();
    assert_eq!(String::from_utf8(replayed.stdout).unwrap(), "I wrote it down.\n");
    assert_eq!(yard.model.requests().len(), 2, "a replay asks nobody");
}

#[test]
fn a_plan_alone_is_data() {
    let yard = Yard::new();
    yard.plans_to_note();
    let output = yard.place.command(&["ask", "--plan-only", "note it"]).output().unwrap();
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["steps"][1]["arguments"]["text"], "$power", "{plan}");
    assert!(output.status.success() && yard.notes().is_empty());
}

#[test]
fn a_dry_run_does_everything_but_what_changes_something() {
    let yard = Yard::new();
    yard.plans_to_note();
    insta::assert_snapshot!(yard.run(&["ask", "--dry-run", "note it"]), @r#"
    I wrote it down.
    --- stderr
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     ~ write write_note skill:notebook would be called with {"text":1024}
     ✓ verify 1 of 1 results
    run RUN resume, inspect or replay: toolyard runs show RUN
    "#);
    assert!(yard.notes().is_empty());
}

#[test]
fn everything_that_happens_as_lines_of_json() {
    let yard = Yard::new();
    yard.plans_to_note();
    let output = yard.place.command(&["ask", "--json", "--yes", "note it"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = lines.iter().filter_map(|line| line["event"]["event"].as_str()).collect();
    assert_eq!(events.first(), Some(&"asked"), "{text}");
    assert_eq!(events.last(), Some(&"ended"), "{text}");
    assert!(lines.iter().any(|line| line["news"] == "answer_delta"), "{text}");
    assert!(output.stderr.is_empty());
}

#[test]
fn rules_decide_where_nobody_is_asked() {
    let yard = Yard::new();
    yard.plans_to_note();
    yard.set("[approvals]\nallow = [\"write_*\"]\n");
    let output = yard.place.command(&["ask", "note it"]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "I wrote it down.\n");
    assert_eq!(yard.notes().len(), 1);
    yard.set("deny = [\"write_note@skill*\"]\n");
    insta::assert_snapshot!(yard.run(&["ask", "--yes", "note it"]), @r#"
    I wrote it down.
    --- stderr
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     - write write_note skill:notebook denied by rules
     ✓ verify 1 of 1 results
    run RUN resume, inspect or replay: toolyard runs show RUN
    "#);
    assert_eq!(yard.notes().len(), 1, "what is denied is not called, whatever else is said");
}

#[test]
fn a_model_that_is_not_there_is_said_not_to_be() {
    let yard = Yard::new();
    yard.set("[models.gone]\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\nattempts = 1\ntool_calling = \"text\"\n");
    insta::assert_snapshot!(yard.run(&["ask", "--model", "gone", "hello"]), @r#"
    --- stderr
    error: model gone cannot be reached at http://127.0.0.1:9/v1: Connection refused (os error 111)
      hint: is its server running? http://127.0.0.1:9/v1 must answer
    run RUN resume, inspect or replay: toolyard runs show RUN
    --- exit 3
    "#);
    insta::assert_snapshot!(yard.run(&["ask", "hello"]), @r#"
    --- stderr
    error: there are several models (gone, local) and no `default_model`
      hint: say which with --model, or in toolyard.toml: default_model = "gone"
    --- exit 2
    "#);
    insta::assert_snapshot!(yard.run(&["ask", "--model", "none", "hello"]), @r#"
    --- stderr
    error: model `none` does not exist; there are gone, local
      hint: list them: toolyard models list
    --- exit 2
    "#);
    insta::assert_snapshot!(yard.run(&["ask", "--agent", "nobody", "hello"]), @r#"
    --- stderr
    error: agent `nobody` does not exist; there are assistant
      hint: describe it in toolyard.toml: [agents.nobody]
    --- exit 2
    "#);
}
