//! What the user is told about a change of a client's file.

use serde_json::{Value, json};
use toolyard_mcp_client::{INHERITED_VARIABLES, config::import::Client};

use super::{
    FileChange,
    entry::{GatewayConnection, TOKEN_VARIABLE},
};
use crate::{
    commands::line_diff::{changed_lines, without_value},
    terminal::{Output, pluralize},
};

pub(super) fn report(change: &FileChange, connection: &GatewayConnection, is_written: bool, output: &Output) {
    if output.is_json() {
        return output.json(&change_json(change, is_written));
    }
    let name = change.client.display_name();
    let (verb, infinitive, target) = match connection {
        GatewayConnection::Stdio { .. } => ("starts", "start", "`toolyard serve --stdio`"),
        GatewayConnection::Http(url) => ("connects to", "connect to", url.as_str()),
    };
    let moved = moved_names(change);
    let replaced = match moved.as_slice() {
        [] => String::new(),
        moved => format!(" in place of {}", describe_servers(moved)),
    };
    if change.is_unchanged() {
        output.message(&format!("{name} already {verb} {target}"));
    } else if is_written {
        let undo = format!("toolyard connect {} --undo", change.argument);
        output.message(&format!("{name} now {verb} {target}{replaced}. Undo: {undo}"));
    } else {
        output.message(&format!("{name} would {infinitive} {target}{replaced}"));
    }
    match &change.profile {
        Some(profile) => {
            output.message(&format!("  {name} may use the profile `{profile}`; for all tools: --all"));
        }
        None => output.message(&format!("  {name} may use all tools of all servers")),
    }
    let renamed: Vec<String> =
        change.servers.renamed.iter().map(|(old, new)| format!("{old} → {new}")).collect();
    if !renamed.is_empty() {
        output.message(&format!("  other names in Toolyard: {}", renamed.join(", ")));
    }
    report_servers_left(change, output);
    if let (GatewayConnection::Stdio { variables, .. }, [_, ..]) = (connection, moved.as_slice()) {
        // The user need not set variables such as HOME, and they hold no secrets.
        let variables = variables.iter().map(String::as_str);
        let needed = variables.filter(|variable| !INHERITED_VARIABLES.contains(variable));
        let names = needed.collect::<Vec<_>>().join(", ");
        if !names.is_empty() {
            output.message(&format!("  needed in the environment of {name}: {names}"));
            output.message("  hint: keep it in Toolyard instead: toolyard servers edit SERVER --secret NAME");
        }
    }
    if let (GatewayConnection::Http(_), false) = (connection, change.client == Client::VsCode) {
        output.message(&format!(
            "  hint: set {TOKEN_VARIABLE} in the client's environment; `toolyard serve --http` prints the command"
        ));
    }
}

/// Servers that stay in the client's file, and why.
fn report_servers_left(change: &FileChange, output: &Output) {
    let servers = &change.servers;
    for (name, variables) in &servers.missing_variables {
        let variables = variables.join(", ");
        output.message(&format!("  {name} was left in place: {variables} is not set"));
    }
    if !servers.missing_variables.is_empty() {
        output.message("  hint: set the variables where Toolyard is started, then connect again");
    }
    if !servers.disabled.is_empty() {
        output.message(&format!("  left in place, disabled: {}", servers.disabled.join(", ")));
    }
    if !servers.unknown.is_empty() {
        output.message(&format!("  left in place, not in your settings: {}", servers.unknown.join(", ")));
        output.message("  hint: import them with `toolyard import`, then connect again");
    }
}

pub(super) fn report_undo(change: &FileChange, is_written: bool, output: &Output) {
    if output.is_json() {
        output.json(&change_json(change, is_written));
    } else if is_written {
        output.message(&format!(
            "Disconnected {}: {} restored in {}",
            change.client.display_name(),
            describe_servers(&moved_names(change)),
            change.file.display()
        ));
    }
}

pub(super) fn change_json(change: &FileChange, is_written: bool) -> Value {
    let servers = &change.servers;
    json!({
        "client": change.client.id(),
        "file": change.file,
        "profile": change.profile,
        "moved": moved_names(change),
        "renamed": servers.renamed.iter().map(|(old, new)| json!({"from": old, "to": new})).collect::<Vec<_>>(),
        "unknown": servers.unknown,
        "disabled": servers.disabled,
        "missing_variables": servers.missing_variables.iter().map(|(name, variables)| json!({
            "name": name, "variables": variables,
        })).collect::<Vec<_>>(),
        "written": is_written,
        "changes": redacted_lines(change),
    })
}

fn moved_names(change: &FileChange) -> Vec<String> {
    change.servers.moved.keys().cloned().collect()
}

/// The changed lines; values of lines that Toolyard did not write are hidden, because they may be secrets.
pub(super) fn redacted_lines(change: &FileChange) -> Vec<String> {
    let is_own = |line: &str| {
        let line = line.trim().trim_end_matches(',');
        change.own_lines.lines().any(|own| own.trim().trim_end_matches(',') == line)
    };
    let redact_line = |line: String| match line.strip_prefix("+ ") {
        Some(new) if !is_own(new) => format!("+ {}", without_value(new)),
        _ => line,
    };
    changed_lines(&change.before, &change.after).into_iter().map(redact_line).collect()
}

/// `2 servers (excel, time)`.
fn describe_servers(names: &[String]) -> String {
    match names {
        [] => "no servers".to_owned(),
        names => format!("{} ({})", pluralize(names.len(), "server"), names.join(", ")),
    }
}
