//! Runs that wait for a person, were killed, or are not wanted any more.

use std::process::Stdio;

use crate::{Yard, place::wait_until};

#[test]
fn a_run_waits_for_a_person_and_goes_on_once_allowed() {
    let yard = Yard::new();
    yard.plans_to_note();
    insta::assert_snapshot!(yard.run(&["ask", "note it"]), @r#"
    --- stderr
    plan power → write local, N s
     ✓ power calculate native 1024 N s
     ? write write_note skill:notebook writes: {"text":1024}
    error: the run is suspended: it waits for a person to allow write_note
      hint: toolyard runs approve RUN (or, to say no: --deny)
    run RUN resume, inspect or replay: toolyard runs show RUN
    --- exit 6
    "#);
    assert!(yard.notes().is_empty());
    insta::assert_snapshot!(yard.run(&["runs", "list"]), @r#"
    RUN STATE BEGUN WHAT
    RUN waits for a person DATE note it
    "#);
    insta::assert_snapshot!(yard.run(&["runs", "resume", "last"]), @r#"
    --- stderr
    error: the run is suspended: it waits for a person to allow write_note
      hint: toolyard runs approve RUN (or, to say no: --deny)
    run RUN resume, inspect or replay: toolyard runs show RUN
    --- exit 6
    "#);
    let run = yard.last_run();
    insta::assert_snapshot!(yard.run(&["runs", "approve", &run]), @r#"
    I wrote it down.
    --- stderr
    allowed: write, which writes: {"text":1024}
     ✓ write write_note skill:notebook {"written":true} N s
     ✓ verify 2 of 2 results
    run RUN resume, inspect or replay: toolyard runs show RUN
    "#);
    assert_eq!(yard.notes(), [r#"{"text":1024}"#]);
    insta::assert_snapshot!(yard.run(&["runs", "approve", &run]), @r#"
    --- stderr
    error: run RUN waits for no such word
      hint: see how it stands: toolyard runs show RUN
    --- exit 2
    "#);
    assert_eq!(yard.notes().len(), 1);
}

#[test]
fn a_person_may_say_no() {
    let yard = Yard::new();
    yard.plans_to_note();
    yard.run(&["ask", "note it"]);
    insta::assert_snapshot!(yard.run(&["runs", "approve", "last", "write", "--deny"]), @r#"
    I wrote it down.
    --- stderr
    denied: write, which writes: {"text":1024}
     - write write_note skill:notebook denied by cli
     ✓ verify 1 of 1 results
    run RUN resume, inspect or replay: toolyard runs show RUN
    "#);
    assert!(yard.notes().is_empty());
}

#[test]
fn a_run_that_was_killed_goes_on_and_nothing_is_done_twice() {
    let yard = Yard::new();
    let steps = serde_json::json!([
        {"id": "write", "tool_type": "write_note", "arguments": {"text": "once"}},
        {"id": "slow", "tool_type": "slow_note", "arguments": {"text": "$write.written"}},
    ]);
    yard.model.plans("slowly", &steps);
    let mut asking = yard.place.command(&["ask", "--yes", "slowly"]).stderr(Stdio::null()).spawn().unwrap();
    assert!(wait_until(20_000, || yard.place.path("begun").exists()));
    asking.kill().unwrap();
    asking.wait().unwrap();
    let seen = yard.run(&["runs", "resume", "--yes"]);
    assert!(seen.contains("nobody knows whether slow took effect"), "{seen}");
    assert!(seen.ends_with("exit 5"), "{seen}");
    assert_eq!(yard.notes().len(), 1, "{seen}");
    let run = yard.last_run();
    yard.run(&["runs", "resolve", &run, "slow", "done"]);
    yard.model.answers("slowly", "It was done.");
    let seen = yard.run(&["runs", "resume", &run]);
    assert!(seen.starts_with("It was done."), "{seen}");
    assert_eq!(yard.notes().len(), 1, "{seen}");
}

#[test]
fn ctrl_c_cancels_the_run() {
    let yard = Yard::new();
    yard.model.plans(
        "slowly",
        &serde_json::json!([{"id": "slow", "tool_type": "slow_note", "arguments": {"text": 1}}]),
    );
    let asking = yard.place.command(&["ask", "--yes", "slowly"]).stderr(Stdio::piped()).spawn().unwrap();
    assert!(wait_until(20_000, || yard.place.path("begun").exists()));
    let number = rustix::process::Pid::from_raw(i32::try_from(asking.id()).unwrap()).unwrap();
    rustix::process::kill_process(number, rustix::process::Signal::INT).unwrap();
    let output = asking.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("cancelling: calls that are under way are given up"), "{said}");
    assert!(yard.run(&["runs", "list"]).contains("RUN cancelled"), "{said}");
}

#[test]
fn runs_are_named_by_their_first_letters_and_can_be_cancelled() {
    let yard = Yard::new();
    yard.plans_to_note();
    insta::assert_snapshot!(yard.run(&["runs", "show"]), @r#"
    --- stderr
    error: there are no runs yet
      hint: see what there is: toolyard runs list
    --- exit 2
    "#);
    yard.run(&["ask", "note it"]);
    let run = yard.last_run();
    let short = run.get(..24).unwrap().to_lowercase();
    insta::assert_snapshot!(yard.run(&["runs", "cancel", &short]).replace(&run, "RUN"), @r#"
    --- stderr
    cancelled run RUN; what it did stays done
    "#);
    insta::assert_snapshot!(yard.run(&["runs", "cancel", &short]).replace(&run, "RUN"), @r#"
    --- stderr
    error: run RUN is over
    --- exit 2
    "#);
    insta::assert_snapshot!(yard.run(&["runs", "resume"]), @r#"
    --- stderr
    nothing is to be gone on with
    "#);
    insta::assert_snapshot!(yard.run(&["runs", "show", "02"]), @r#"
    --- stderr
    error: there is no run 02
      hint: see what there is: toolyard runs list
    --- exit 2
    "#);
}
