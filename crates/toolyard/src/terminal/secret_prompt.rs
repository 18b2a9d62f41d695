//! Reads a secret: at a terminal without showing it, else from standard input.

use std::io::{IsTerminal as _, Read as _, Write as _};

use toolyard_mcp_client::SecretText;

use crate::error::{CliError, ExitStatus};

/// Linux passes no longer value to a program, and no secret is that long.
const MAX_SECRET_BYTES: usize = 64 << 10;

/// The secret that the user types, or all of standard input without the line feed at its end.
pub(crate) fn read_secret(name: &str) -> Result<SecretText, CliError> {
    let text = if std::io::stdin().is_terminal() { prompt(name)? } else { read_stdin()? };
    check(&text, name)?;
    Ok(SecretText::new(text))
}

fn read_stdin() -> Result<String, CliError> {
    let limit = u64::try_from(MAX_SECRET_BYTES).unwrap_or(u64::MAX).saturating_add(2);
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(limit).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| CliError::usage("the secret is not UTF-8 text"))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

fn check(text: &str, name: &str) -> Result<(), CliError> {
    let problem = match text {
        "" => "is empty",
        _ if text.len() > MAX_SECRET_BYTES => "is longer than 64 KiB",
        _ if text.contains('\0') => "contains a zero byte",
        _ => return Ok(()),
    };
    Err(CliError::usage(format!("the value of `{name}` {problem}"))
        .with_hint(format!("type it, or pass it on standard input: toolyard secrets set {name} < FILE")))
}

fn failed(error: &dyn std::fmt::Display) -> CliError {
    CliError::failed(format!("failed to read the secret: {error}"))
}

/// Asks at the terminal. Keystrokes are read one by one, so that Ctrl-C restores the terminal before the program ends.
fn prompt(name: &str) -> Result<String, CliError> {
    let hidden = HiddenInput::start().map_err(|error| failed(&error))?;
    let _ = write!(anstream::stderr(), "{name}: ");
    let mut typed = Vec::new();
    let mut stdin = std::io::stdin().lock();
    let outcome = loop {
        let mut byte = [0];
        match stdin.read(&mut byte) {
            Ok(0) => break Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => break Err(failed(&error)),
        }
        let [byte] = byte;
        match edit(&mut typed, byte) {
            Edit::Continue if typed.len() <= MAX_SECRET_BYTES => {}
            Edit::Continue | Edit::Finish => break Ok(()),
            Edit::Cancel => {
                break Err(CliError::new(ExitStatus::Interrupted, "interrupted: nothing was stored"));
            }
        }
    };
    drop(hidden);
    let _ = writeln!(anstream::stderr());
    outcome?;
    String::from_utf8(typed).map_err(|_| CliError::usage("the secret is not UTF-8 text"))
}

#[derive(Debug, PartialEq, Eq)]
enum Edit {
    Continue,
    Finish,
    Cancel,
}

/// Applies a keystroke to the typed bytes.
fn edit(typed: &mut Vec<u8>, byte: u8) -> Edit {
    match byte {
        b'\n' | b'\r' | 0x04 => return Edit::Finish,
        // Ctrl-C and Ctrl-\.
        0x03 | 0x1c => return Edit::Cancel,
        // Backspace removes a character, which may have several bytes.
        0x08 | 0x7f => while typed.pop().is_some_and(|removed| removed & 0xc0 == 0x80) {},
        // Ctrl-U.
        0x15 => typed.clear(),
        byte => typed.push(byte),
    }
    Edit::Continue
}

/// The terminal shows no input until this is dropped.
struct HiddenInput(#[cfg(unix)] rustix::termios::Termios);

impl HiddenInput {
    #[cfg(unix)]
    fn start() -> std::io::Result<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(std::io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        // Keystrokes typed before the prompt are discarded.
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self(before))
    }

    #[cfg(not(unix))]
    fn start() -> std::io::Result<Self> {
        Err(std::io::Error::other("this system cannot hide input: pass the secret on standard input"))
    }
}

#[cfg(unix)]
impl Drop for HiddenInput {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        // Fails only if the terminal is gone.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_keys(keys: &[u8]) -> (String, Option<Edit>) {
        let mut typed = Vec::new();
        let end = keys.iter().map(|key| edit(&mut typed, *key)).find(|edit| *edit != Edit::Continue);
        (String::from_utf8(typed).unwrap(), end)
    }

    #[test]
    fn keystrokes_are_edited() {
        assert_eq!(type_keys(b"hunter2\n"), ("hunter2".to_owned(), Some(Edit::Finish)));
        assert_eq!(type_keys(b"hunter3\x7f2\r"), ("hunter2".to_owned(), Some(Edit::Finish)));
        assert_eq!(type_keys("aé\u{7f}b\n".as_bytes()), ("ab".to_owned(), Some(Edit::Finish)));
        assert_eq!(type_keys(b"\x7fa\x15b"), ("b".to_owned(), None));
        assert_eq!(type_keys(b"hun\x03").1, Some(Edit::Cancel));
    }

    #[test]
    fn unusable_values_are_refused_without_being_shown() {
        for text in ["", "canary\0", &"canary".repeat(20_000)] {
            let error = check(text, "TOKEN").unwrap_err();
            assert!(error.message().starts_with("the value of `TOKEN`"), "{error:?}");
            assert!(!format!("{error:?}").contains("canary"));
        }
        assert!(check("a\nb", "TOKEN").is_ok(), "a key in PEM has several lines");
    }
}
