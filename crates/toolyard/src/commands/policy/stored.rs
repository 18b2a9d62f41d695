//! `toolyard policy set`, `list` and `remove`: policies in the store, which all gateways obey.

use std::path::Path;

use serde_json::json;
use toolyard::{load_policy, load_policy_files};
use toolyard_core::{PolicyStore as _, StoredPolicy, unix_millis};

use super::unusable;
use crate::{
    commands::setup::require_store,
    config::{CliContext, current_user},
    error::CliError,
    terminal::Output,
};

const MAX_NAME_LENGTH: usize = 64;

/// The policies of the store; none without a store.
pub(super) async fn read(context: &CliContext) -> Result<Vec<StoredPolicy>, CliError> {
    match &context.store {
        Some(store) => store.stored_policies().await.map_err(CliError::store),
        None => Ok(Vec::new()),
    }
}

pub(super) async fn set(
    name: &str,
    file: &Path,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let store = require_store(context)?;
    let is_valid_name = !name.is_empty()
        && name.len() <= MAX_NAME_LENGTH
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !is_valid_name {
        let message = format!("`{name}` cannot be the name of policies");
        let hint = "use up to 64 letters, digits and the characters `-`, `_` and `.`: toolyard policy set team team.cedar";
        return Err(CliError::usage(message).with_hint(hint));
    }
    let text = std::fs::read_to_string(file).map_err(|error| CliError::file("read", file, error))?;
    let mut stored = store.stored_policies().await.map_err(CliError::store)?;
    stored.retain(|policy| policy.name != name);
    stored.push(StoredPolicy { name: name.to_owned(), text: text.clone(), updated_at: unix_millis() });
    // Together with the others: a gateway loads all of them or none.
    let policy = load_policy(&context.settings, Path::new("."), &stored).map_err(unusable)?;
    policy.warnings().iter().for_each(|warning| output.message(&format!("warning: {warning}")));
    store.set_policy(name, &text, &current_user()).await.map_err(CliError::store)?;
    let message = format!("stored the policies `{name}`; running gateways obey them within a few seconds");
    output.report(&json!({ "set": name }), &message);
    Ok(())
}

pub(super) async fn remove(name: &str, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let store = require_store(context)?;
    if !store.remove_policy(name, &current_user()).await.map_err(CliError::store)? {
        return Err(CliError::usage(format!("the store has no policies `{name}`"))
            .with_hint("list them: toolyard policy list"));
    }
    let message = format!("removed the policies `{name}`; running gateways forget them within a few seconds");
    output.report(&json!({ "removed": name }), &message);
    Ok(())
}

pub(super) async fn list(context: &CliContext, output: &Output) -> Result<(), CliError> {
    let mut rows = Vec::new();
    for file in &context.settings.policy.files {
        let policy =
            load_policy_files(&context.settings, std::slice::from_ref(file), &[]).map_err(unusable)?;
        rows.push(("file", file.display().to_string(), policy.policy_count()));
    }
    for stored in read(context).await? {
        let documents = std::slice::from_ref(&stored);
        let policy = load_policy_files(&context.settings, &[], documents).map_err(unusable)?;
        rows.push(("store", stored.name, policy.policy_count()));
    }
    if output.is_json() {
        let row = |(origin, name, policies): &(&str, String, usize)| json!({"origin": origin, "name": name, "policies": policies});
        output.json(&rows.iter().map(row).collect::<Vec<_>>());
    } else if rows.is_empty() {
        output.message("No policies yet. Store some: toolyard policy set NAME FILE");
    } else {
        let row = |(origin, name, policies): &(&str, String, usize)| {
            [(*origin).to_owned(), name.clone(), policies.to_string()]
        };
        output.table(["ORIGIN", "NAME", "POLICIES"], rows.iter().map(row).collect());
    }
    Ok(())
}
