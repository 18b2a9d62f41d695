//! `toolyard servers edit`, `enable`, `disable`, `trust` and `untrust`: changes settings of one server and preserves the rest
//! of the file.

use std::path::PathBuf;

use toml::{Table, Value};
use toolyard::Settings;
use toolyard_mcp_client::{
    SecretText,
    config::{STORED_SECRET_PREFIX, ServerSettings, change_server},
};

use super::edit::{missing, print_change, print_reload_note};
use crate::{
    cli::EditServerArgs,
    config::{CliContext, current_user, operator_file},
    error::CliError,
    terminal::{Output, confirm, read_secret},
};

/// A setting that is less similar to what was typed is not suggested.
const MIN_SIMILARITY: f32 = 0.7;

/// Sets whether a server is used.
pub(super) async fn set_enabled(
    name: &str,
    is_enabled: bool,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let action = if is_enabled { "enabled" } else { "disabled" };
    change(name, action, context, output, |settings| {
        settings.enabled = is_enabled;
        Ok(())
    })
    .await
}

/// Sets whether the effects that a server states are believed.
pub(super) async fn set_trusted(
    name: &str,
    is_trusted: bool,
    yes: bool,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    if is_trusted && !yes {
        output.message(
            "The effects that a trusted server states for its tools are believed (tools that it calls read-only run without \
             approval), and its tools may replace equivalent ones of other trusted servers.",
        );
        if !confirm(&format!("Trust {name}?"), "the server was not trusted")? {
            return Err(CliError::denied("the server was not trusted"));
        }
    }
    let action = if is_trusted { "trusted" } else { "no longer trusted" };
    change(name, action, context, output, |settings| {
        settings.trusted = is_trusted;
        Ok(())
    })
    .await
}

pub(super) async fn edit(
    arguments: &EditServerArgs,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let name = &arguments.name;
    let mut secret = None;
    change(name, "changed", context, output, |settings| {
        let mut edited = edit_settings(settings, &arguments.set, &arguments.unset)?;
        if let Some(variable) = &arguments.secret {
            refer_to_secret(&mut edited, name, variable)?;
            secret = Some((variable.clone(), secret_value(variable)?));
        }
        // Before the settings that refer to it.
        context.stored_secrets().insert(secret.take())?;
        *settings = edited;
        Ok(())
    })
    .await
}

/// Changes a server of the operator's settings, and says so.
async fn change(
    name: &str,
    action: &str,
    context: &CliContext,
    output: &Output,
    change: impl FnOnce(&mut ServerSettings) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let (file, warnings) = change_settings(name, action, &current_user(), context, change).await?;
    for warning in warnings {
        output.message(&format!("note: {warning}"));
    }
    print_change(output, "server", name, action, &file);
    print_reload_note(context, output);
    Ok(())
}

/// Changes a server of the operator's settings file. Returns the file, and warnings.
pub(super) async fn change_settings(
    name: &str,
    action: &str,
    changed_by: &str,
    context: &CliContext,
    change: impl FnOnce(&mut ServerSettings) -> Result<(), CliError>,
) -> Result<(PathBuf, Vec<String>), CliError> {
    let (file, text) = operator_file::read(context)?;
    let Some(mut settings) = Settings::parse(&text, &file)?.servers.remove(name) else {
        let is_elsewhere = context.servers.iter().any(|server| server.id.as_str() == name);
        let hint = match is_elsewhere {
            true => "change servers of a project or an mcp.json in that file",
            false => "list servers: toolyard servers list",
        };
        return Err(CliError::usage(missing(&file, name)).with_hint(hint));
    };
    let before = settings.clone();
    change(&mut settings)?;
    let invalid = |error: &dyn std::fmt::Display| CliError::usage(error.to_string());
    settings.clone().into_config(name, &context.config_folder).map_err(|error| invalid(&error))?;
    let text = change_server(&text, name, &settings).map_err(|error| invalid(&error))?;
    if let Some(text) = text.filter(|_| settings != before) {
        let change = format!("server {name} {action}");
        operator_file::write_by(changed_by, &file, &text, &change, context).await?;
    }
    Ok((file, settings.warnings(name)))
}

