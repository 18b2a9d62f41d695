//! The path of this program, for files that start it later.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::error::CliError;

/// The path of this program; an error if it lies in the cache of a package runner, which may be emptied at any time.
pub(super) fn installed_program() -> Result<PathBuf, CliError> {
    let program = std::env::current_exe().map_err(|error| {
        CliError::failed(format!("failed to find this program: {error}"))
            .with_hint("start Toolyard by its full path")
    })?;
    if is_in_cache_of_runner(&program) {
        let message = format!(
            "this program is in a cache that may be emptied at any time; it could not be started again then: {}",
            program.display()
        );
        return Err(CliError::usage(message).with_hint(
            "install the package (uv tool install FILE, or npm install --global FILE…), then run the command again",
        ));
    }
    Ok(program)
}

/// Whether uvx, npx or pnpm dlx has put the program there.
fn is_in_cache_of_runner(program: &Path) -> bool {
    program.ancestors().any(|folder| {
        let name = |path: &Path| path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
        let (folder_name, parent) = (name(folder), folder.parent().unwrap_or(folder));
        // `archive-v0`, in a folder that is called uv, or anywhere if it is marked as a cache, as uv does.
        let is_of_uv = ["archive-v", "environments-v"].iter().any(|prefix| folder_name.starts_with(prefix))
            && (parent.iter().any(|part| part == "uv") || parent.join("CACHEDIR.TAG").is_file());
        is_of_uv || folder_name == "_npx" || (folder_name == "dlx" && name(parent).starts_with("pnpm"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_caches_of_package_runners_are_recognized() {
        for path in [
            "/home/ada/.cache/uv/archive-v0/PTW5wLeYCtGkNVdT/bin/toolyard",
            "/home/ada/.cache/uv/environments-v2/toolyard-1a2b/bin/toolyard",
            "/home/ada/.npm/_npx/1f3c/node_modules/@toolyard/linux-x64/bin/toolyard",
            "/home/ada/.cache/pnpm/dlx/1f3c/node_modules/@toolyard/linux-x64/bin/toolyard",
            "/home/ada/pnpm-cache/dlx/1f3c/node_modules/@toolyard/linux-x64/bin/toolyard",
            "/home/ada/uv/cache/archive-v0/PTW5wLeYCtGkNVdT/bin/toolyard",
        ] {
            assert!(is_in_cache_of_runner(Path::new(path)), "{path}");
        }
        for path in [
            "/usr/bin/toolyard",
            "/home/ada/.local/share/uv/tools/toolyard/bin/toolyard",
            "/srv/archive-v1/toolyard",
            "/home/dlx/bin/toolyard",
            "/usr/lib/node_modules/toolyard/node_modules/@toolyard/linux-x64/bin/toolyard",
        ] {
            assert!(!is_in_cache_of_runner(Path::new(path)), "{path}");
        }
    }
}
