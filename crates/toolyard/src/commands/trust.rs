//! `toolyard trust`: trusts a project's settings files with their current content.

use toolyard_core::{Servers as _, TrustDecision};

use super::setup::require_store;
use crate::{
    config::{CliContext, trust_decision},
    error::CliError,
    terminal::{Output, confirm},
};

pub(super) async fn run(yes: bool, context: &CliContext, output: &Output) -> Result<(), CliError> {
    if context.untrusted_files.is_empty() {
        output.message("this project has no files that need trust");
        return Ok(());
    }
    // Hashed before the prompt, so that a change made meanwhile is not trusted.
    let now = jiff::Timestamp::now().as_millisecond();
    let decisions: Vec<TrustDecision> =
        context.untrusted_files.iter().map(|file| trust_decision(file, now)).collect::<Result<_, _>>()?;
    let files: Vec<String> = context.untrusted_files.iter().map(|file| file.display().to_string()).collect();
    let files = files.join(", ");
    if !yes {
        output.message(&format!("{files} would take effect: {}", context.untrusted_settings.join(", ")));
        output.message(
            "Trusted files may start programs, send keys to servers they name, and declare tools read-only.",
        );
        if !confirm("Trust these files with their current content?", "this project was not trusted")? {
            return Err(CliError::denied("this project was not trusted"));
        }
    }
    for decision in &decisions {
        require_store(context)?.put_trust(decision).await?;
    }
    output.message(&format!("trusted {files}; changed files must be trusted again"));
    Ok(())
}
