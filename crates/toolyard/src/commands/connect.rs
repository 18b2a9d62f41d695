//! `toolyard connect`: has another client use this hub, in place of the servers that were taken over from it; and undoes it.

use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use toolyard_core::ContentHash;
use toolyard_mcp::config::{
    DocumentError, Place,
    import::{Client, Root, read},
};

use crate::{
    cli::ConnectArgs,
    commands::{
        connect_edit::{Edit, OWN, edited, servers},
        connect_entry::{TOKEN_VARIABLE, Way, entry, is_ours},
        connect_match::stand_ins,
        connect_record::{Patch, Record},
        import_files::SYSTEM,
        text_diff::{changed_lines, without_value},
        trust::confirmed,
    },
    failure::{Code, Failure},
    files,
    folders::Workplace,
    output::{Output, harmless},
};

/// The clients that can be connected.
const CLIENTS: [Client; 6] = [
    Client::ClaudeCode,
    Client::ClaudeDesktop,
    Client::Cursor,
    Client::VsCode,
    Client::Codex,
    Client::Gemini,
];

/// A change of a client's file that is decided on but not made.
struct Change {
    client: Client,
    /// The word for it on the command line.
    word: String,
    file: PathBuf,
    /// Where it is written down what was done.
    place: PathBuf,
    before: String,
    after: String,
    /// Lines that we wrote ourselves; all others may hold secrets.
    own_lines: String,
    moved: Vec<String>,
    stays: Vec<String>,
    /// Servers that the hub knows and could not use, with the variables that are not set.
    lacking: Vec<(String, Vec<String>)>,
}

/// Connects a client, or undoes it.
pub(crate) fn run(
    arguments: &ConnectArgs,
    config: Option<&Path>,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    let client = client(&arguments.client)?;
    let named = arguments.file.as_deref().map(absolute).transpose()?;
    let place = record_place(client, named.as_deref(), workplace);
    let file = named.map_or_else(|| usual_file(client), Ok)?;
    let record = Record::read(&place)?;
    if arguments.undo {
        let Some(record) = record else {
            let message = format!("{} was not connected by `toolyard connect`", client.display_name());
            return Err(Failure::new(Code::BadUse, message).with_hint("nothing was changed"));
        };
        return undo(client, arguments, &place, &record, output);
    }
    let text = text_of(&file)?;
    let before = text.clone().unwrap_or_default();
    let way = way(arguments, config)?;
    let (change, moved) = planned(client, arguments, (file, place), before, &way, workplace)?;
    let written = decide(&change, arguments, output)?;
    if written {
        let record = combined(record, &change, text.is_some(), moved);
        unchanged(&change)?;
        // First what is needed to go back, then the change.
        record.keep(&change.place)?;
        write(&change.file, &change.after)?;
    }
    tell(&change, &way, written, output);
    Ok(())
}

