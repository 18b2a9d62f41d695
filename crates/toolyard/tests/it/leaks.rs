//! Callers of one gateway receive no words of others: a small leak trial (`bench/faults/leaks`; in full: `just leak-trial`), and a check
//! that the trial finds leaks that are planted.

use std::{path::Path, process::Command};

/// Runs the trial with this binary; returns its exit code and what it printed.
fn trial(arguments: &[&str]) -> (Option<i32>, String) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/faults/leaks/trial.py");
    let mut command = Command::new("python3");
    command.arg("-B").arg(program).args(["--binary", env!("CARGO_BIN_EXE_toolyard")]).args(arguments);
    match command.output() {
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            (output.status.code(), String::from_utf8_lossy(&text).into_owned())
        }
        Err(error) => (None, error.to_string()),
    }
}

#[test]
fn callers_receive_no_words_of_others() {
    let (code, text) = trial(&["--callers", "10", "--calls", "40"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(" 0 canaries crossed"), "{text}");
}

#[test]
fn a_server_that_mixes_up_callers_is_found() {
    let (code, text) = trial(&["--callers", "4", "--calls", "30", "--plant", "server"]);
    assert_eq!(code, Some(1), "{text}");
}

#[test]
fn a_key_that_two_callers_share_is_found() {
    let (code, text) = trial(&["--callers", "4", "--calls", "30", "--plant", "key"]);
    assert_eq!(code, Some(1), "{text}");
}
