//! Resuming, approving, denying and cancelling runs.

use std::process::Stdio;

use super::Fixture;
use crate::test_home::{TestHome, wait_until};

#[test]
fn a_suspended_run_resumes_once_approved() {
    let fixture = Fixture::new();
    fixture.script_note();
    // `power → write` are the steps of the plan, `local` is the model.
    insta::assert_snapshot!(fixture.run(&["ask", "note it"]), @r#"
    --- stderr
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     ? write write_note skill:notebook unverified effects: {"text":1024}
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
    --- stderr
    error: approval needs a terminal to show the call, or --yes; nothing was approved
      hint: read it: toolyard runs show RUN · approve it: toolyard runs approve RUN --yes
    --- exit 2
    "#);
    assert!(fixture.notes().is_empty());
    insta::assert_snapshot!(fixture.run(&["runs", "approve", &run, "--yes"]), @r#"
    I wrote it down.
    --- stderr
    Approved `write` (unverified effects): {"text":1024}
     ✓ write write_note skill:notebook {"written":true} N s
     ✓ verify 2 of 2 steps
    Done: write_note → 1024 (step write)
    run RUN inspect: toolyard runs show RUN
    "#);
    assert_eq!(fixture.notes(), [r#"{"text":1024}"#]);
    insta::assert_snapshot!(fixture.run(&["runs", "approve", &run, "--yes"]), @r#"
    --- stderr
    error: run RUN is not waiting for an approval
      hint: show its state: toolyard runs show RUN
    --- exit 2
    "#);
    assert_eq!(fixture.notes().len(), 1);
}

#[test]
fn with_nothing_to_resume_nothing_is_started() {
    let home = TestHome::new();
    home.add_server("fake", &[]);
    let started = home.started_pids("fake").len();
    insta::assert_snapshot!(home.run(&["runs", "resume"]), @r"
    --- stderr
    No unfinished runs.
    ");
    assert_eq!(home.started_pids("fake").len(), started);
}

#[test]
fn a_run_that_has_ended_is_not_resumed_and_nothing_is_started() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture.run(&["ask", "--yes", "note it"]);
    fixture.home.add_server("fake", &[]);
    insta::assert_snapshot!(fixture.run(&["runs", "resume", "last"]), @r"
    --- stderr
    error: run RUN has already finished
      hint: show what it did: toolyard runs show RUN
    --- exit 2
    ");
    assert!(fixture.home.started_pids("fake").is_empty());
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
    Denied `write` (unverified effects): {"text":1024}
     - write write_note skill:notebook denied by cli
     ✗ verify 1 of 2 steps; not done: write
    Not done: write_note (step write), because it was denied by cli
    Nothing was changed.
    error: the task was not done: write did not succeed
      hint: see what each step did: toolyard runs show RUN
    run RUN inspect: toolyard runs show RUN
    --- exit 1
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
fn a_second_ctrl_c_stops_at_once_and_the_run_can_be_resumed() {
    let fixture = Fixture::new();
    fixture.model.script_plan(
        "slowly",
        &serde_json::json!([{"id": "slow", "tool_type": "slow_note", "arguments": {"text": 1}}]),
    );
    let ask_process =
        fixture.home.command(&["ask", "--yes", "slowly"]).stderr(Stdio::piped()).spawn().unwrap();
    assert!(wait_until(20_000, || fixture.home.path("call_started").exists()));
    let pid = rustix::process::Pid::from_raw(i32::try_from(ask_process.id()).unwrap()).unwrap();
    for _ in 0..2 {
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let output = ask_process.wait_with_output().unwrap();
    let stderr = super::normalize(&String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    for expected in [
        "interrupting: waiting for calls in flight to end; interrupt again to stop at once",
        "error: the run is interrupted",
        "hint: toolyard runs resume RUN · toolyard runs cancel RUN",
    ] {
        assert!(stderr.contains(expected), "{expected}: {stderr}");
    }
    let list = fixture.run(&["runs", "list"]);
    assert!(list.contains("1 interrupted run; resume one or all"), "{list}");
    let resumed = fixture.run(&["runs", "resume", "--yes", &fixture.last_run()]);
    assert!(resumed.contains("the outcome of slow is unknown") && resumed.ends_with("exit 5"), "{resumed}");
}

#[test]
fn after_a_kill_resuming_waits_for_the_lease_instead_of_refusing() {
    let fixture = Fixture::new();
    fixture.model.script_plan(
        "slowly",
        &serde_json::json!([{"id": "slow", "tool_type": "slow_note", "arguments": {"text": 1}}]),
    );
    let mut asking = fixture.home.command(&["ask", "--yes", "slowly"]).stderr(Stdio::null()).spawn().unwrap();
    assert!(wait_until(20_000, || fixture.home.path("call_started").exists()));
    // The killed process is not waited for: for a while, it is a zombie.
    asking.kill().unwrap();
    let resumed = fixture.run(&["runs", "resume", "--yes", &fixture.last_run()]);
    asking.wait().unwrap();
    assert!(resumed.contains("is gone; waiting until its lease on the run expires"), "{resumed}");
    assert!(!resumed.contains("in use by") && resumed.ends_with("exit 5"), "{resumed}");
}

#[test]
fn a_suspended_run_names_the_step_that_waits_for_approval() {
    let fixture = Fixture::new();
    fixture.script_note();
    fixture.run(&["ask", "note it"]);
    let shown = fixture.run(&["runs", "show"]);
    assert!(shown.contains("waiting for your approval: write"), "{shown}");
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
