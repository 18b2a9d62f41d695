//! `toolyard trust`: lets a project's `toolyard.toml` decide what only the operator may.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use toolyard_core::Servers as _;

use crate::{
    commands::kept,
    failure::{Code, Failure},
    folders::{Workplace, trust_in},
    output::Output,
};

/// Trusts the settings file in force, as it is now.
pub(crate) async fn run(yes: bool, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let Some(file) = &workplace.settings_file else {
        return Err(Failure::new(Code::BadUse, "there is no toolyard.toml here"));
    };
    if workplace.not_trusted.is_empty() {
        output.talk(&format!("{} needs no trust, or has it already", file.display()));
        return Ok(());
    }
    let decision = trust_in(file, jiff::Timestamp::now().as_millisecond())?;
    let about = format!("{} sets {}", file.display(), workplace.not_trusted.join(", "));
    let question = "It may send keys to servers it names, and declare tools harmless.";
    if !yes && !agreed("toolyard.toml", &about, question, output)? {
        return Err(Failure::new(Code::Refused, "toolyard.toml was not trusted"));
    }
    kept(workplace)?.put_trust(&decision).await.map_err(|error| Failure::new(Code::Failed, error))?;
    output.talk("trusted toolyard.toml as it is now; a change must be trusted again");
    Ok(())
}

/// Asks a person; where nobody can be asked, the answer is no.
pub(crate) fn agreed(name: &str, about: &str, question: &str, output: &Output) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(Code::Refused, format!("{name} was not trusted: nobody can be asked here"))
            .with_hint("look at its files, then say it with --yes"));
    }
    output.talk(about);
    output.talk(question);
    let _ = write!(anstream::stderr(), "Trust it as it is now? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
