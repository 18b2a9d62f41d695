//! `toolyard trust`: trusts a project's settings files with their current content.

use toolyard_core::{AuditedDecision, Servers as _};

use crate::{
    config::{CliContext, UntrustedFile, record_decision},
    error::CliError,
    terminal::{Output, confirm},
};

pub(super) async fn run(yes: bool, context: &CliContext, output: &Output) -> Result<(), CliError> {
    if context.untrusted_files.is_empty() {
        output.message("this project has no files that need trust");
        return Ok(());
    }
    let now = jiff::Timestamp::now().as_millisecond();
    let files: Vec<String> =
        context.untrusted_files.iter().map(|untrusted| untrusted.file.path().display().to_string()).collect();
    let files = files.join(", ");
    output.message(&format!("{files} would take effect: {}", context.untrusted_settings.join(", ")));
    for line in context.untrusted_files.iter().flat_map(describe_servers) {
        output.message(&line);
    }
    if !yes {
        output.message(
            "Trusted files may start programs, send keys to servers they name, and declare tools read-only.",
        );
        if !confirm("Trust these files with their current content?", "this project was not trusted")? {
            return Err(CliError::denied("this project was not trusted"));
        }
    }
    // The decision is on the text that was read before the prompt, so that a change made meanwhile is not trusted.
    for untrusted in &context.untrusted_files {
        let (store, decision) = (context.require_operator_store()?, untrusted.file.trust_decision(now));
        record_decision(AuditedDecision::TrustFile, &decision.subject, decision.content, context).await?;
        store.put_trust(&decision).await?;
    }
    output.message(&format!("trusted {files}; changed files must be trusted again"));
    Ok(())
}

/// A line for each server of a file: what it starts, and whether it replaces a server of the user.
fn describe_servers(untrusted: &UntrustedFile) -> impl Iterator<Item = String> {
    untrusted.servers.iter().map(|server| {
        let replaces = if server.replaces_own { "REPLACES your own server; " } else { "" };
        format!("  server {}: {replaces}{}", server.id, server.transport)
    })
}
