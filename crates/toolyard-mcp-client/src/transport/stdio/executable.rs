//! Finds the executable of a command before it is started, so that errors name what is missing.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The search path if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExecutableError {
    /// `cwd` of the server does not exist on this machine.
    ///
    /// Remedy: correct `cwd` of `[servers.NAME]`, or create the folder.
    #[error("the working directory `{}` does not exist", .0.display())]
    NoWorkingDirectory(PathBuf),
    /// The server has an empty `command`.
    ///
    /// Remedy: set `command` of `[servers.NAME]`.
    #[error("no command is configured")]
    NoCommand,
    /// `command` of the server is a path at which there is no file.
    ///
    /// Remedy: correct `command` of `[servers.NAME]`, or install the program there.
    #[error("the command `{}` does not exist", .0.display())]
    Missing(PathBuf),
    /// `command` of the server is a folder.
    ///
    /// Remedy: set `command` to the program in the folder.
    #[error("the command `{}` is a directory", .0.display())]
    Directory(PathBuf),
    /// `command` of the server is a file without permission to execute it.
    ///
    /// Remedy: make it executable: `chmod +x FILE`, or start it with its interpreter: `command = "python3"`.
    #[error("the command `{path}` is not executable; run: chmod +x {path}", path = .0.display())]
    NotExecutable(PathBuf),
    /// `command` of the server is in no folder of `PATH`.
    ///
    /// Remedy: install the program, or write its full path as `command`; a service often has a shorter `PATH` than your
    /// shell.
    #[error(
        "the command `{command}` was not found in PATH ({path}); install it, or give its full path in the server's \
         configuration"
    )]
    NotInPath { command: String, path: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathKind {
    Missing,
    Directory,
    NotExecutable,
    Executable,
}

pub(super) fn probe_path(path: &Path) -> PathKind {
    match path.metadata() {
        Err(_) => PathKind::Missing,
        Ok(metadata) if metadata.is_dir() => PathKind::Directory,
        Ok(_) if access(path, Access::EXEC_OK).is_err() => PathKind::NotExecutable,
        Ok(_) => PathKind::Executable,
    }
}

pub(super) fn find(
    command: &str,
    environment: &[(String, String)],
    working_directory: Option<&Path>,
    probe: impl Fn(&Path) -> PathKind,
) -> Result<PathBuf, ExecutableError> {
    if let Some(directory) = working_directory
        && probe(directory) != PathKind::Directory
    {
        return Err(ExecutableError::NoWorkingDirectory(directory.to_owned()));
    }
    if command.is_empty() {
        return Err(ExecutableError::NoCommand);
    }
    if command.contains('/') {
        let path =
            working_directory.map_or_else(|| PathBuf::from(command), |directory| directory.join(command));
        return match probe(&path) {
            PathKind::Executable => Ok(path),
            PathKind::Missing => Err(ExecutableError::Missing(path)),
            PathKind::Directory => Err(ExecutableError::Directory(path)),
            PathKind::NotExecutable => Err(ExecutableError::NotExecutable(path)),
        };
    }
    find_in_path(command, environment, probe)
}

fn find_in_path(
    command: &str,
    environment: &[(String, String)],
    probe: impl Fn(&Path) -> PathKind,
) -> Result<PathBuf, ExecutableError> {
    let path =
        environment.iter().rev().find(|(name, _)| name == "PATH").map_or(DEFAULT_PATH, |(_, value)| value);
    let mut not_executable = None;
    // An empty entry would mean the current directory, which is never searched.
    for directory in path.split(':').filter(|directory| !directory.is_empty()) {
        let candidate = Path::new(directory).join(command);
        match probe(&candidate) {
            PathKind::Executable => return Ok(candidate),
            PathKind::NotExecutable => drop(not_executable.get_or_insert(candidate)),
            PathKind::Missing | PathKind::Directory => {}
        }
    }
    Err(match not_executable {
        Some(candidate) => ExecutableError::NotExecutable(candidate),
        None => ExecutableError::NotInPath { command: command.to_owned(), path: path.to_owned() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(path: &Path) -> PathKind {
        match path.to_str().unwrap() {
            "/usr/bin/npx" | "/opt/bin/npx" | "/home/me/./server" | "/bin/true" => PathKind::Executable,
            "/opt/bin/readme" => PathKind::NotExecutable,
            "/home/me" | "/opt/bin/folder" => PathKind::Directory,
            _ => PathKind::Missing,
        }
    }

    fn search(
        command: &str,
        path: Option<&str>,
        directory: Option<&str>,
    ) -> Result<PathBuf, ExecutableError> {
        let environment: Vec<_> = path.map(|path| ("PATH".to_owned(), path.to_owned())).into_iter().collect();
        find(command, &environment, directory.map(Path::new), probe)
    }

    #[test]
    fn the_first_executable_in_path_is_used() {
        assert_eq!(search("npx", Some("/opt/bin:/usr/bin"), None), Ok("/opt/bin/npx".into()));
        assert_eq!(search("npx", Some("::/nowhere:/usr/bin"), None), Ok("/usr/bin/npx".into()));
        assert_eq!(search("true", None, None), Ok("/bin/true".into()));
        assert_eq!(search("./server", None, Some("/home/me")), Ok("/home/me/./server".into()));
        assert_eq!(search("/bin/true", None, Some("/home/me")), Ok("/bin/true".into()));
    }

    #[test]
    fn errors_name_what_is_missing() {
        let assert_error = |result: Result<PathBuf, ExecutableError>, expected: &str| {
            let message = result.unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        };
        assert_error(
            search("uvx", Some("/opt/bin:/usr/bin"), None),
            "`uvx` was not found in PATH (/opt/bin:/usr/bin)",
        );
        assert_error(search("readme", Some("/opt/bin"), None), "`/opt/bin/readme` is not executable");
        assert_error(search("folder", Some("/opt/bin"), None), "not found in PATH");
        assert_error(search("/opt/bin/folder", None, None), "is a directory");
        assert_error(search("/opt/bin/uvx", None, None), "does not exist");
        assert_error(
            search("npx", None, Some("/nowhere")),
            "the working directory `/nowhere` does not exist",
        );
        assert_error(search("", None, None), "no command");
    }
}
