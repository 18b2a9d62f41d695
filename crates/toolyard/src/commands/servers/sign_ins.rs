//! `toolyard servers sign-ins` and `logout --caller`: the stored sign-ins of callers.

use serde_json::json;
use toolyard_core::DataOwner;
use toolyard_mcp_client::{
    config::TransportConfig,
    oauth::{StoredSignIn, TokenKey, TokenStore, TokenStoreError},
};

use super::find_config;
use crate::{
    config::{CliContext, ServerCredentials},
    error::CliError,
    terminal::Output,
};

/// Digits of a caller's id that are shown, and needed to name it.
const ID_CHARS: usize = 16;

/// Lists the callers with tokens of their own.
pub(super) fn list(name: Option<&str>, context: &CliContext, output: &Output) -> Result<(), CliError> {
    if let Some(name) = name {
        find_config(name, context)?;
    }
    let store = token_store(context)?;
    let servers = context.servers.iter().filter(|config| {
        matches!(config.transport, TransportConfig::Http { .. })
            && name.is_none_or(|name| config.id.as_str() == name)
    });
    let mut rows = Vec::new();
    for config in servers {
        let sign_ins = store.sign_ins(config.id.as_str()).map_err(|error| failed(&error))?;
        rows.extend(sign_ins.into_iter().map(|sign_in| (config.id.to_string(), sign_in)));
    }
    if output.is_json() {
        let row = |(server, sign_in): &(String, StoredSignIn)| json!({"server": server, "caller": sign_in.caller, "id": short_id(sign_in)});
        output.json(&rows.iter().map(row).collect::<Vec<_>>());
    } else if rows.is_empty() {
        output.message("No caller has signed in to a server.");
    } else {
        let row = |(server, sign_in): (String, StoredSignIn)| {
            let id = short_id(&sign_in);
            [server, sign_in.caller.unwrap_or_else(|| "unreadable".to_owned()), id]
        };
        output.table(["SERVER", "CALLER", "ID"], rows.into_iter().map(row).collect());
    }
    Ok(())
}

/// Removes the tokens of a caller for a server.
pub(super) fn remove(
    name: &str,
    caller: &str,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    find_config(name, context)?;
    let store = token_store(context)?;
    let sign_ins = store.sign_ins(name).map_err(|error| failed(&error))?;
    let is_named =
        |sign_in: &&StoredSignIn| sign_in.caller.as_deref() == Some(caller) || short_id(sign_in) == caller;
    let found: Vec<&StoredSignIn> = sign_ins.iter().filter(is_named).collect();
    let hint = format!("list them: toolyard servers sign-ins {name}");
    let [sign_in] = found.as_slice() else {
        let message = match found.len() {
            0 => format!("caller `{caller}` has not signed in to `{name}`"),
            count => {
                format!("{count} callers named `{caller}` have signed in to `{name}`; use the id of one")
            }
        };
        return Err(CliError::usage(message).with_hint(hint));
    };
    let key = TokenKey::new(name, DataOwner::Caller(sign_in.owner));
    store.remove(&key).map_err(|error| failed(&error))?;
    output.report(
        &json!({"server": name, "caller": sign_in.caller, "id": short_id(sign_in)}),
        &format!(
            "deleted the tokens of {caller} for {name}; running gateways stop using them within seconds"
        ),
    );
    Ok(())
}

fn short_id(sign_in: &StoredSignIn) -> String {
    sign_in.owner.to_string().chars().take(ID_CHARS).collect()
}

fn token_store(context: &CliContext) -> Result<TokenStore, CliError> {
    ServerCredentials::new(context).token_store().map_err(|error| CliError::failed(error.to_string()))
}

fn failed(error: &TokenStoreError) -> CliError {
    CliError::failed(error.to_string())
}
