//! `toolyard callers`: adds, lists and revokes callers with API keys.

use jiff::{Span, SpanRelativeTo, Timestamp};
use serde_json::{Value, json};
use toolyard_core::{API_KEY_ISSUER, CallerIdentity, CallerStore as _, StoredCaller, unix_millis};
use toolyard_identity::{ApiKey, NewCaller};
use toolyard_store::Store;

use super::setup::require_store;
use crate::{
    cli::{AddCallerArgs, CallersCommand},
    config::{CliContext, ServerCredentials, current_user},
    error::CliError,
    terminal::Output,
};

/// How the main endpoint is written, whose name is empty. No profile can have this name.
pub(super) const MAIN_ENDPOINT: &str = "/";

pub(super) async fn run(
    command: CallersCommand,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let store = require_store(context)?;
    match command {
        CallersCommand::Add(arguments) => add(arguments, store, context, output).await,
        CallersCommand::List => list(store, output).await,
        CallersCommand::Rotate { name, expires } => {
            rotate(&name, expires.as_deref(), store, context, output).await
        }
        CallersCommand::Revoke { name } => revoke(&name, store, context, output).await,
    }
}

async fn add(
    arguments: AddCallerArgs,
    store: &Store,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let AddCallerArgs { name, profiles, agents, expires } = arguments;
    NewCaller::check_name(&name).map_err(|error| {
        CliError::usage(error.to_string()).with_hint("for example: toolyard callers add ci")
    })?;
    let profiles = allowed_profiles(profiles, context)?;
    let caller = NewCaller::new(&name)
        .with_profiles(profiles)
        .with_agents((!agents.is_empty()).then_some(agents))
        .expiring_at(expires.as_deref().map(expiry).transpose()?);
    let key = generate_key()?;
    let caller = caller.with_key(&key);
    if !store.add_caller(&caller, &current_user()).await.map_err(CliError::store)? {
        let message = format!("there is or was a caller `{name}`; names are not given to others");
        let hint = "choose another name; for another key of a caller that is not revoked: toolyard callers rotate NAME";
        return Err(CliError::usage(message).with_hint(hint));
    }
    print_key(&key, &caller, "added", output);
    Ok(())
}

async fn rotate(
    name: &str,
    expires: Option<&str>,
    store: &Store,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let expires_at = expires.map(expiry).transpose()?;
    let callers = store.callers().await.map_err(CliError::store)?;
    let had_expiry = callers.iter().any(|caller| caller.name == name && caller.key.expires_at.is_some());
    let key = generate_key()?;
    let replaced = store.replace_caller_key(name, &key.stored(expires_at), &current_user()).await;
    if !replaced.map_err(CliError::store)? {
        return Err(unknown_caller(name, store).await);
    }
    let callers = store.callers().await.map_err(CliError::store)?;
    let caller = callers.into_iter().find(|caller| caller.name == name);
    print_key(
        &key,
        &caller.unwrap_or_else(|| NewCaller::new(name).with_key(&key)),
        "replaced the key of",
        output,
    );
    if had_expiry && expires_at.is_none() && !output.is_json() {
        output.message(&format!(
            "  note: the previous key had an expiry, the new one never expires; hint: toolyard callers rotate {name} --expires 90d"
        ));
    }
    if ServerCredentials::new(context).has_tokens() && !output.is_json() {
        output.message(
            "  note: sign-ins at servers stay; if the old key was stolen, check them: toolyard servers sign-ins",
        );
    }
    Ok(())
}

async fn revoke(name: &str, store: &Store, context: &CliContext, output: &Output) -> Result<(), CliError> {
    if !store.revoke_caller(name, &current_user()).await.map_err(CliError::store)? {
        return Err(unknown_caller(name, store).await);
    }
    let credentials = ServerCredentials::new(context);
    if credentials.has_tokens() {
        let identity = CallerIdentity::principal(API_KEY_ISSUER, name);
        let forgotten =
            credentials.token_store().and_then(|store| Ok(store.remove_caller(identity.owner())?));
        forgotten.map_err(|error| {
            CliError::failed(format!("revoked {name}, but its tokens for servers are not deleted: {error}"))
                .with_hint("delete them: toolyard servers logout SERVER --caller CALLER")
        })?;
    }
    output.report(
        &json!({ "revoked": name }),
        &format!("revoked {name}; running gateways refuse it within a second"),
    );
    Ok(())
}

async fn list(store: &Store, output: &Output) -> Result<(), CliError> {
    let callers = store.callers().await.map_err(CliError::store)?;
    if output.is_json() {
        output.json(&callers.iter().map(caller_json).collect::<Vec<_>>());
    } else if callers.is_empty() {
        output.message("No callers yet. Add one: toolyard callers add NAME");
    } else {
        let row = |caller: &StoredCaller| {
            let names = |allowed: &Option<Vec<String>>| match allowed {
                None => "all".to_owned(),
                Some(names) => names.iter().map(|name| endpoint_label(name)).collect::<Vec<_>>().join(", "),
            };
            [
                caller.name.clone(),
                status(caller).to_owned(),
                caller.key.id.clone(),
                names(&caller.allowed_profiles),
                names(&caller.allowed_agents),
                timestamp(caller.created_at),
                caller.key.expires_at.map_or("never".to_owned(), timestamp),
            ]
        };
        let headings = ["NAME", "STATUS", "KEY", "PROFILES", "AGENTS", "ADDED", "EXPIRES"];
        output.table(headings, callers.iter().map(row).collect());
    }
    Ok(())
}

