//! `toolyard import`: takes over the servers of other clients, with their secrets left where they are.

use std::io::IsTerminal as _;

use serde_json::{Value, json};
use toolyard_mcp::config::{
    ImportPlan, OnDifference, Planned,
    import::{Merged, merge},
    plan_import,
};

use crate::{
    cli::ImportArgs,
    commands::{
        edit_servers,
        import_files::{self, Found},
        text_diff::changed_lines,
        trust::confirmed,
    },
    failure::{Code, Failure},
    folders::Workplace,
    output::{Output, harmless},
};

/// What trust means, before anybody says yes.
const TRUST: &str = "Do you trust all of these servers? What they say about their tools is then believed (those they call \
                     read-only are called without asking), and they may stand in for one another";

/// Looks at the files of other clients, says what they bring, asks, and writes the user's settings.
pub(crate) async fn run(
    arguments: ImportArgs,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    let client = arguments.from.as_deref().map(import_files::client).transpose()?;
    let nobody_looks = arguments.yes && !arguments.dry_run;
    let found = match &arguments.file {
        Some(file) => vec![import_files::in_file(file, client, workplace)?],
        None => import_files::on_this_machine(client, nobody_looks, workplace).await?,
    };
    let mut merged = merge(found.iter().map(|found| (found.label(), found.servers.clone())));
    let (file, text) = edit_servers::read(workplace)?;
    let on_difference = if arguments.replace { OnDifference::Replace } else { OnDifference::Keep };
    let plan = |merged: &[Merged]| {
        plan_import(&text, merged, on_difference)
            .map_err(|error| Failure::new(Code::BadUse, format!("{}: {error}", file.display())))
    };
    let mut planned = plan(&merged)?;
    if !output.wants_json() {
        tell_found(&found, merged.len(), output);
        tell_plan(&planned, &merged, arguments.replace, output);
    }
    let is_changed = planned.text != text;
    let writes = is_changed && !arguments.dry_run;
    if writes {
        decide(&arguments, &planned, &file)?;
        if !planned.added.is_empty() && is_trusted(&arguments)? {
            merged.iter_mut().for_each(|merged| merged.server.settings.trusted = true);
            planned = plan(&merged)?;
        }
        edit_servers::write(&file, &planned.text)?;
    }
    let lines = changed_lines(&text, &planned.text);
    if output.wants_json() {
        output.json(&facts(&found, &planned, &merged, &file, writes, &lines));
    } else if arguments.dry_run && is_changed {
        output.talk(&format!("{} would change:", file.display()));
        lines.iter().for_each(|line| output.line(&harmless(line)));
    } else if writes {
        let servers = counted(planned.added.len() + replaced(&planned, arguments.replace), "server");
        output.talk(&format!("Wrote {servers} to {}", file.display()));
        output.talk("  hint: `toolyard doctor` looks at them all, `toolyard servers test` starts each once");
    } else {
        output.talk("Nothing to write");
    }
    Ok(())
}

/// Asks whether to write, unless that was said before.
fn decide(arguments: &ImportArgs, plan: &ImportPlan, file: &std::path::Path) -> Result<(), Failure> {
    if arguments.yes {
        return Ok(());
    }
    let added = counted(plan.added.len(), "server");
    let question = match replaced(plan, arguments.replace) {
        0 => format!("Add {added} to {}?", file.display()),
        more => format!("Add {added} to {} and replace {more}?", file.display()),
    };
    if !std::io::stdin().is_terminal() {
        let failure = Failure::new(Code::Refused, "nothing was imported: nobody can be asked here");
        return Err(failure.with_hint("look at it with --dry-run, then say it with --yes"));
    }
    if confirmed(&question)? {
        return Ok(());
    }
    Err(Failure::new(Code::Refused, "nothing was imported"))
}

/// Asks whether the new servers are trusted; nobody is without a person's word.
fn is_trusted(arguments: &ImportArgs) -> Result<bool, Failure> {
    let can_be_asked = !arguments.yes && std::io::stdin().is_terminal();
    Ok(can_be_asked && confirmed(TRUST)?)
}

