//! Resuming, approving, denying and cancelling runs.

use std::process::Stdio;

use crate::{Fixture, test_home::wait_until};

#[test]
fn a_suspended_run_resumes_once_approved() {
    let fixture = Fixture::new();
    fixture.script_note();
    // `power → write` are the steps of the plan, `local` is the model.
    insta::assert_snapshot!(fixture.run(&["ask", "note it"]), @r#"
    --- stderr
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     ? write write_note skill:notebook writes: {"text":1024}
    error: the run is suspended until you approve: write_note
      hint: toolyard runs approve RUN · toolyard runs deny RUN
    run RUN inspect: toolyard runs show RUN
    --- exit 6
    "#);
    assert!(fixture.notes().is_empty());
    insta::assert_snapshot!(fixture.run(&["runs", "list"]), @r#"
    RUN STATE STARTED QUESTION
    RUN suspended DATE note it
    "#);
    insta::assert_snapshot!(fixture.run(&["runs", "resume", "last"]), @r#"
    --- stderr
    error: the run is suspended until you approve: write_note
      hint: toolyard runs approve RUN · toolyard runs deny RUN
    run RUN inspect: toolyard runs show RUN
    --- exit 6
    "#);
    let run = fixture.last_run();
    insta::assert_snapshot!(fixture.run(&["runs", "approve", &run]), @r#"
    I wrote it down.
    --- stderr
    Approved `write` (writes): {"text":1024}
     ✓ write write_note skill:notebook {"written":true} N s
     ✓ verify 2 of 2 results
    run RUN inspect: toolyard runs show RUN
    "#);
    assert_eq!(fixture.notes(), [r#"{"text":1024}"#]);
    insta::assert_snapshot!(fixture.run(&["runs", "approve", &run]), @r#"
    --- stderr
    error: run RUN is not waiting for an approval
      hint: show its state: toolyard runs show RUN
    --- exit 2
    "#);
    assert_eq!(fixture.notes().len(), 1);
}

#[test]
fn a_call_can_be_denied() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture.run(&["ask", "note it"]);
    // The answer is scripted, whatever the decision.
    insta::assert_snapshot!(fixture.run(&["runs", "deny", "last", "write"]), @r#"
    I wrote it down.
    --- stderr
    Denied `write` (writes): {"text":1024}
     - write write_note skill:notebook denied by cli
     ✓ verify 1 of 1 results
    run RUN inspect: toolyard runs show RUN
    "#);
    assert!(fixture.notes().is_empty());
}

#[test]
fn a_killed_run_resumes_and_repeats_no_step() {
    let fixture = Fixture::new();
    let steps = serde_json::json!([
        {"id": "write", "tool_type": "write_note", "arguments": {"text": "once"}},
        {"id": "slow", "tool_type": "slow_note", "arguments": {"text": "$write.written"}},
    ]);
    fixture.model.script_plan("slowly", &steps);
    let mut ask_process =
        fixture.home.command(&["ask", "--yes", "slowly"]).stderr(Stdio::null()).spawn().unwrap();
    assert!(wait_until(20_000, || fixture.home.path("call_started").exists()));
    ask_process.kill().unwrap();
    ask_process.wait().unwrap();
    let output = fixture.run(&["runs", "resume", "--yes"]);
    assert!(output.contains("the outcome of slow is unknown"), "{output}");
    assert!(output.ends_with("exit 5"), "{output}");
    assert_eq!(fixture.notes().len(), 1, "{output}");
    let run = fixture.last_run();
    fixture.run(&["runs", "resolve", &run, "slow", "done"]);
    fixture.model.script_answer("slowly", "It was done.");
    let output = fixture.run(&["runs", "resume", &run]);
    assert!(output.starts_with("It was done."), "{output}");
    assert_eq!(fixture.notes().len(), 1, "{output}");
}

#[test]
fn ctrl_c_cancels_the_run() {
    let fixture = Fixture::new();
    fixture.model.script_plan(
        "slowly",
        &serde_json::json!([{"id": "slow", "tool_type": "slow_note", "arguments": {"text": 1}}]),
    );
    let ask_process =
        fixture.home.command(&["ask", "--yes", "slowly"]).stderr(Stdio::piped()).spawn().unwrap();
    assert!(wait_until(20_000, || fixture.home.path("call_started").exists()));
    let pid = rustix::process::Pid::from_raw(i32::try_from(ask_process.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = ask_process.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("cancelling: in-flight calls are abandoned"), "{stderr}");
    assert!(fixture.run(&["runs", "list"]).contains("RUN cancelled"), "{stderr}");
}

#[test]
fn runs_are_found_by_prefix_and_can_be_cancelled() {
    let fixture = Fixture::new();
    fixture.script_note();
    insta::assert_snapshot!(fixture.run(&["runs", "show"]), @r#"
    --- stderr
    error: no runs yet
      hint: start one: toolyard ask QUESTION
    --- exit 2
    "#);
    fixture.run(&["ask", "note it"]);
    let run = fixture.last_run();
    // Ids are matched by prefix, ignoring case. 24 of the 26 characters are unique enough here.
    let prefix = run.get(..24).unwrap().to_lowercase();
    insta::assert_snapshot!(fixture.run(&["runs", "cancel", &prefix]).replace(&run, "RUN"), @r#"
    --- stderr
    cancelled run RUN; completed steps are not undone
    "#);
    insta::assert_snapshot!(fixture.run(&["runs", "cancel", &prefix]).replace(&run, "RUN"), @r#"
    --- stderr
    error: run RUN has already finished
    --- exit 2
    "#);
    insta::assert_snapshot!(fixture.run(&["runs", "resume"]), @r#"
    --- stderr
    No unfinished runs.
    "#);
    insta::assert_snapshot!(fixture.run(&["runs", "show", "02"]), @r#"
    --- stderr
    error: run `02` does not exist
      hint: list runs: toolyard runs list
    --- exit 2
    "#);
}
