//! `toolyard import`: imports the servers of other clients. Their secrets move to the store of secrets.

pub(crate) mod client_files;
pub(super) mod import_for_api;

use std::{collections::BTreeSet, io::IsTerminal as _, path::Path};

use serde_json::{Value, json};
use toolyard::Settings;
use toolyard_mcp_client::config::{
    ConflictPolicy, ImportPlan, PlannedServer, ToolFilter,
    import::{MergedServer, MovedSecret, ServerOrigin, merge_servers, move_secrets},
    plan_import,
};

use self::client_files::{ClientFile, UntrustedFiles};
use crate::{
    cli::ImportArgs,
    commands::{line_diff::changed_lines, servers::edit::print_reload_note},
    config::{CliContext, StoredSecrets, operator_file},
    error::CliError,
    terminal::{Output, confirm, pluralize},
};

const TRUST_QUESTION: &str = "Trust all of these servers? Their tool hints are then believed (tools declared read-only \
                              run without approval), and equivalent tools may replace one another";

/// Maximum width of the column of server names.
const MAX_NAME_WIDTH: usize = 24;

/// Reads clients' files, shows the plan, asks for confirmation and writes the user's settings.
pub(super) async fn run(
    arguments: ImportArgs,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let client = arguments.client.as_deref().map(client_files::parse_client).transpose()?;
    let untrusted = match arguments.yes && !arguments.dry_run {
        true => UntrustedFiles::SkipWithYes,
        false => UntrustedFiles::Read,
    };
    let files = match &arguments.file {
        Some(file) => vec![client_files::read_file(file, client, context)?],
        None => client_files::read_all(client, untrusted, context).await?,
    };
    let mut merged = merge_servers(files.iter().map(|file| (file.label(), file.servers.clone())));
    let stored_secrets = context.stored_secrets();
    let moved_secrets = move_secrets(&mut merged, &stored_secrets.read()?);
    let (settings_file, text) = operator_file::read(context)?;
    let conflict_policy = if arguments.replace { ConflictPolicy::Replace } else { ConflictPolicy::Keep };
    let plan = |merged: &[MergedServer]| {
        plan_import(&text, merged, conflict_policy)
            .map_err(|error| CliError::usage(format!("{}: {error}", settings_file.display())))
    };
    let mut planned = plan(&merged)?;
    if !output.is_json() {
        print_files(&files, merged.len(), output);
        print_plan(&planned, &merged, arguments.replace, output);
    }
    let is_changed = planned.text != text;
    let is_written = is_changed && !arguments.dry_run;
    let mut stored_names = BTreeSet::new();
    if is_written {
        confirm_import(&arguments, &planned, &settings_file)?;
        if !planned.added.is_empty() && confirm_trust(&arguments)? {
            merged.iter_mut().for_each(|merged| merged.server.settings.trusted = true);
            planned = plan(&merged)?;
        }
        let changed_count = planned.added.len() + replaced_count(&planned, arguments.replace);
        let change = format!("{} imported", pluralize(changed_count, "server"));
        // Before the settings that refer to them.
        let secrets = secrets_to_store(moved_secrets, &planned, arguments.replace);
        stored_names = secrets.iter().map(|secret| secret.name.clone()).collect();
        stored_secrets.insert(secrets.into_iter().map(|secret| (secret.name, secret.value)))?;
        operator_file::write(&settings_file, &planned.text, &change, context).await?;
        let now = Settings::parse(&planned.text, &settings_file)?.servers;
        stored_secrets.remove_unused(&Settings::parse(&text, &settings_file)?.servers, &now)?;
    }
    let lines = changed_lines(&text, &planned.text);
    if output.is_json() {
        let stored = is_written.then_some(&stored_names);
        output.json(&import_json(&files, &planned, &merged, &settings_file, stored, &lines));
    } else if arguments.dry_run && is_changed {
        output.message(&format!("Changes to {}:", settings_file.display()));
        lines.iter().for_each(|line| output.line(line));
    } else if is_written {
        let servers = pluralize(planned.added.len() + replaced_count(&planned, arguments.replace), "server");
        output.message(&format!("Wrote {servers} to {}", settings_file.display()));
        print_stored_secrets(&stored_names, &stored_secrets, output)?;
        print_reload_note(context, output);
        output.message(
            "  hint: check them with `toolyard doctor`, start each once with `toolyard servers test`",
        );
    } else {
        output.message("Nothing to import");
    }
    Ok(())
}

