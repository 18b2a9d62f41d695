//! `toolyard ask`.

use std::time::Instant;

use serde_json::{Value, json};

use super::{Fixture, TestHome};

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
    insta::assert_snapshot!(fixture.run(&["ask", "hello"]), @r"
    Hello to you.
    --- stderr
    Nothing was changed.
    run RUN inspect: toolyard runs show RUN
    ");
    assert_eq!(fixture.model.requests().len(), 1);
}

#[test]
fn the_call_timeout_holds_for_the_calls_of_an_agent() {
    let fixture = Fixture::new();
    fixture.add_program("stuck_note", "touch \"$HOME/call_started\"; sleep 300; echo '{}'");
    let steps = json!([{"id": "stuck", "tool_type": "stuck_note", "arguments": {"text": 1}}]);
    fixture.model.script_plan("slowly", &steps);
    fixture.append_settings("[call]\ntimeout = \"3s\"\n[agents.assistant]\nlimits = { replans = 0 }\n");
    let started = Instant::now();
    let output = fixture.run(&["ask", "--yes", "slowly"]);
    assert!(fixture.home.path("call_started").exists(), "{output}");
    // An agent waits 2 minutes by default.
    assert!(started.elapsed().as_secs() < 100, "{output}");
    assert!(output.ends_with("--- exit 5"), "a call that writes and was abandoned is unknown: {output}");
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
     ? write write_note skill:notebook unverified effects: {"text":1024}
     ✓ write write_note skill:notebook {"written":true} N s
     ✓ verify 2 of 2 steps
    Done: write_note → 1024 (step write)
    run RUN inspect: toolyard runs show RUN
    "#);
    assert_eq!(fixture.notes(), [r#"{"text":1024}"#]);
    insta::assert_snapshot!(fixture.run(&["runs", "show"]), @r#"
    RUN done, started DATE
      assistant: compute 2^10 and note it
      trace TRACE
    plan power → write N s
     ✓ power calculate native 1024 N s
     ✓ write write_note skill:notebook {"written":true} N s
     ✓ verify 2 of 2 steps
      2 model calls, 200 input tokens, 40 output tokens
    I wrote it down.
    Done: write_note → 1024 (step write)
    "#);
    let replayed = fixture.home.command(&["runs", "replay", "last"]).output().unwrap();
    assert_eq!(String::from_utf8(replayed.stdout).unwrap(), "I wrote it down.\n");
    assert_eq!(fixture.model.requests().len(), 2, "a replay sends no model request");
}

#[test]
fn what_is_sent_to_the_model_can_be_seen_before_and_after_the_run() {
    let fixture = Fixture::new();
    fixture.script_note();
    let question = "compute 2^10 and note it";
    let printed = fixture.run(&["ask", "--as-sent", question]);
    assert!(printed.starts_with("--- model request: plan ---\n[system]\n"), "{printed}");
    let output = fixture.home.command(&["ask", "--as-sent", "--json", question]).output().unwrap();
    let first: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(fixture.model.requests().is_empty() && fixture.notes().is_empty(), "nothing is sent or called");
    fixture.run(&["ask", "--yes", question]);
    let recorded = fixture.home.command(&["runs", "show", "--as-sent", "--json"]).output().unwrap().stdout;
    let recorded: Vec<Value> = serde_json::from_slice(&recorded).unwrap();
    let requests = fixture.model.requests();
    assert_eq!((requests.len(), recorded.len()), (2, 2));
    assert_eq!((&first["task"], &first["sent"]), (&recorded[0]["task"], &recorded[0]["sent"]));
    let texts = |messages: &Value, field: &str| {
        let messages = messages.as_array().unwrap().iter();
        messages.map(|message| message[field].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (request, exchange) in requests.iter().zip(&recorded) {
        let sent = texts(&request["messages"], "content");
        assert_eq!(texts(&exchange["sent"]["messages"], "text"), sent);
    }
    let printed = fixture.run(&["runs", "show", "--as-sent"]);
    assert!(printed.starts_with("--- model request: plan ---\n[system]\n"), "{printed}");
    assert!(printed.contains("[reply]\nI wrote it down."), "{printed}");
}

#[test]
fn nothing_is_sent_to_an_embedding_model_either() {
    let fixture = Fixture::new();
    fixture.append_settings("[search]\nembeddings = \"local\"\n");
    let printed = fixture.run(&["ask", "--as-sent", "note it"]);
    assert!(printed.starts_with("--- model request: plan ---"), "{printed}");
    assert!(fixture.model.requests().is_empty());
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
     ✓ verify 1 of 1 steps
    Not done: write_note → 1024 (step write), because this is a dry run
    Nothing was changed.
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
    insta::assert_snapshot!(fixture.run(&["ask", "--yes", "note it"]), @r"
    I wrote it down.
    --- stderr
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     - write write_note skill:notebook denied by rules
     ✗ verify 1 of 2 steps; not done: write
    Not done: write_note (step write), because it was denied by rules
    Nothing was changed.
    error: the task was not done: write did not succeed
      hint: see what each step did: toolyard runs show RUN
    run RUN inspect: toolyard runs show RUN
    --- exit 1
    ");
    assert_eq!(fixture.notes().len(), 1, "a denied call is not made, even with --yes");
}

#[test]
fn a_change_that_was_not_made_is_partial_whatever_the_model_says() {
    let fixture = Fixture::new();
    fixture.add_program("write_note", "echo 'disk full' >&2; exit 1");
    fixture.script_note();
    let output = fixture.home.command(&["ask", "--json", "--yes", "note it"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let end = &last["event"]["end"];
    assert_eq!(end["state"], "partial", "{text}");
    // The step of the first plan, and those of the plans after it.
    let is_write = |step: &Value| step.as_str().is_some_and(|step| step.starts_with("write"));
    assert!(end["unfinished_steps"].as_array().unwrap().iter().all(is_write), "{text}");
    assert_eq!(end["answer"], "I wrote it down.", "{text}");
    let effects = last["event"]["effects"].as_array().unwrap();
    assert!(!effects.is_empty() && effects.iter().all(|effect| effect["state"] == "not_done"), "{text}");
    // A model that calls no tool at all does nothing either, and the receipt says so.
    fixture.model.script_direct_answer("remember the milk", "I noted it.");
    insta::assert_snapshot!(fixture.run(&["ask", "remember the milk"]), @r"
    I noted it.
    --- stderr
    Nothing was changed.
    run RUN inspect: toolyard runs show RUN
    ");
}

#[test]
fn numbers_that_no_step_returned_are_marked() {
    let fixture = Fixture::new();
    fixture.model.script_plan(
        "how many",
        &json!([{"id": "power", "tool_type": "calculate", "arguments": {"expression": "2^10"}}]),
    );
    fixture.model.script_answer("how many", "There are 1,024 of them, 37 more than before.");
    let output = fixture.home.command(&["ask", "how many?"]).output().unwrap();
    assert!(output.status.success());
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap(), @r"
    There are 1,024 of them, 37 more than before.

    [Not found in any result: 37]
    ");
}

#[test]
fn unreachable_and_unknown_models_are_reported() {
    let fixture = Fixture::new();
    fixture.append_settings(
        "[models.gone]\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\ntool_calling = \"text\"\n",
    );
    insta::assert_snapshot!(fixture.run(&["ask", "--model", "gone", "hello"]), @r"
    --- stderr
    Nothing was changed.
    error: model `gone` cannot be reached at http://127.0.0.1:9/v1: Connection refused (os error 111)
      hint: check that a server is running at http://127.0.0.1:9/v1
    run RUN inspect: toolyard runs show RUN
    --- exit 3
    ");
    insta::assert_snapshot!(fixture.run(&["ask", "hello"]), @r#"
    --- stderr
    error: several models are configured (gone, local), and no `default_model`
      hint: choose one with --model, or in toolyard.toml: default_model = "gone"
    --- exit 2
    "#);
    let doctor = fixture.run(&["doctor"]);
    assert!(
        doctor.contains("several models are configured (gone, local), and no `default_model`"),
        "{doctor}"
    );
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
