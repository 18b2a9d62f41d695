//! `toolyard secrets`: sets, lists and removes stored secrets, and changes their key. No value is ever printed.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolyard_core::{AuditedDecision, ContentHash};
use toolyard_mcp_client::config::{STORED_SECRET_PREFIX, is_secret_name};

use super::connect::undo_record::record_files;
use crate::{
    cli::SecretsCommand,
    config::{
        CliContext, record_decision,
        secrets::{KeyPlace, referenced_secrets},
    },
    error::CliError,
    terminal::{Output, pluralize, read_secret},
};

pub(super) async fn run(
    command: SecretsCommand,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        SecretsCommand::Set { name } => set(&name, context, output).await,
        SecretsCommand::List => list(context, output),
        SecretsCommand::Remove { name, force } => remove(&name, force, context, output).await,
        SecretsCommand::RotateKey { to } => rotate_key(to, context, output).await,
    }
}

async fn set(name: &str, context: &CliContext, output: &Output) -> Result<(), CliError> {
    if !is_secret_name(name) {
        return Err(CliError::usage(format!("`{name}` is not a valid name of a secret"))
            .with_hint("use letters, digits and _, and start with a letter: GITHUB_TOKEN"));
    }
    let secrets = context.stored_secrets();
    // Before the question: a key that is missing must not cost the user the typed value.
    let is_known = secrets.read()?.contains_key(name);
    let value = read_secret(name)?;
    let action = if is_known { "replaced" } else { "stored" };
    record(&format!("{name} {action}"), context).await?;
    secrets.insert([(name.to_owned(), value)])?;
    let place = secrets.key_place()?;
    let used_by = referenced_secrets(&context.server_settings).remove(name).unwrap_or_default();
    let data = json!({"secret": name, "action": action, "key": place.map(KeyPlace::id), "used_by": used_by});
    output.report(&data, &format!("{action} {name}, encrypted with a key in {}", describe(place)));
    if !output.is_json() {
        output.message(&match used_by.as_slice() {
            [] => format!(
                "  hint: refer to it: toolyard servers edit SERVER --set 'env.{name}=${{{STORED_SECRET_PREFIX}{name}}}'"
            ),
            servers => format!(
                "  used by {}; a server that runs gets the new value at its next start: toolyard servers stop NAME",
                servers.join(", ")
            ),
        });
    }
    Ok(())
}

fn list(context: &CliContext, output: &Output) -> Result<(), CliError> {
    let secrets = context.stored_secrets();
    let stored = secrets.read()?;
    let place = secrets.key_place()?;
    let mut used_by = referenced_secrets(&context.server_settings);
    let mut rows: BTreeMap<String, (bool, Vec<String>)> = stored
        .into_keys()
        .map(|name| {
            let servers = used_by.remove(&name).unwrap_or_default();
            (name, (true, servers))
        })
        .collect();
    // What servers refer to and nobody has stored.
    rows.extend(used_by.into_iter().map(|(name, servers)| (name, (false, servers))));
    if output.is_json() {
        let secret = |(name, (is_stored, servers)): (&String, &(bool, Vec<String>))| json!({"name": name, "stored": is_stored, "used_by": servers});
        let list: Vec<Value> = rows.iter().map(secret).collect();
        output.json(&json!({"secrets": list, "file": secrets.file(), "key": place.map(KeyPlace::id)}));
        return Ok(());
    }
    if rows.is_empty() {
        output.message("No secrets are stored");
        output.message("  hint: store one: toolyard secrets set NAME · or take over those of your editors: toolyard import");
        return Ok(());
    }
    let missing = rows.iter().find(|(_, (is_stored, _))| !is_stored).map(|(name, _)| name.clone());
    let row = |(name, (is_stored, servers)): (String, (bool, Vec<String>))| {
        let state = if is_stored { "stored" } else { "missing" };
        [name, state.to_owned(), if servers.is_empty() { "–".to_owned() } else { servers.join(", ") }]
    };
    output.table(["NAME", "STATE", "USED BY"], rows.into_iter().map(row).collect());
    if place.is_some() {
        output.message(&format!(
            "encrypted in {}, with a key in {}",
            secrets.file().display(),
            describe(place)
        ));
    }
    if let Some(name) = missing {
        output.message(&format!("  hint: store what is missing: toolyard secrets set {name}"));
    }
    Ok(())
}

async fn remove(name: &str, force: bool, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let secrets = context.stored_secrets();
    if !secrets.read()?.contains_key(name) {
        return Err(CliError::usage(format!("no secret `{name}` is stored"))
            .with_hint("list them: toolyard secrets list"));
    }
    let used_by = referenced_secrets(&context.server_settings).remove(name).unwrap_or_default();
    if !used_by.is_empty() && !force {
        let message = format!("secret `{name}` is used by {}", used_by.join(", "));
        return Err(CliError::denied(message).with_hint(format!(
            "change or remove these servers first · or remove it anyway: toolyard secrets remove {name} --force"
        )));
    }
    record(&format!("{name} removed"), context).await?;
    secrets.remove(name)?;
    let data = json!({"secret": name, "action": "removed", "used_by": used_by});
    output.report(&data, &format!("removed {name}"));
    Ok(())
}

async fn rotate_key(to: Option<KeyPlace>, context: &CliContext, output: &Output) -> Result<(), CliError> {
    record("key rotated", context).await?;
    let rotation = context.stored_secrets().rotate_key(to, &record_files(&context.data_folder))?;
    let data = json!({
        "action": "rotated", "key": rotation.place.id(), "secrets": rotation.secrets, "undo_records": rotation.records,
        "leftover": rotation.leftover.as_ref().map(ToString::to_string),
    });
    let message = format!(
        "encrypted {} and {} with a new key in {}",
        pluralize(rotation.secrets, "secret"),
        pluralize(rotation.records, "undo record"),
        rotation.place
    );
    output.report(&data, &message);
    if let Some(error) = rotation.leftover.filter(|_| !output.is_json()) {
        output.message(&format!(
            "  note: the old key, which nothing uses any more, could not be removed: {error}"
        ));
    }
    Ok(())
}

fn describe(place: Option<KeyPlace>) -> String {
    place.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// Records a change. The hash is one of the name: that of a value would let readers of the log test guesses.
async fn record(change: &str, context: &CliContext) -> Result<(), CliError> {
    let subject = format!("{}: {change}", context.stored_secrets().file().display());
    record_decision(AuditedDecision::ChangeSecret, &subject, ContentHash::of(change), context).await
}