/// The settings with changed and removed keys.
fn edit_settings(
    settings: &ServerSettings,
    set: &[String],
    unset: &[String],
) -> Result<ServerSettings, CliError> {
    let mut table = to_table(settings)?;
    for key in unset {
        remove_key(&mut table, key)?;
    }
    let mut edited = from_table(&table).map_err(|error| CliError::usage(error.message().to_owned()))?;
    for pair in set {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(CliError::usage("--set needs KEY=VALUE").with_hint("example: --set call_timeout=30s"));
        };
        edited = set_key(&edited, key.trim(), value)?;
    }
    Ok(edited)
}

fn to_table(settings: &ServerSettings) -> Result<Table, CliError> {
    Table::try_from(settings).map_err(|error| CliError::failed(error.to_string()))
}

fn from_table(table: &Table) -> Result<ServerSettings, toml::de::Error> {
    toml::from_str(&toml::to_string(table).unwrap_or_default())
}

/// Sets a key, or an entry of a table such as `env.TOKEN`, to a value in TOML, or else to the plain text.
fn set_key(settings: &ServerSettings, key: &str, value: &str) -> Result<ServerSettings, CliError> {
    // Variables and headers are texts, whatever they look like.
    let is_text = key.starts_with("env.") || key.starts_with("headers.");
    let parsed = toml::from_str::<Table>(&format!("v = {value}")).ok().filter(|_| !is_text);
    let parsed = parsed.and_then(|mut parsed| parsed.remove("v"));
    let mut problem = String::new();
    for value in parsed.into_iter().chain([Value::String(value.to_owned())]) {
        let mut table = to_table(settings)?;
        let (target, last_key) = match key.split_once('.') {
            Some((outer, inner)) => {
                let nested = table.entry(outer).or_insert_with(|| Value::Table(Table::new()));
                let not_a_table = || CliError::usage(format!("`{outer}` has no entries of its own"));
                (nested.as_table_mut().ok_or_else(not_a_table)?, inner)
            }
            None => (&mut table, key),
        };
        target.insert(last_key.to_owned(), value);
        match from_table(&table) {
            Ok(edited) => return Ok(edited),
            Err(error) => error.message().clone_into(&mut problem),
        }
    }
    if let Some(error) = unknown_setting(key, &problem) {
        return Err(error);
    }
    // What was found may be a secret; what is expected is not.
    let expected = problem.rsplit_once("expected ").map(|(_, expected)| format!("expected {expected}"));
    let quoted = [format!("\"{value}\""), format!("`{value}`")];
    let hide = |problem: String, quoted: &String| problem.replace(quoted, "…");
    let problem = expected.unwrap_or_else(|| quoted.iter().fold(problem, hide));
    Err(CliError::usage(format!("`{key}` cannot have this value: {problem}"))
        .with_hint("settings of a server: docs/guide/settings.md, `[servers.NAME]`"))
}

/// The error for a setting that does not exist; `problem` names those that do.
fn unknown_setting(key: &str, problem: &str) -> Option<CliError> {
    let (name, known) = problem.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    // A name within the value may be a secret.
    if !key.split('.').any(|part| part == name) {
        return None;
    }
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let similar = similar::get_close_matches(name, &known, 1, MIN_SIMILARITY);
    let error = CliError::usage(format!("unknown setting `{name}`"));
    Some(match similar.first() {
        Some(similar) => error.with_hint(format!("did you mean `{similar}`?")),
        None => error.with_hint("settings of a server: docs/guide/settings.md, `[servers.NAME]`"),
    })
}