/// Prints a key as data, and what to do with it as a message.
fn print_key(key: &ApiKey, caller: &StoredCaller, action: &str, output: &Output) {
    if output.is_json() {
        let mut caller = caller_json(caller);
        if let Some(fields) = caller.as_object_mut() {
            fields.insert("api_key".to_owned(), key.text().into());
        }
        return output.json(&caller);
    }
    output.message(&format!(
        "{action} {}; the key is not shown again. Clients send it as: Authorization: Bearer KEY",
        caller.name
    ));
    output.verbatim(key.text());
}

fn caller_json(caller: &StoredCaller) -> Value {
    let labels = |names: &Vec<String>| names.iter().map(|name| endpoint_label(name)).collect::<Vec<_>>();
    json!({
        "name": caller.name,
        "status": status(caller),
        "key": caller.key.id,
        "profiles": caller.allowed_profiles.as_ref().map(labels),
        "agents": caller.allowed_agents,
        "added_at": timestamp(caller.created_at),
        "expires_at": caller.key.expires_at.map(timestamp),
        "revoked_at": caller.revoked_at.map(timestamp),
    })
}

fn status(caller: &StoredCaller) -> &'static str {
    match caller.revoked_at {
        Some(_) => "revoked",
        None if caller.is_valid_at(unix_millis()) => "valid",
        None => "expired",
    }
}

fn endpoint_label(profile: &str) -> String {
    if profile.is_empty() { MAIN_ENDPOINT.to_owned() } else { profile.to_owned() }
}

/// The profiles by the names that the gateway uses. A misspelt one is an error.
fn allowed_profiles(profiles: Vec<String>, context: &CliContext) -> Result<Option<Vec<String>>, CliError> {
    let known = &context.settings.serve.profiles;
    let unknown = |name: &&String| *name != MAIN_ENDPOINT && !known.contains_key(*name);
    if let Some(name) = profiles.iter().find(unknown) {
        let names: Vec<&str> = known.keys().map(String::as_str).chain([MAIN_ENDPOINT]).collect();
        let hint =
            format!("profiles are in [serve.profiles] of toolyard.toml; there are: {}", names.join(", "));
        return Err(CliError::usage(format!("there is no profile `{name}`")).with_hint(hint));
    }
    let name = |profile: String| if profile == MAIN_ENDPOINT { String::new() } else { profile };
    Ok((!profiles.is_empty()).then(|| profiles.into_iter().map(name).collect()))
}

/// When a key expires that is valid this long, in milliseconds since 1970.
fn expiry(text: &str) -> Result<i64, CliError> {
    let invalid = || {
        CliError::usage(format!("invalid duration `{text}`"))
            .with_hint("such as 90d, 12h or 30m; without --expires, a key is valid for ever")
    };
    let span: Span = text.parse().map_err(|_| invalid())?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| invalid())?;
    let milliseconds = i64::try_from(duration.as_millis()).map_err(|_| invalid())?;
    let expires_at = unix_millis().checked_add(milliseconds).ok_or_else(invalid)?;
    if milliseconds > 0 && Timestamp::from_millisecond(expires_at).is_ok() {
        Ok(expires_at)
    } else {
        Err(invalid())
    }
}

fn timestamp(milliseconds: i64) -> String {
    let at = Timestamp::from_millisecond(milliseconds);
    at.map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default()
}

fn generate_key() -> Result<ApiKey, CliError> {
    ApiKey::generate().map_err(|error| CliError::failed(error.to_string()))
}

async fn unknown_caller(name: &str, store: &Store) -> CliError {
    let callers = store.callers().await.unwrap_or_default();
    if callers.iter().any(|caller| caller.name == name) {
        return CliError::usage(format!("caller `{name}` is revoked already")).with_hint(
            "its name is not given again; add a caller with another name: toolyard callers add NAME",
        );
    }
    CliError::usage(format!("there is no caller `{name}`")).with_hint("list them: toolyard callers list")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_expire_after_days_hours_or_minutes() {
        const HOUR: i64 = 3_600_000;
        for (text, hours) in [("90d", 90 * 24), ("2w", 14 * 24), ("12h", 12), ("1d 12h", 36)] {
            let expires_at = expiry(text).unwrap_or_else(|_| panic!("{text}"));
            assert!((expires_at - unix_millis() - hours * HOUR).abs() < 10_000, "{text}");
        }
        for text in ["", "0d", "-1d", "soon", "1mo", "1y", "9999999d", "90"] {
            assert!(expiry(text).is_err(), "{text}");
        }
    }
}
