//! `toolyard guard`: the small process between us and one server, which leaves nothing of it behind; not for people.

use std::{ffi::OsString, process::ExitCode};

use toolyard_mcp::client::{GuardProgram, guard};

/// The word that makes this program a guardian.
pub(crate) const WORD: &str = "guard";

/// How guardians are started; the name of the server follows, so that people see who is who.
pub(crate) fn program() -> Option<GuardProgram> {
    let program = std::env::current_exe().ok()?;
    Some(GuardProgram { program, args: vec![WORD.into()] })
}

/// Guards one server until nothing of it is left. The first word is its name.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    let code = guard(words.skip(1));
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// The guardians of a server, by its label, whichever process of this user started them.
#[cfg(target_os = "linux")]
pub(crate) fn of_server(label: &str) -> Vec<i32> {
    let Ok(own) = std::env::current_exe() else { return Vec::new() };
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_guardian = |number: &i32| {
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        let same_program = std::fs::read_link(format!("/proc/{number}/exe")).is_ok_and(|exe| exe == own);
        same_program
            && words.nth(1).is_some_and(|word| word == WORD.as_bytes())
            && words.next().is_some_and(|word| word == label.as_bytes())
    };
    numbers.filter(is_guardian).collect()
}

/// Elsewhere guardians cannot be found by name.
#[cfg(not(target_os = "linux"))]
pub(crate) fn of_server(_name: &str) -> Vec<i32> {
    Vec::new()
}

/// Asks a guardian to take its server down; whether it heard.
#[cfg(unix)]
pub(crate) fn ask_to_stop(number: i32) -> bool {
    let process = rustix::process::Pid::from_raw(number);
    process
        .is_some_and(|process| rustix::process::kill_process(process, rustix::process::Signal::TERM).is_ok())
}

/// Elsewhere there are no guardians.
#[cfg(not(unix))]
pub(crate) fn ask_to_stop(_number: i32) -> bool {
    false
}