fn replaced(plan: &ImportPlan, replaces: bool) -> usize {
    if replaces { plan.different.len() } else { 0 }
}

fn tell_found(found: &[Found], merged: usize, output: &Output) {
    let with_servers = found.iter().filter(|found| !found.servers.is_empty()).count();
    match with_servers {
        0 => output.talk("Found no servers of other clients"),
        _ => output.talk(&format!("Found {}", counted(with_servers, "configuration"))),
    }
    for found in found {
        let (label, servers) = (found.label(), counted(found.servers.len(), "server"));
        output.talk(&harmless(&format!("  {label:<26} {servers:<11} {}", found.file.display())));
        found.problems.iter().for_each(|problem| output.talk(&harmless(&format!("    note: {problem}"))));
    }
    let all: usize = found.iter().map(|found| found.servers.len()).sum();
    if all > merged {
        output.talk(&format!("  {} there more than once, merged", counted(all - merged, "server")));
    }
}

/// A line for each server, whole: nobody can agree to what is not shown.
fn tell_plan(plan: &ImportPlan, merged: &[Merged], replaces: bool, output: &Output) {
    let names = plan.added.iter().chain(plan.same.iter()).map(|planned| planned.name.chars().count());
    let width = names.max().unwrap_or(0).min(24);
    let tell = |mark: &str, planned: &Planned, about: &str| {
        let from = planned.from.join("; ");
        output.line(&harmless(&format!("{mark} {:<width$}  {about}   ({from})", planned.name)));
    };
    let notes = |planned: &Planned| {
        planned.notes.iter().for_each(|note| output.line(&harmless(&format!("    note: {note}"))));
    };
    for planned in &plan.added {
        tell("+", planned, &summary(merged, &planned.name));
        notes(planned);
    }
    for planned in &plan.same {
        tell("=", planned, "is there already");
    }
    for difference in &plan.different {
        let fate = if replaces {
            "is there for something else: replaced"
        } else {
            "is there for something else: kept"
        };
        tell("~", &difference.server, fate);
        difference.diff.iter().for_each(|line| output.line(&harmless(&format!("    {line}"))));
        notes(&difference.server);
    }
    for skipped in &plan.skipped {
        output.line(&harmless(&format!("- {:<width$}  not taken over: {}", skipped.name, skipped.reason)));
    }
    if !replaces && !plan.different.is_empty() {
        output.talk("  hint: --replace takes the imported one instead");
    }
}

fn summary(merged: &[Merged], name: &str) -> String {
    let found = merged.iter().find(|merged| merged.server.name == name);
    found.map(|merged| merged.server.settings.summary()).unwrap_or_default()
}

fn counted(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

fn facts(
    found: &[Found],
    plan: &ImportPlan,
    merged: &[Merged],
    file: &std::path::Path,
    written: bool,
    lines: &[String],
) -> Value {
    let planned = |planned: &Planned| {
        let reached_by = summary(merged, &planned.name);
        json!({"name": planned.name, "reached_by": reached_by, "from": planned.from, "notes": planned.notes})
    };
    let all = |list: &[Planned]| list.iter().map(planned).collect::<Vec<_>>();
    json!({
        "found": found.iter().map(|found| json!({
            "client": found.client.id(),
            "file": found.file,
            "of_project": found.of_project,
            "servers": found.servers.len(),
            "problems": found.problems,
        })).collect::<Vec<_>>(),
        "added": all(&plan.added),
        "same": all(&plan.same),
        "different": plan.different.iter().map(|difference| json!({
            "server": planned(&difference.server), "difference": difference.diff,
        })).collect::<Vec<_>>(),
        "skipped": plan.skipped.iter().map(|skipped| json!({
            "name": skipped.name, "reason": skipped.reason,
        })).collect::<Vec<_>>(),
        "file": file,
        "written": written,
        "changes": lines,
    })
}
