//! The servers that `scripts/parts` installs.

use std::{env, path::PathBuf, process::Command};

/// The path of an installed program.
pub(crate) fn installed_path(name: &str) -> String {
    let home = || PathBuf::from(env::var_os("HOME").expect("HOME is set"));
    let cache = || env::var_os("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from);
    let parts = env::var_os("TOOLYARD_PARTS").map_or_else(|| cache().join("toolyard-parts"), PathBuf::from);
    let path = parts.join(name);
    assert!(path.exists(), "{} is missing: run scripts/parts", path.display());
    path.to_str().unwrap().to_owned()
}

/// A Python that can read workbooks.
pub(crate) fn python() -> String {
    installed_path("excel-0.1.8/bin/python")
}

/// The values of a sheet, read by an independent library.
pub(crate) fn read_sheet(workbook: &std::path::Path, sheet: &str) -> serde_json::Value {
    let program = "import json, sys, openpyxl\n\
        sheet = openpyxl.load_workbook(sys.argv[1])[sys.argv[2]]\n\
        print(json.dumps([list(row) for row in sheet.iter_rows(values_only=True)]))";
    let read = Command::new(python()).args(["-c", program]).arg(workbook).arg(sheet).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    serde_json::from_slice(&read.stdout).unwrap()
}
