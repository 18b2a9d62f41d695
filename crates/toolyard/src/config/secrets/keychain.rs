//! Keys in the keychain of the system, by the program that the system has for it: `secret-tool` for the Secret Service (GNOME
//! Keyring, KWallet) on Linux, `security` for Keychain on macOS. Keys pass through pipes, never through arguments.

use std::{
    io::{ErrorKind, Write as _},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use toolyard_mcp_client::EncryptionKey;

use super::{SecretsError, keys::KeyStore};

const SERVICE: &str = "toolyard";
/// The keychain may ask for its password.
const KEYCHAIN_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Part of the message about a missing program.
pub(super) const NOT_INSTALLED: &str = "is not installed";

#[derive(Debug)]
pub(super) struct Keychain;

impl KeyStore for Keychain {
    fn is_preferred(&self) -> bool {
        program::is_preferred()
    }

    fn load(&self, id: &str) -> Result<Option<EncryptionKey>, SecretsError> {
        let text = ask(program::load(&user(id)), "")?;
        let invalid = |_| SecretsError::Keychain("its entry of Toolyard is not a key".to_owned());
        text.map(|text| EncryptionKey::from_hex(text.trim_end()).map_err(invalid)).transpose()
    }

    fn save(&self, key: &EncryptionKey) -> Result<(), SecretsError> {
        let (command, input) = program::save(&user(&key.id()), &key.to_hex());
        ask(command, &input)?;
        // Not every program reports that it failed.
        match self.load(&key.id())? {
            Some(saved) if saved.id() == key.id() => Ok(()),
            _ => Err(SecretsError::Keychain("it did not keep the key".to_owned())),
        }
    }

    fn remove(&self, id: &str) -> Result<(), SecretsError> {
        ask(program::remove(&user(id)), "").map(drop)
    }
}

fn user(id: &str) -> String {
    format!("key of stored secrets {id}")
}

/// What a program answers; `None` if the keychain has no such entry.
fn ask(command: Command, input: &str) -> Result<Option<String>, SecretsError> {
    run(command, input, KEYCHAIN_TIMEOUT).map_err(SecretsError::Keychain)
}

/// Runs a program, and kills it after this time: it may ask the user for a password.
fn run(mut command: Command, input: &str, limit: Duration) -> Result<Option<String>, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("`{name}` {NOT_INSTALLED}"),
        _ => format!("failed to run `{name}`: {error}"),
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read fails, and says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let failed = |error: std::io::Error| format!("failed to run `{name}`: {error}");
    let deadline = Instant::now() + limit;
    // What these programs write fits into the pipes, so that they end although nothing is read before.
    while child.try_wait().map_err(failed)?.is_none() {
        if Instant::now() >= deadline {
            // It may have ended just now.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("no answer within {} s", limit.as_secs()));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return String::from_utf8(output.stdout).map(Some).map_err(|_| "its entry is not text".to_owned());
    }
    if program::is_absent(&output) {
        return Ok(None);
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Err(match reason.trim() {
        "" => format!("`{name}` failed: {}", output.status),
        reason => format!("`{name}` failed: {reason}"),
    })
}

#[cfg(not(target_os = "macos"))]
mod program {
    use super::{Command, Output, SERVICE};

    const PROGRAM: &str = "secret-tool";

    /// Whether this is the session of a person whose keychain every program of theirs reaches, also one that an editor starts
    /// with few variables: the bus is at its usual address.
    pub(super) fn is_preferred() -> bool {
        let (folder, usual) = usual_bus();
        let is_announced = match std::env::var("DBUS_SESSION_BUS_ADDRESS") {
            Ok(address) => address == usual || address.starts_with(&format!("{usual},")),
            Err(_) => std::env::var("XDG_RUNTIME_DIR").is_ok_and(|announced| announced == folder),
        };
        is_announced && std::path::Path::new(&folder).join("bus").exists() && is_installed()
    }

    /// The folder and the address of the session's bus.
    fn usual_bus() -> (String, String) {
        let folder = format!("/run/user/{}", rustix::process::getuid().as_raw());
        let address = format!("unix:path={folder}/bus");
        (folder, address)
    }

    fn is_installed() -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(PROGRAM).is_file())
    }

    fn command(action: &str, options: &[&str], user: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg(action).args(options).args(["service", SERVICE, "username", user]);
        // An editor may start Toolyard without this variable.
        if std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_none() {
            command.env("DBUS_SESSION_BUS_ADDRESS", usual_bus().1);
        }
        command
    }

    pub(super) fn load(user: &str) -> Command {
        command("lookup", &[], user)
    }

    pub(super) fn save(user: &str, text: &str) -> (Command, String) {
        (command("store", &["--label", "Toolyard: key of stored secrets"], user), text.to_owned())
    }

    pub(super) fn remove(user: &str) -> Command {
        command("clear", &[], user)
    }

    /// It reports a missing entry by silence.
    pub(super) fn is_absent(output: &Output) -> bool {
        output.status.code() == Some(1) && output.stderr.is_empty()
    }
}