/// Says which secrets moved, and what protects them.
fn print_stored_secrets(
    names: &BTreeSet<String>,
    secrets: &StoredSecrets,
    output: &Output,
) -> Result<(), CliError> {
    if let (false, Some(place)) = (names.is_empty(), secrets.key_place()?) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (count, names) = (pluralize(names.len(), "secret"), names.join(", "));
        output.message(&format!("Stored {count}, encrypted with a key in {place}: {names}"));
    }
    Ok(())
}

/// The secrets of servers that are written.
fn secrets_to_store(moved: Vec<MovedSecret>, plan: &ImportPlan, replace: bool) -> Vec<MovedSecret> {
    let replaced = plan.conflicting.iter().filter(|_| replace).map(|conflict| &conflict.server);
    let written: Vec<&str> = plan.added.iter().chain(replaced).map(|server| server.name.as_str()).collect();
    moved.into_iter().filter(|secret| written.contains(&secret.server.as_str())).collect()
}

/// Asks whether to write, unless `--yes`.
fn confirm_import(arguments: &ImportArgs, plan: &ImportPlan, settings_file: &Path) -> Result<(), CliError> {
    if arguments.yes {
        return Ok(());
    }
    let added = pluralize(plan.added.len(), "server");
    let question = match replaced_count(plan, arguments.replace) {
        0 => format!("Add {added} to {}?", settings_file.display()),
        replaced => format!("Add {added} to {} and replace {replaced}?", settings_file.display()),
    };
    if confirm(&question, "nothing was imported")? {
        return Ok(());
    }
    Err(CliError::denied("nothing was imported"))
}

/// Asks whether the new servers are trusted. Without a prompt they are not.
fn confirm_trust(arguments: &ImportArgs) -> Result<bool, CliError> {
    let can_ask = !arguments.yes && std::io::stdin().is_terminal();
    Ok(can_ask && confirm(TRUST_QUESTION, "the servers were not trusted")?)
}

fn replaced_count(plan: &ImportPlan, replace: bool) -> usize {
    if replace { plan.conflicting.len() } else { 0 }
}

fn print_files(files: &[ClientFile], merged_count: usize, output: &Output) {
    let with_servers = files.iter().filter(|file| !file.servers.is_empty()).count();
    match with_servers {
        0 => output.message("Found no servers of other clients"),
        _ => output.message(&format!("Found {}", pluralize(with_servers, "configuration"))),
    }
    for file in files {
        let (label, servers) = (file.label(), pluralize(file.servers.len(), "server"));
        output.message(&format!("  {label:<26} {servers:<11} {}", file.path.display()));
        file.problems.iter().for_each(|problem| output.message(&format!("    note: {problem}")));
    }
    let total: usize = files.iter().map(|file| file.servers.len()).sum();
    if total > merged_count {
        output.message(&format!("  merged {}", pluralize(total - merged_count, "duplicate server")));
    }
}

/// Prints every server in full, so that the user knows what to confirm.
fn print_plan(plan: &ImportPlan, merged: &[MergedServer], replace: bool, output: &Output) {
    let names = plan.added.iter().chain(plan.existing.iter()).map(|planned| planned.name.chars().count());
    let width = names.max().unwrap_or(0).min(MAX_NAME_WIDTH);
    let print = |symbol: &str, planned: &PlannedServer, detail: &str| {
        let from = planned.found_in.iter().map(|origin| origin_label(origin, &planned.name));
        let from = from.collect::<Vec<_>>().join("; ");
        output.line(&format!("{symbol} {:<width$}  {detail}   ({from})", planned.name));
        let limits = planned.found_in.iter().flat_map(limits_of);
        limits.for_each(|limit| output.line(&format!("    {limit}")));
    };
    let print_notes = |planned: &PlannedServer| {
        planned.notes.iter().for_each(|note| output.line(&format!("    note: {note}")));
    };
    for planned in &plan.added {
        print("+", planned, &endpoint_summary(merged, &planned.name));
        print_notes(planned);
    }
    for planned in &plan.existing {
        print("=", planned, "already exists");
    }
    for conflict in &plan.conflicting {
        let detail =
            if replace { "differs from yours: replaced" } else { "differs from yours: yours is kept" };
        print("~", &conflict.server, detail);
        conflict.diff.iter().for_each(|line| output.line(&format!("    {line}")));
        print_notes(&conflict.server);
    }
    for skipped in &plan.skipped {
        output.line(&format!("- {:<width$}  not imported: {}", skipped.name, skipped.reason));
    }
    if !replace && !plan.conflicting.is_empty() {
        output.message("  hint: --replace overwrites yours with the imported ones");
    }
}

