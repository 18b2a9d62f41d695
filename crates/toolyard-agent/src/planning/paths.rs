//! Paths in arguments: adds the repository that a server's settings name, and makes paths absolute for a server that refuses
//! relative ones.
//!
//! Pure: nothing is looked up on the disk.

use serde_json::{Map, Value};
use toolyard_core::{Param, ParamType, SourceInfo, SourceScope, is_absolute_path};

use super::tool_name::name_words;

/// Last words of the names of parameters that take a path.
const PATH_WORDS: [&str; 9] =
    ["path", "file", "filepath", "filename", "dir", "directory", "folder", "source", "destination"];
/// What servers say that refuse a relative path, in lower case.
const REFUSALS: [&str; 4] = ["absolute path", "must be absolute", "not absolute", "绝对路径"];
/// A longer text is not taken for a path.
const MAX_PATH_CHARS: usize = 300;

/// The places that the settings of a tool's source name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPlaces {
    /// Folders and files that it works on.
    pub scope: SourceScope,
    /// Where relative paths start.
    pub working_folder: Option<String>,
}

impl ToolPlaces {
    /// The places of a source.
    pub fn of(source: &SourceInfo) -> Self {
        Self { scope: source.scope.clone(), working_folder: source.working_folder.clone() }
    }

    /// The only folder of the source.
    pub(crate) fn only_folder(&self) -> Option<&str> {
        // A folder below the home folder is listed with and without `~`.
        let mut absolute = self.scope.folders.iter().filter(|folder| folder.starts_with('/'));
        let only = absolute.next()?;
        absolute.all(|other| other == only).then_some(only)
    }

    /// The value of a required parameter that the settings decide: the repository of a server that has exactly one.
    pub(crate) fn settled_value(&self, param: &Param) -> Option<&str> {
        let words = name_words(&param.name);
        let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        let is_repository_path = has(&["repo", "repository"]) && has(&["path", "dir", "directory", "folder"]);
        let takes_text = param.required && param.kind == ParamType::String && param.choices.is_empty();
        self.only_folder().filter(|_| is_repository_path && takes_text)
    }
}

/// Adds required arguments that the model was not asked for, because the settings decide them.
pub(crate) fn add_settled_arguments(
    arguments: &mut Map<String, Value>,
    params: &[Param],
    places: &ToolPlaces,
) {
    for param in params.iter().filter(|param| !arguments.contains_key(&param.name)).collect::<Vec<_>>() {
        if let Some(folder) = places.settled_value(param) {
            arguments.insert(param.name.clone(), Value::String(folder.to_owned()));
        }
    }
}

/// Whether a server refused a call because it wants absolute paths, and an argument is a relative one.
pub(crate) fn wants_absolute_paths(message: &str, arguments: &Map<String, Value>) -> bool {
    let message = message.to_lowercase();
    REFUSALS.iter().any(|refusal| message.contains(refusal))
        && arguments.iter().any(|(name, value)| relative_path(name, value).is_some())
}

/// The arguments with the relative paths made absolute; none if there are none.
pub(crate) fn with_absolute_paths(
    arguments: &Map<String, Value>,
    folder: &str,
) -> Option<Map<String, Value>> {
    let mut absolute = arguments.clone();
    for (name, value) in &mut absolute {
        if let Some(path) = relative_path(name, value) {
            let joined = format!("{}/{}", folder.trim_end_matches('/'), path.trim_start_matches("./"));
            *value = Value::String(joined);
        }
    }
    (absolute != *arguments).then_some(absolute)
}

fn relative_path<'v>(name: &str, value: &'v Value) -> Option<&'v str> {
    let path = value.as_str().filter(|_| is_path_param(name))?;
    let is_relative = !path.is_empty()
        && !is_absolute_path(path)
        && !path.starts_with(['$', '\\'])
        && !path.contains("..")
        && !path.contains(':')
        && !path.contains('\n')
        && path.chars().count() <= MAX_PATH_CHARS;
    is_relative.then_some(path)
}

fn is_path_param(name: &str) -> bool {
    name_words(name).last().is_some_and(|last| PATH_WORDS.contains(&last.as_str()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use toolyard_core::params;

    use super::*;

    fn places(folders: &[&str]) -> ToolPlaces {
        let folders = folders.iter().map(|folder| (*folder).to_owned()).collect();
        ToolPlaces { scope: SourceScope { folders, ..SourceScope::default() }, working_folder: None }
    }

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(entries) => entries,
            _ => Map::new(),
        }
    }

    #[test]
    fn the_repository_of_the_settings_is_filled_in() {
        let params =
            params(&json!({"properties": {"repo_path": {"type": "string"}, "files": {"type": "array"}},
            "required": ["repo_path"]}));
        let filled = |given: Value, places: &ToolPlaces| {
            let mut arguments = object(given);
            add_settled_arguments(&mut arguments, &params, places);
            Value::Object(arguments)
        };
        let one = places(&["~/code", "/home/anna/code"]);
        assert_eq!(filled(json!({}), &one), json!({"repo_path": "/home/anna/code"}));
        for written in [".", "/path/to/repo", ""] {
            let written = json!({ "repo_path": written });
            assert_eq!(filled(written.clone(), &one), written, "what the model wrote stays");
        }
        assert_eq!(filled(json!({}), &places(&["/a", "/b"])), json!({}));
        assert_eq!(filled(json!({}), &places(&[])), json!({}));
    }

    #[test]
    fn the_name_of_a_repository_at_a_host_is_not_a_folder() {
        let params = params(&json!({"properties": {"repo": {"type": "string"}}, "required": ["repo"]}));
        let mut arguments = Map::new();
        add_settled_arguments(&mut arguments, &params, &places(&["/data"]));
        assert!(arguments.is_empty());
    }

    #[test]
    fn a_refused_relative_path_becomes_absolute() {
        let arguments = object(json!({"filepath": "./sales.xlsx", "sheet_name": "a/b", "data": [["x"]]}));
        let message = "Invalid filename: sales.xlsx, must be an absolute path when not in SSE mode";
        assert!(wants_absolute_paths(message, &arguments));
        assert!(!wants_absolute_paths("file not found", &arguments));
        let absolute = object(json!({"filepath": "/docs/sales.xlsx", "sheet_name": "a/b", "data": [["x"]]}));
        assert_eq!(with_absolute_paths(&arguments, "/docs/").as_ref(), Some(&absolute));
        assert!(!wants_absolute_paths(message, &absolute));
        assert_eq!(with_absolute_paths(&absolute, "/docs"), None);
    }

    proptest! {
        #[test]
        fn a_path_stays_below_the_folder(path in "[a-z./$~:]{0,12}") {
            let arguments = object(json!({ "path": path }));
            if let Some(absolute) = with_absolute_paths(&arguments, "/docs") {
                let scope = SourceScope { folders: vec!["/docs".to_owned()], ..SourceScope::default() };
                prop_assert_eq!(scope.contains(absolute["path"].as_str().unwrap()), Some(true));
                prop_assert_eq!(with_absolute_paths(&absolute, "/docs"), None);
            }
        }
    }
}