fn remove_key(table: &mut Table, key: &str) -> Result<(), CliError> {
    let removed = match key.split_once('.') {
        Some((outer, inner)) => {
            table.get_mut(outer).and_then(Value::as_table_mut).and_then(|nested| nested.remove(inner))
        }
        None => table.remove(key),
    };
    removed.map(|_| ()).ok_or_else(|| CliError::usage(format!("`{key}` is not set")))
}

/// Replaces `${NAME}` by `${secret:NAME}`.
fn refer_to_secret(settings: &mut ServerSettings, server: &str, name: &str) -> Result<(), CliError> {
    let reference = format!("{STORED_SECRET_PREFIX}{name}");
    settings.rename_variable(name, &reference);
    if settings.variables().contains(&reference) {
        return Ok(());
    }
    let message = format!("no setting of server `{server}` refers to `{name}`");
    Err(CliError::usage(message)
        .with_hint(format!("say where it goes: --set 'env.{name}=${{secret:{name}}}'")))
}

/// The value of an environment variable; else it is asked for, or read from standard input.
fn secret_value(name: &str) -> Result<SecretText, CliError> {
    if let Some(value) = std::env::var(name).ok().filter(|value| !value.is_empty()) {
        return Ok(SecretText::new(value));
    }
    read_secret(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(set: &[&str], unset: &[&str]) -> Result<ServerSettings, CliError> {
        let settings: ServerSettings =
            toml::from_str("command = 'x'\nargs = ['a']\nenv = { A = '1' }\nwithout_tools = ['t']").unwrap();
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        edit_settings(&settings, &owned(set), &owned(unset))
    }

    #[test]
    fn keys_are_set_and_removed() {
        let set = [
            "args=[\"b\", \"c\"]",
            "call_timeout=30s",
            "env.TOKEN=${secret:TOKEN}",
            "exclusive=true",
            "env.PORT=8080",
        ];
        let edited = edit(&set, &["without_tools", "env.A"]).unwrap();
        assert_eq!(edited.args, ["b", "c"]);
        let env = [("PORT", "8080"), ("TOKEN", "${secret:TOKEN}")];
        assert_eq!(edited.env, env.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        assert!(edited.exclusive && edited.without_tools.is_empty() && edited.call_timeout.is_some());
        assert_eq!(
            edit(&["command=/opt/my program"], &[]).unwrap().command.as_deref(),
            Some("/opt/my program")
        );
    }

    #[test]
    fn invalid_changes_are_refused_without_values() {
        for (set, unset) in [
            (&["colour=Swordfish"][..], &[][..]),
            (&["call_timeout=Swordfish"], &[]),
            (&["command.x=Swordfish"], &[]),
            (&["exclusive=Swordfish"], &[]),
            (&[], &["idle_stop"]),
        ] {
            let error = edit(set, unset).unwrap_err();
            assert!(!format!("{error:?}").contains("Swordfish"), "{error:?}");
        }
    }

    #[test]
    fn a_misspelt_setting_is_answered_with_the_right_one() {
        let answer = |set: &str| {
            let error = edit(&[set], &[]).unwrap_err();
            format!("{}; {}", error.message(), error.hint().unwrap_or_default())
        };
        assert_eq!(answer("comand=npx"), "unknown setting `comand`; did you mean `command`?");
        assert!(answer("colour=red").starts_with("unknown setting `colour`; settings of a server"));
        assert!(!answer("oauth={ Swordfish = 1 }").contains("Swordfish"));
    }

    #[test]
    fn a_secret_must_be_referred_to() {
        let mut settings = edit(&["env.TOKEN=Bearer ${TOKEN}"], &[]).unwrap();
        refer_to_secret(&mut settings, "x", "TOKEN").unwrap();
        assert_eq!(settings.env["TOKEN"], "Bearer ${secret:TOKEN}");
        refer_to_secret(&mut settings, "x", "TOKEN").unwrap();
        assert!(refer_to_secret(&mut settings, "x", "OTHER").is_err());
    }
}
