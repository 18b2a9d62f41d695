//! `toolyard guard` (internal): the small parent process of one stdio server, which ends the server's whole process tree
//! when Toolyard exits or is killed.

use std::{ffi::OsString, process::ExitCode};

use toolyard_mcp_client::{GuardProgram, SERVER_VARIABLE, run_guard};
use toolyard_tools::skill::SKILL_FOLDER_VARIABLE;

/// The first argument that selects guard mode.
pub(crate) const GUARD_COMMAND: &str = "guard";
/// The name of this program's processes.
#[cfg(target_os = "linux")]
const PROGRAM_NAME: &str = "toolyard";

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

/// Keeps other processes of this user, such as stdio servers, from reading the memory and the environment of this process.
/// Without effect on processes that it starts.
#[cfg(target_os = "linux")]
pub(crate) fn deny_inspection() {
    // Fails on no known kernel; without it, the program works as before.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Other systems have their own rules.
#[cfg(not(target_os = "linux"))]
pub(crate) fn deny_inspection() {}

/// Whether a server or a program of a skill started this process, directly or not: its environment says so, or an ancestor is
/// a guard (which adopts the orphans of its server) or another Toolyard process. A process that clears its environment and
/// leaves this process tree is not recognized.
pub(crate) fn is_started_by_source() -> bool {
    [SERVER_VARIABLE, SKILL_FOLDER_VARIABLE].iter().any(|name| std::env::var_os(name).is_some())
        || has_toolyard_ancestor()
}

#[cfg(target_os = "linux")]
fn has_toolyard_ancestor() -> bool {
    /// No process tree is deeper; ends the loop if ids are reused meanwhile.
    const MAX_ANCESTORS: usize = 10_000;
    let Some(this) = ProcessStatus::read(std::process::id()) else { return false };
    let is_toolyard = |process: &ProcessStatus| {
        [this.name.as_str(), PROGRAM_NAME].contains(&process.name.as_str())
            || is_guard_command_line(
                &std::fs::read(format!("/proc/{}/cmdline", process.id)).unwrap_or_default(),
            )
    };
    let parent = |process: &ProcessStatus| ProcessStatus::read(process.parent);
    std::iter::successors(parent(&this), parent).take(MAX_ANCESTORS).any(|process| is_toolyard(&process))
}

/// Without `/proc`, ancestors are not known.
#[cfg(not(target_os = "linux"))]
fn has_toolyard_ancestor() -> bool {
    false
}

#[cfg(target_os = "linux")]
struct ProcessStatus {
    id: u32,
    /// The name of the program, of at most 15 bytes.
    name: String,
    parent: u32,
}

#[cfg(target_os = "linux")]
impl ProcessStatus {
    /// None if there is no such process, as for the parent of the first one.
    fn read(id: u32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        Some(Self { id, name: field("Name:")?.to_owned(), parent: field("PPid:")?.parse().ok()? })
    }
}

/// Whether arguments, each followed by a zero byte, are those of a guard: `PROGRAM guard LABEL [--grace-ms N] -- COMMAND…`. The
/// program may have any name, so that a server cannot evade the check with a copy of it.
#[cfg(target_os = "linux")]
fn is_guard_command_line(command_line: &[u8]) -> bool {
    let mut arguments = command_line.split(|byte| *byte == 0);
    arguments.nth(1) == Some(GUARD_COMMAND.as_bytes())
        && arguments.skip(1).take(3).any(|argument| argument == b"--")
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn guards_are_recognized_by_their_arguments() {
        assert!(is_guard_command_line(b"/usr/bin/toolyard\0guard\0time-1f\0--\0uvx\0mcp-server-time\0"));
        assert!(is_guard_command_line(b"/tmp/copy\0guard\0time-1f\0--grace-ms\x00500\0--\0uvx\0"));
        assert!(!is_guard_command_line(b"toolyard\0servers\0list\0"));
        assert!(!is_guard_command_line(b"bundle\0exec\0guard\0"));
        assert!(!is_guard_command_line(b""));
    }

    #[test]
    fn ancestors_are_found_up_to_the_first_process() {
        let this = ProcessStatus::read(std::process::id()).unwrap();
        assert_eq!(this.id, std::process::id());
        assert!(ProcessStatus::read(this.parent).is_some() || this.parent == 0);
        assert!(ProcessStatus::read(0).is_none());
        assert!(!has_toolyard_ancestor());
    }

    #[test]
    fn the_process_cannot_be_inspected() {
        deny_inspection();
        let behavior = rustix::process::dumpable_behavior().unwrap();
        assert_eq!(behavior, rustix::process::DumpableBehavior::NotDumpable);
    }
}