#[cfg(target_os = "macos")]
mod program {
    use super::{Command, Output, SERVICE};

    const PROGRAM: &str = "/usr/bin/security";
    /// The last byte of `errSecItemNotFound`.
    const NOT_FOUND: i32 = 44;

    pub(super) fn is_preferred() -> bool {
        true
    }

    fn command(action: &str, user: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args([action, "-s", SERVICE, "-a", user]);
        command
    }

    pub(super) fn load(user: &str) -> Command {
        let mut command = command("find-generic-password", user);
        command.arg("-w");
        command
    }

    /// Reads its command from standard input, because arguments are visible to other programs.
    pub(super) fn save(user: &str, text: &str) -> (Command, String) {
        let mut command = Command::new(PROGRAM);
        command.arg("-i");
        (command, format!("add-generic-password -U -s {SERVICE} -a \"{user}\" -w {text}\n"))
    }

    pub(super) fn remove(user: &str) -> Command {
        command("delete-generic-password", user)
    }

    pub(super) fn is_absent(output: &Output) -> bool {
        output.status.code() == Some(NOT_FOUND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_gets_its_input_and_its_output_is_the_answer() {
        assert_eq!(run(shell("cat"), "00ff", KEYCHAIN_TIMEOUT), Ok(Some("00ff".to_owned())));
    }

    #[test]
    fn failures_say_what_the_program_said() {
        let failed =
            run(shell("echo secret; echo 'the collection is locked' >&2; exit 1"), "", KEYCHAIN_TIMEOUT)
                .unwrap_err();
        assert_eq!(failed, "`/bin/sh` failed: the collection is locked");
        let missing = run(Command::new("/nonexistent/secret-tool"), "", KEYCHAIN_TIMEOUT).unwrap_err();
        assert!(missing.contains("is not installed"), "{missing}");
        let hint = SecretsError::Keychain(missing).hint().unwrap();
        assert!(hint.contains("libsecret-tools"), "{hint}");
        assert!(run(shell("kill -9 $$"), "", KEYCHAIN_TIMEOUT).is_err());
    }

    #[test]
    fn a_program_that_does_not_answer_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let late = folder.path().join("late");
        let script = format!("sleep 1; touch '{}'", late.display());
        let slow = run(shell(&script), "", Duration::from_millis(50)).unwrap_err();
        assert!(slow.contains("no answer"), "{slow}");
        std::thread::sleep(Duration::from_millis(1_500));
        assert!(!late.exists());
    }

    #[cfg(not(target_os = "macos"))]
    #[test]
    fn silence_means_that_there_is_no_entry() {
        assert_eq!(run(shell("exit 1"), "", KEYCHAIN_TIMEOUT), Ok(None));
    }

    #[test]
    fn a_key_is_not_among_the_arguments() {
        let (command, input) = program::save("user", "00ff");
        assert!(input.contains("00ff"));
        assert!(!command.get_args().any(|argument| argument.to_string_lossy().contains("00ff")));
    }
}
