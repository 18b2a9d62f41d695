//! A file below `tests` that no module includes compiles to nothing, and its tests never run.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// All Rust files below a folder.
fn rust_files(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.insert(path.canonicalize().unwrap());
        }
    }
}

/// The name of a module that is declared in this line and has a file of its own.
fn module_name(line: &str) -> Option<&str> {
    let declaration =
        ["mod ", "pub mod ", "pub(crate) mod "].iter().find_map(|start| line.strip_prefix(start));
    declaration?.strip_suffix(';')
}

/// Adds a file, and the files of the modules that it declares. Modules of a crate root or of a `mod.rs` lie beside it.
fn include(file: &Path, is_root: bool, included: &mut BTreeSet<PathBuf>) {
    let file = file.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let (beside, text) = (file.parent().unwrap(), fs::read_to_string(&file).unwrap());
    let folder =
        if is_root || file.ends_with("mod.rs") { beside.to_owned() } else { file.with_extension("") };
    included.insert(file.clone());
    let mut path = None;
    for line in text.lines().map(str::trim) {
        if let Some(attribute) = line.strip_prefix("#[path = \"") {
            path = attribute.strip_suffix("\"]").map(|path| beside.join(path));
        } else if let Some(name) = module_name(line) {
            let of_name = [folder.join(name).with_extension("rs"), folder.join(name).join("mod.rs")];
            let module = path.take().or_else(|| of_name.into_iter().find(|file| file.exists()));
            include(&module.unwrap_or_else(|| panic!("{}: {line}", file.display())), false, included);
        }
    }
}

/// The crate roots that Cargo finds in a folder `tests`: `NAME.rs` and `NAME/main.rs`.
fn roots(tests: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(tests).into_iter().flatten().map(|entry| entry.unwrap().path());
    let roots = entries.map(|path| if path.is_dir() { path.join("main.rs") } else { path });
    roots
        .filter(|path| path.exists() && path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

#[test]
fn every_test_file_is_included() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = own.parent().unwrap();
    let packages: Vec<PathBuf> = match crates.join("toolyard-core").exists() {
        true => fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path()).collect(),
        // As a package on its own.
        false => vec![own.to_owned()],
    };
    let (mut files, mut included) = (BTreeSet::new(), BTreeSet::new());
    for tests in packages.iter().map(|package| package.join("tests")) {
        rust_files(&tests, &mut files);
        roots(&tests).iter().for_each(|root| include(root, true, &mut included));
    }
    let forgotten: Vec<&PathBuf> = files.difference(&included).collect();
    assert!(included.contains(&own.join("tests/it/test_files.rs").canonicalize().unwrap()));
    assert!(forgotten.is_empty(), "no module includes these files: {forgotten:#?}");
}