/// What would be done to a client's file, and the servers that would be taken out of it.
fn planned(
    client: Client,
    arguments: &ConnectArgs,
    (file, place): (PathBuf, PathBuf),
    before: String,
    way: &Way,
    workplace: &Workplace,
) -> Result<(Change, Map<String, Value>), Failure> {
    let untouched = |error: &dyn std::fmt::Display| {
        Failure::new(Code::BadUse, format!("{} was not touched: {error}", file.display()))
    };
    match read(client, &before, Place::default()) {
        Ok(_) | Err(DocumentError::NoServers { .. }) => {}
        Err(_) if before.trim().is_empty() => {}
        Err(error) => return Err(untouched(&error)),
    }
    let known = servers(client, &before).map_err(|error| untouched(&error))?;
    let (mut moved, mut stays, mut ours) = (Map::new(), Vec::new(), Vec::new());
    let mut lacking = Vec::new();
    let found = stand_ins(client, &known, &workplace.written_servers, |name| std::env::var(name).ok());
    for (name, server) in &known {
        if is_ours(name, server) {
            ours.push(name.as_str());
        } else if found.ready.contains(name.as_str()) {
            moved.insert(name.clone(), server.clone());
        } else if name == OWN {
            return Err(untouched(&format!("a server is called `{OWN}` there, and it is another one")));
        } else if let Some(variables) = found.lacking.get(name.as_str()) {
            lacking.push((name.clone(), variables.iter().cloned().collect()));
        } else {
            stays.push(name.clone());
        }
    }
    let own = entry(client, way);
    let out = moved.keys().map(String::as_str).chain(ours.into_iter().filter(|name| *name != OWN)).collect();
    let input = Some(matches!(way, Way::Address(_)));
    let edit = Edit { out, put: vec![(OWN, &own)], input };
    let after = edited(client, &before, &edit).map_err(|error| untouched(&error))?;
    let own_lines = edited(client, "", &Edit { out: Vec::new(), put: vec![(OWN, &own)], input });
    let change = Change {
        client,
        word: arguments.client.clone(),
        file: file.clone(),
        place,
        before,
        after,
        own_lines: own_lines.unwrap_or_default(),
        moved: moved.keys().cloned().collect(),
        stays,
        lacking,
    };
    Ok((change, moved))
}

/// Undoes what was done: exactly, if nobody else changed the file since; else only our entry goes and what was taken out
/// comes back.
fn undo(
    client: Client,
    arguments: &ConnectArgs,
    place: &Path,
    record: &Record,
    output: &Output,
) -> Result<(), Failure> {
    let before = text_of(&record.file)?.unwrap_or_default();
    let original = record.original(&before);
    let remove = original.is_some() && !record.existed;
    let after = match original {
        Some(original) => original,
        None => without_ours(client, &before, record).map_err(|error| {
            let message = format!("{} was not touched: {error}", record.file.display());
            let hint = format!("what was taken out of it is in {}", place.display());
            Failure::new(Code::Failed, message).with_hint(hint)
        })?,
    };
    let change = Change {
        client,
        word: arguments.client.clone(),
        file: record.file.clone(),
        place: place.to_owned(),
        before,
        after,
        own_lines: String::new(),
        moved: record.moved.keys().cloned().collect(),
        stays: Vec::new(),
        lacking: Vec::new(),
    };
    let written = decide(&change, arguments, output)?;
    if written {
        let failed =
            |error| Failure::new(Code::Failed, format!("failed to remove {}: {error}", place.display()));
        unchanged(&change)?;
        if remove {
            std::fs::remove_file(&change.file).map_err(failed)?;
        } else {
            write(&change.file, &change.after)?;
        }
        std::fs::remove_file(place).map_err(failed)?;
    }
    if output.wants_json() {
        output.json(&facts(&change, written));
    } else if written {
        let back = counted(&change.moved);
        output.talk(&format!(
            "{} is as it was: {back} back in {}",
            client.display_name(),
            change.file.display()
        ));
    }
    Ok(())
}

fn without_ours(client: Client, text: &str, record: &Record) -> Result<String, String> {
    let known = servers(client, text)?;
    let out = known.iter().filter(|(name, server)| is_ours(name, server)).map(|(name, _)| name.as_str());
    let back = record.moved.iter().filter(|(name, _)| !known.contains_key(*name));
    let put = back.map(|(name, server)| (name.as_str(), server)).collect();
    edited(client, text, &Edit { out: out.collect(), put, input: Some(false) })
}

/// What is written down: what leads back to before the first time, if nobody else changed the file since.
fn combined(record: Option<Record>, change: &Change, existed: bool, moved: Map<String, Value>) -> Record {
    let Some(mut old) = record.filter(|record| record.file == change.file) else {
        let patch = Patch::between(&change.before, &change.after);
        return Record::new(&change.file, existed, moved, Some(patch));
    };
    let patch = old.original(&change.before).map(|original| Patch::between(&original, &change.after));
    old.moved.extend(moved);
    Record::new(&change.file, old.existed, old.moved, patch)
}