/// The client, and the name that the server has there if it is another one.
fn origin_label(origin: &ServerOrigin, name: &str) -> String {
    if origin.name == name { origin.file.clone() } else { format!("{} as `{}`", origin.file, origin.name) }
}

/// What a client may not use of a server. `toolyard connect` keeps it so.
fn limits_of(origin: &ServerOrigin) -> Vec<String> {
    const MAX_LISTED_TOOLS: usize = 8;
    let list = |names: &[String]| match names {
        [] => "no tool".to_owned(),
        names if names.len() <= MAX_LISTED_TOOLS => names.join(", "),
        names => {
            let shown: Vec<&str> = names.iter().take(MAX_LISTED_TOOLS).map(String::as_str).collect();
            format!("{} and {} more", shown.join(", "), names.len() - MAX_LISTED_TOOLS)
        }
    };
    let client = &origin.file;
    if !origin.enabled {
        return vec![format!("disabled in {client}")];
    }
    let ToolFilter { only, without } = &origin.tools;
    let only = only.as_deref().map(|names| format!("{client} may use only {}", list(names)));
    let without = Some(without.as_slice()).filter(|names| !names.is_empty());
    let without = without.map(|names| format!("{client} may not use {}", list(names)));
    only.into_iter().chain(without).collect()
}

fn endpoint_summary(merged: &[MergedServer], name: &str) -> String {
    let found = merged.iter().find(|merged| merged.server.name == name);
    found.map(|merged| merged.server.settings.summary()).unwrap_or_default()
}

/// `stored_secrets`: the names of the secrets that were stored; none if nothing was written.
fn import_json(
    files: &[ClientFile],
    plan: &ImportPlan,
    merged: &[MergedServer],
    settings_file: &Path,
    stored_secrets: Option<&BTreeSet<String>>,
    lines: &[String],
) -> Value {
    let planned = |planned: &PlannedServer| {
        let endpoint = endpoint_summary(merged, &planned.name);
        let sources = planned.found_in.iter().map(|origin| {
            json!({
                "client": origin.file,
                "name": origin.name,
                "enabled": origin.enabled,
                "only": origin.tools.only,
                "without": origin.tools.without,
            })
        });
        let sources: Vec<Value> = sources.collect();
        json!({"name": planned.name, "endpoint": endpoint, "sources": sources, "notes": planned.notes})
    };
    let all = |list: &[PlannedServer]| list.iter().map(planned).collect::<Vec<_>>();
    json!({
        "found": files.iter().map(|file| json!({
            "client": file.client.id(),
            "file": file.path,
            "of_project": file.is_project_file,
            "servers": file.servers.len(),
            "problems": file.problems,
        })).collect::<Vec<_>>(),
        "added": all(&plan.added),
        "existing": all(&plan.existing),
        "conflicting": plan.conflicting.iter().map(|conflict| json!({
            "server": planned(&conflict.server), "difference": conflict.diff,
        })).collect::<Vec<_>>(),
        "skipped": plan.skipped.iter().map(|skipped| json!({
            "name": skipped.name, "reason": skipped.reason,
        })).collect::<Vec<_>>(),
        "file": settings_file,
        "written": stored_secrets.is_some(),
        "stored_secrets": stored_secrets.into_iter().flatten().collect::<Vec<_>>(),
        "changes": lines,
    })
}
