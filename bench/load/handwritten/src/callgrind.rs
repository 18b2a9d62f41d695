//! Runs a case of this program under callgrind and returns its instructions. Work of the kernel is not included.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use crate::Outcome;

/// callgrind counts `rep movsb` as one instruction per byte, which would make large copies look expensive. Without it, glibc
/// copies with vector instructions.
const WITHOUT_REP_MOVSB: &str = "glibc.cpu.hwcaps=-ERMS";

/// Counts a whole case.
pub(crate) fn count(case: &[&str]) -> Outcome<f64> {
    finish(start(case)?)
}

/// Counts a server that prints its address and ends with its stdin, while `load` uses it.
pub(crate) fn count_server(case: &[&str], load: impl FnOnce(&str) -> Outcome) -> Outcome<f64> {
    let mut child = start(case)?;
    let mut address = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut address)?;
    }
    let loaded = load(address.trim());
    drop(child.stdin.take());
    let count = finish(child);
    loaded?;
    count
}

fn start(case: &[&str]) -> Outcome<Child> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .arg("case")
        .args(case)
        .env("GLIBC_TUNABLES", WITHOUT_REP_MOVSB)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
        .spawn()
        .map_err(|error| format!("failed to start valgrind: {error}; hint: scripts/parts installs it").into())
}

fn finish(child: Child) -> Outcome<f64> {
    let output = child.wait_with_output()?;
    let talk = String::from_utf8_lossy(&output.stderr);
    let collected = talk.lines().find_map(|line| line.split_once("Collected : "));
    match collected.map(|(_, instructions)| instructions.trim().parse()) {
        Some(Ok(instructions)) if output.status.success() => Ok(instructions),
        _ => Err(format!("the measured process failed ({}): {talk}", output.status).into()),
    }
}
