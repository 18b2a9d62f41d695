//! Paths in arguments: fills in the repository that a server's settings name, removes folders that a model invented, and
//! makes paths absolute for a server that refuses relative ones.
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
/// Words between a description and a file.
const PREPOSITIONS: [&str; 6] = ["of", "in", "from", "file", "workbook", "the"];
/// Texts with which models mean the folder that a server works on, in lower case.
const GENERIC_FOLDERS: [&str; 12] = [
    "",
    ".",
    "~",
    "documents",
    "/documents",
    "~/documents",
    "my documents",
    "docs",
    "文档",
    "我的文档",
    "/path/to/documents",
    "/path/to/directory",
];
/// Words at the end of a description of a folder.
const FOLDER_WORDS: [&str; 4] = [" folder", " directory", "文件夹", "目录"];
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
    fn only_folder(&self) -> Option<&str> {
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

/// Fills in arguments that the settings decide, unless they name a place in the folder already.
pub(crate) fn fill_settled_arguments(
    arguments: &mut Map<String, Value>,
    params: &[Param],
    places: &ToolPlaces,
) {
    let Some(folder) = places.only_folder() else { return };
    for param in params {
        let given = arguments.get(&param.name).and_then(Value::as_str);
        let is_inside = |path: &str| is_absolute_path(path) && places.scope.contains(path) == Some(true);
        let is_missing = places.settled_value(param).is_some() && !given.is_some_and(is_inside);
        let is_generic = is_path_param(&param.name) && given.is_some_and(is_generic_folder);
        if is_missing || is_generic {
            arguments.insert(param.name.clone(), Value::String(folder.to_owned()));
        }
    }
}

/// Whether a text stands for the folder of a server without naming one: `my documents folder`.
fn is_generic_folder(text: &str) -> bool {
    let text = text.trim().trim_end_matches('/').to_lowercase();
    let has_extension = text.rsplit('/').next().is_some_and(is_file_name);
    let names_one = text.contains('/') || has_extension;
    GENERIC_FOLDERS.contains(&text.as_str())
        || !names_one && FOLDER_WORDS.iter().any(|word| text.ends_with(word))
}

/// A path without the folders that a model invented: `/path/to/a.txt` is `a.txt` if the request only says `a.txt`.
pub(super) fn without_invented_folder<'v>(name: &str, value: &'v str, context_text: &str) -> Option<&'v str> {
    let (folder, file) = value.trim_end_matches('/').rsplit_once('/')?;
    let is_invented = is_path_param(name)
        && is_absolute_path(value)
        && !context_text.contains(value)
        && !(folder.len() > 1 && context_text.contains(folder))
        && is_file_name(file)
        && context_text.contains(file);
    is_invented.then_some(file)
}

/// The file of a path that is described rather than named: `Sales of sales.xlsx` is `sales.xlsx`.
pub(super) fn without_description<'v>(name: &str, value: &'v str) -> Option<&'v str> {
    let (description, file) = value.trim().rsplit_once(' ')?;
    let last = description.rsplit(' ').next().unwrap_or_default().to_lowercase();
    let is_described = is_path_param(name) && PREPOSITIONS.contains(&last.as_str()) && is_file_name(file);
    is_described.then_some(file)
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

/// Whether a text is the name of a file, with an extension.
fn is_file_name(text: &str) -> bool {
    text.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && (1..=8).contains(&extension.len()) && !extension.contains(char::is_whitespace)
    })
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
            fill_settled_arguments(&mut arguments, &params, places);
            Value::Object(arguments)
        };
        let one = places(&["~/code", "/home/anna/code"]);
        assert_eq!(filled(json!({}), &one), json!({"repo_path": "/home/anna/code"}));
        assert_eq!(filled(json!({"repo_path": "."}), &one), json!({"repo_path": "/home/anna/code"}));
        assert_eq!(
            filled(json!({"repo_path": "/path/to/repo"}), &one),
            json!({"repo_path": "/home/anna/code"})
        );
        let inside = json!({"repo_path": "/home/anna/code/part"});
        assert_eq!(filled(inside.clone(), &one), inside);
        assert_eq!(filled(json!({"repo_path": "."}), &places(&["/a", "/b"])), json!({"repo_path": "."}));
        assert_eq!(filled(json!({"repo_path": "."}), &places(&[])), json!({"repo_path": "."}));
    }

    #[test]
    fn a_description_of_the_folder_becomes_the_folder() {
        let params = params(&json!({"properties": {"path": {"type": "string"}}, "required": ["path"]}));
        let filled = |given: &str| {
            let mut arguments = object(json!({ "path": given }));
            fill_settled_arguments(&mut arguments, &params, &places(&["/data"]));
            arguments["path"].as_str().unwrap().to_owned()
        };
        for generic in [".", "./", "我的文档文件夹", "my documents folder", "~/Documents", ""] {
            assert_eq!(filled(generic), "/data", "{generic}");
        }
        for named in ["old", "notes.txt", "reports/2026", "/data/old", "old/folder", "the folder.txt"] {
            assert_eq!(filled(named), named);
        }
    }

    #[test]
    fn the_name_of_a_repository_at_a_host_is_not_a_folder() {
        let params = params(&json!({"properties": {"repo": {"type": "string"}}, "required": ["repo"]}));
        let mut arguments = object(json!({"repo": "rust-lang/rust"}));
        fill_settled_arguments(&mut arguments, &params, &places(&["/data"]));
        assert_eq!(arguments, object(json!({"repo": "rust-lang/rust"})));
    }

    #[test]
    fn an_invented_folder_is_removed_and_a_named_one_is_kept() {
        let request = "Rename report.txt to /data/final.txt";
        assert_eq!(without_invented_folder("source", "/path/to/report.txt", request), Some("report.txt"));
        assert_eq!(without_invented_folder("destination", "/data/final.txt", request), None);
        assert_eq!(without_invented_folder("path", "/home/x/other.txt", request), None);
        assert_eq!(without_invented_folder("content", "/path/to/report.txt", request), None);
        assert_eq!(
            without_invented_folder("source", "/data/report.txt", request),
            None,
            "the folder is named"
        );
    }

    #[test]
    fn a_described_file_is_the_file() {
        assert_eq!(without_description("filepath", "Sales of sales.xlsx"), Some("sales.xlsx"));
        assert_eq!(without_description("filepath", "my sales.xlsx"), None, "names may contain spaces");
        assert_eq!(without_description("path", "the file"), None);
        assert_eq!(without_description("content", "page of a.txt"), None);
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