/// Shows what changes and asks, unless that was said before. Whether it is to be done.
fn decide(change: &Change, arguments: &ConnectArgs, output: &Output) -> Result<bool, Failure> {
    if change.before == change.after {
        return Ok(false);
    }
    let lines = shown_lines(change);
    let asks = !arguments.yes && !arguments.dry_run;
    if !output.wants_json() && (asks || arguments.dry_run) {
        output.talk(&format!("{} would change:", change.file.display()));
        lines.iter().for_each(|line| output.line(&harmless(line)));
    }
    if arguments.dry_run {
        return Ok(false);
    }
    if asks && !std::io::stdin().is_terminal() {
        let failure = Failure::new(Code::Refused, "nothing was changed: nobody can be asked here");
        return Err(failure.with_hint("look at it with --dry-run, then say it with --yes"));
    }
    if asks && !confirmed(&format!("Change {}?", change.file.display()))? {
        return Err(Failure::new(Code::Refused, "nothing was changed"));
    }
    Ok(true)
}

fn tell(change: &Change, way: &Way, written: bool, output: &Output) {
    if output.wants_json() {
        return output.json(&facts(change, written));
    }
    let name = change.client.display_name();
    let (does, would) = match way {
        Way::Program { .. } => ("starts", "start"),
        Way::Address(_) => ("asks", "ask"),
    };
    let what = match way {
        Way::Program { .. } => "`toolyard serve --stdio`",
        Way::Address(url) => url,
    };
    let stead = match change.moved.len() {
        0 => String::new(),
        _ => format!(" in place of {}", counted(&change.moved)),
    };
    if change.before == change.after {
        output.talk(&format!("{name} {does} {what} already"));
    } else if written {
        output
            .talk(&format!("{name} now {does} {what}{stead}. Undo: toolyard connect {} --undo", change.word));
    } else {
        output.talk(&format!("{name} would {would} {what}{stead}"));
    }
    for (name, variables) in &change.lacking {
        let variables = variables.join(", ");
        output.talk(&harmless(&format!("  stays there, because {variables} is not set here: {name}")));
    }
    if !change.lacking.is_empty() {
        output.talk("  hint: set what is missing where toolyard is started, then connect again");
    }
    if !change.stays.is_empty() {
        output.talk(&harmless(&format!(
            "  stays there, because it is not in your settings: {}",
            change.stays.join(", ")
        )));
        output.talk("  hint: take over what is missing with `toolyard import`, then connect again");
    }
    if let (Way::Address(_), false) = (way, change.client == Client::VsCode) {
        output.talk(&format!(
            "  hint: set the variable {TOKEN_VARIABLE} to what `toolyard serve --http` shows"
        ));
    }
}

fn facts(change: &Change, written: bool) -> Value {
    json!({
        "client": change.client.id(),
        "file": change.file,
        "moved": change.moved,
        "stays": change.stays,
        "lacking": change.lacking.iter().map(|(name, variables)| json!({
            "name": name, "variables": variables,
        })).collect::<Vec<_>>(),
        "written": written,
        "changes": shown_lines(change),
    })
}

/// What changes, line by line. Lines that we did not write may hold secrets.
fn shown_lines(change: &Change) -> Vec<String> {
    let is_own = |line: &str| {
        let line = line.trim().trim_end_matches(',');
        change.own_lines.lines().any(|own| own.trim().trim_end_matches(',') == line)
    };
    let shown = |line: String| match line.strip_prefix("+ ") {
        Some(new) if !is_own(new) => format!("+ {}", without_value(new)),
        _ => line,
    };
    changed_lines(&change.before, &change.after).into_iter().map(shown).collect()
}

