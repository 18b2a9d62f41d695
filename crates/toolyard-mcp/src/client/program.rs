//! Finds the program behind a command before anything is started, so that a missing one is named.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Where programs are looked for when the environment has no `PATH`.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Folder,
    NotExecutable,
    Program,
}

/// Looks at the disk.
pub(super) fn look(path: &Path) -> Found {
    match path.metadata() {
        Err(_) => Found::Nothing,
        Ok(metadata) if metadata.is_dir() => Found::Folder,
        Ok(_) if access(path, Access::EXEC_OK).is_err() => Found::NotExecutable,
        Ok(_) => Found::Program,
    }
}

/// The program behind a command, or in words why there is none.
pub(super) fn find(
    command: &str,
    environment: &[(String, String)],
    working_directory: Option<&Path>,
    look: impl Fn(&Path) -> Found,
) -> Result<PathBuf, String> {
    if let Some(folder) = working_directory
        && look(folder) != Found::Folder
    {
        return Err(format!("the working directory `{}` does not exist", folder.display()));
    }
    if command.is_empty() {
        return Err("there is no command".to_owned());
    }
    if command.contains('/') {
        let path = working_directory.map_or_else(|| PathBuf::from(command), |folder| folder.join(command));
        return match look(&path) {
            Found::Program => Ok(path),
            other => Err(problem(&path, other)),
        };
    }
    find_in_path(command, environment, look)
}

fn find_in_path(
    command: &str,
    environment: &[(String, String)],
    look: impl Fn(&Path) -> Found,
) -> Result<PathBuf, String> {
    let path =
        environment.iter().rev().find(|(name, _)| name == "PATH").map_or(USUAL_PATH, |(_, value)| value);
    let mut not_executable = None;
    // An empty entry would mean the current folder, from which nobody wants to run something unknowingly.
    for folder in path.split(':').filter(|folder| !folder.is_empty()) {
        let candidate = Path::new(folder).join(command);
        match look(&candidate) {
            Found::Program => return Ok(candidate),
            found @ Found::NotExecutable => drop(not_executable.get_or_insert((candidate, found))),
            Found::Nothing | Found::Folder => {}
        }
    }
    Err(match not_executable {
        Some((candidate, found)) => problem(&candidate, found),
        None => format!(
            "the command `{command}` was not found in PATH ({path}); install it, or give its full path in the \
             server's configuration"
        ),
    })
}

fn problem(path: &Path, found: Found) -> String {
    let path = path.display();
    match found {
        Found::Nothing => format!("the command `{path}` does not exist"),
        Found::Folder => format!("the command `{path}` is a folder"),
        Found::NotExecutable | Found::Program => {
            format!("the command `{path}` is not executable; `chmod +x` makes it so")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &Path) -> Found {
        match path.to_str().unwrap() {
            "/usr/bin/npx" | "/opt/bin/npx" | "/home/me/./server" | "/bin/true" => Found::Program,
            "/opt/bin/readme" => Found::NotExecutable,
            "/home/me" | "/opt/bin/folder" => Found::Folder,
            _ => Found::Nothing,
        }
    }

    fn search(command: &str, path: Option<&str>, folder: Option<&str>) -> Result<PathBuf, String> {
        let environment: Vec<_> = path.map(|path| ("PATH".to_owned(), path.to_owned())).into_iter().collect();
        find(command, &environment, folder.map(Path::new), at)
    }

    #[test]
    fn the_first_in_path_is_taken() {
        assert_eq!(search("npx", Some("/opt/bin:/usr/bin"), None), Ok("/opt/bin/npx".into()));
        assert_eq!(search("npx", Some("::/nowhere:/usr/bin"), None), Ok("/usr/bin/npx".into()));
        assert_eq!(search("true", None, None), Ok("/bin/true".into()));
        assert_eq!(search("./server", None, Some("/home/me")), Ok("/home/me/./server".into()));
        assert_eq!(search("/bin/true", None, Some("/home/me")), Ok("/bin/true".into()));
    }

    #[test]
    fn what_is_missing_is_named() {
        let says = |result: Result<PathBuf, String>, words: &str| {
            let problem = result.unwrap_err();
            assert!(problem.contains(words), "{problem}");
        };
        says(
            search("uvx", Some("/opt/bin:/usr/bin"), None),
            "`uvx` was not found in PATH (/opt/bin:/usr/bin)",
        );
        says(search("readme", Some("/opt/bin"), None), "`/opt/bin/readme` is not executable");
        says(search("folder", Some("/opt/bin"), None), "not found in PATH");
        says(search("/opt/bin/folder", None, None), "is a folder");
        says(search("/opt/bin/uvx", None, None), "does not exist");
        says(search("npx", None, Some("/nowhere")), "the working directory `/nowhere` does not exist");
        says(search("", None, None), "no command");
    }
}
