//! Finds the one candidate that the arguments can be meant for, by the folders of its settings.
//!
//! Only settings of the operator count. A schema that accepts the arguments does not: a server could write one that
//! accepts what those of all others reject, and so attract their calls.

use std::sync::Arc;

use serde_json::Value;
use toolyard_core::is_absolute_path;

use crate::registry::candidate::ToolCandidate;

/// Parts of the names of parameters that hold paths.
const PATH_NAME_PARTS: [&str; 9] =
    ["path", "file", "dir", "folder", "uri", "repo", "root", "workbook", "location"];
/// Whole names of parameters that hold paths.
const PATH_NAMES: [&str; 9] = ["source", "destination", "src", "dst", "dest", "target", "from", "to", "cwd"];

/// The only candidate whose folders contain every path of the arguments. None if there is no path, if the folders of a
/// candidate are not known, or if several candidates contain all paths.
pub(crate) fn only_fit<'a>(
    candidates: &'a [Arc<ToolCandidate>],
    arguments: &Value,
) -> Option<&'a Arc<ToolCandidate>> {
    let mut paths = Vec::new();
    collect_paths("", arguments, &mut paths);
    if paths.is_empty() {
        return None;
    }
    let mut fitting = None;
    for candidate in candidates {
        let scope = &candidate.source.info.scope;
        let contained: Option<Vec<bool>> = paths.iter().map(|path| scope.contains(path)).collect();
        let fits = contained?.into_iter().all(|is_contained| is_contained);
        if fits && fitting.replace(candidate).is_some() {
            return None;
        }
    }
    fitting
}

/// The absolute paths in arguments whose names say that they are paths: text of a file may look like one.
fn collect_paths<'a>(name: &str, value: &'a Value, paths: &mut Vec<&'a str>) {
    match value {
        Value::String(text) if is_path_name(name) => {
            let path = text.strip_prefix("file://").unwrap_or(text);
            paths.extend(Some(path).filter(|path| is_absolute_path(path)));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_paths(name, item, paths)),
        Value::Object(fields) => fields.iter().for_each(|(name, field)| collect_paths(name, field, paths)),
        _ => {}
    }
}

fn is_path_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PATH_NAMES.contains(&name.as_str()) || PATH_NAME_PARTS.iter().any(|part| name.contains(part))
}