fn counted(names: &[String]) -> String {
    match names {
        [one] => format!("1 server ({one})"),
        several => format!("{} servers ({})", several.len(), several.join(", ")),
    }
}

fn way(arguments: &ConnectArgs, config: Option<&Path>) -> Result<Way, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Code::Failed, format!("failed to find this program: {error}"))
    };
    if let Some(url) = &arguments.http {
        let url = url.trim_end_matches('/');
        let end = arguments.profile.as_ref().map(|profile| format!("/{profile}")).unwrap_or_default();
        return Ok(Way::Address(format!("{url}{end}")));
    }
    let command = std::env::current_exe().map_err(|error| failed(&error))?;
    let mut args = Vec::new();
    if let Some(config) = config {
        let config = config.canonicalize().map_err(|error| failed(&error))?;
        args.extend(["--config".to_owned(), config.display().to_string()]);
    }
    args.extend(["serve", "--stdio"].map(str::to_owned));
    if let Some(profile) = &arguments.profile {
        args.extend(["--profile".to_owned(), profile.clone()]);
    }
    Ok(Way::Program { command: command.display().to_string(), args })
}

fn client(word: &str) -> Result<Client, Failure> {
    let word = if word == "claude" { Client::ClaudeCode.id() } else { word };
    CLIENTS.into_iter().find(|client| client.id() == word).ok_or_else(|| {
        let known: Vec<&str> = CLIENTS.iter().map(|client| client.id()).collect();
        Failure::new(Code::BadUse, format!("no client is called `{word}`"))
            .with_hint(format!("there are claude, {}", known.join(", ")))
    })
}

/// The file in which a client keeps the servers of a person.
fn usual_file(client: Client) -> Result<PathBuf, Failure> {
    let home = etcetera::home_dir()
        .map_err(|error| Failure::new(Code::Failed, format!("failed to find your home folder: {error}")))?;
    let fits = |path: &str| client != Client::VsCode || path.ends_with("/User/mcp.json");
    let mut candidates = client.candidates_on(SYSTEM).filter(|one| one.root == Root::Home && fits(one.path));
    let candidate = candidates.next().ok_or_else(|| {
        Failure::new(
            Code::BadUse,
            format!("it is not known where {} keeps its servers here", client.display_name()),
        )
        .with_hint("name the file: --file FILE")
    })?;
    Ok(home.join(candidate.path))
}

fn record_place(client: Client, file: Option<&Path>, workplace: &Workplace) -> PathBuf {
    let name = match file {
        None => client.id().to_owned(),
        Some(file) => {
            let hash = ContentHash::of(file.to_string_lossy().as_bytes()).to_string();
            format!("{}-{}", client.id(), hash.get(..12).unwrap_or_default())
        }
    };
    workplace.data_folder.join("connect").join(format!("{name}.json"))
}

/// A file by the same name whether it is there or not, and from whichever folder it is named.
fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    let failed = |error| {
        Failure::new(Code::BadUse, format!("failed to find the folder of {}: {error}", file.display()))
    };
    let whole = std::path::absolute(file).map_err(failed)?;
    match (whole.parent(), whole.file_name()) {
        (Some(folder), Some(name)) => Ok(folder.canonicalize().map_err(failed)?.join(name)),
        _ => Ok(whole),
    }
}

/// Whether a file is still what was read before anyone was asked: clients write into theirs at any time.
fn unchanged(change: &Change) -> Result<(), Failure> {
    if text_of(&change.file)?.unwrap_or_default() == change.before {
        return Ok(());
    }
    let message = format!("{} was changed meanwhile; nothing was written", change.file.display());
    Err(Failure::new(Code::Failed, message).with_hint("run the same command again"))
}

fn text_of(file: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::new(Code::Failed, format!("failed to read {}: {error}", file.display()))),
    }
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    files::write(file, text, files::Readers::Usual)
        .map_err(|error| Failure::new(Code::Failed, format!("failed to write {}: {error}", file.display())))
}
