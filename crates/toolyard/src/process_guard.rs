//! `toolyard guard` (internal): the small parent process of one stdio server, which ends the server's whole process tree
//! when Toolyard exits or is killed.

use std::{ffi::OsString, process::ExitCode};

use toolyard_mcp_client::{GuardProgram, run_guard};

/// The first argument that selects guard mode.
pub(crate) const GUARD_COMMAND: &str = "guard";

/// How a guard is started. The server's label (its name and a prefix of its fingerprint) follows as an argument, so that process
/// lists show which server it guards.
pub(crate) fn guard_program() -> Option<GuardProgram> {
    let program = std::env::current_exe().ok()?;
    Some(GuardProgram { program, args: vec![GUARD_COMMAND.into()] })
}

/// Guards one server until its process tree has ended. The first argument is the server's label, the
/// rest is its command.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let code = run_guard(arguments.skip(1));
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Process ids of the guards of a server, whichever Toolyard process started them. Only this user's guards are found, because
/// `/proc/PID/exe` of other users is not readable.
#[cfg(target_os = "linux")]
pub(crate) fn guard_pids(label: &str) -> Vec<i32> {
    let Ok(this_program) = std::env::current_exe() else { return Vec::new() };
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_guard = |pid: &i32| {
        let command_line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut arguments = command_line.split(|byte| *byte == 0);
        let is_toolyard = std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == this_program);
        is_toolyard
            && arguments.nth(1).is_some_and(|argument| argument == GUARD_COMMAND.as_bytes())
            && arguments.next().is_some_and(|argument| argument == label.as_bytes())
    };
    pids.filter(is_guard).collect()
}

/// Without `/proc`, guards cannot be found by label.
#[cfg(not(target_os = "linux"))]
pub(crate) fn guard_pids(_label: &str) -> Vec<i32> {
    Vec::new()
}

/// Sends SIGTERM to a guard; returns whether it was delivered.
#[cfg(unix)]
pub(crate) fn terminate(pid: i32) -> bool {
    let process = rustix::process::Pid::from_raw(pid);
    process
        .is_some_and(|process| rustix::process::kill_process(process, rustix::process::Signal::TERM).is_ok())
}

/// Signals exist on Unix only.
#[cfg(not(unix))]
pub(crate) fn terminate(_pid: i32) -> bool {
    false
}
