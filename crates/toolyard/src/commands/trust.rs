//! `toolyard trust`: lets files of a project decide what only the operator may.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use toolyard_core::{Servers as _, TrustDecision};

use crate::{
    commands::kept,
    failure::{Code, Failure},
    folders::{Workplace, trust_in},
    output::Output,
};

/// Trusts the files of the project that need it, as they are now.
pub(crate) async fn run(yes: bool, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    if workplace.trustable.is_empty() {
        output.talk("nothing of this project needs trust, or all of it has it already");
        return Ok(());
    }
    // What is trusted is what was there before the question; a change in between is not.
    let now = jiff::Timestamp::now().as_millisecond();
    let decisions: Vec<TrustDecision> =
        workplace.trustable.iter().map(|file| trust_in(file, now)).collect::<Result<_, _>>()?;
    let files: Vec<String> = workplace.trustable.iter().map(|file| file.display().to_string()).collect();
    let about = format!("{} would be used: {}", files.join(", "), workplace.not_trusted.join(", "));
    let question = "They may start programs, send keys to servers they name, and declare tools harmless.";
    if !yes && !agreed("this project", &about, question, output)? {
        return Err(Failure::new(Code::Refused, "this project was not trusted"));
    }
    for decision in &decisions {
        kept(workplace)?.put_trust(decision).await.map_err(|error| Failure::new(Code::Failed, error))?;
    }
    output.talk(&format!("trusted {} as it is now; a change must be trusted again", files.join(", ")));
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
    confirmed("Trust it as it is now?")
}

/// Asks a person one question; where nobody can be asked, it is an error.
pub(crate) fn confirmed(question: &str) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(Code::Refused, "nobody can be asked here").with_hint("say it with --yes"));
    }
    let _ = write!(anstream::stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
