//! [`SourceScope`]: what distinguishes the instances of one program, from the operator's settings.

/// Labels of one source that are shown together.
const MAX_SHOWN_LABELS: usize = 3;
/// Characters of all shown labels.
const MAX_SHOWN_CHARS: usize = 80;

/// What a source acts on, as far as its settings tell: folders, host, account. Two servers of one program differ in it.
///
/// ```
/// use toolyard_core::SourceScope;
///
/// let data = SourceScope { folders: vec!["/data".into()], ..SourceScope::default() };
/// assert_eq!(data.contains("/data/2026/sales.csv"), Some(true));
/// assert_eq!(data.contains("/data/../etc/passwd"), Some(false));
/// assert_eq!(SourceScope::default().contains("/data/x"), None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceScope {
    /// The program, if the source is one; instances of one program with different labels are not equivalent.
    pub program: Option<String>,
    /// Folders and files that the settings name, as absolute paths or with a leading `~`.
    pub folders: Vec<String>,
    /// What a user or model is shown, without secrets: `/data`, `api.example.org`, `--account work`.
    pub labels: Vec<String>,
}

impl SourceScope {
    /// Whether an absolute path is in one of the folders; `None` if no folder is known.
    pub fn contains(&self, path: &str) -> Option<bool> {
        if self.folders.is_empty() {
            return None;
        }
        let path = path_parts(path);
        Some(self.folders.iter().any(|folder| path.starts_with(&path_parts(folder))))
    }

    /// Whether the two are instances of one program with different settings.
    pub fn is_other_instance(&self, other: &Self) -> bool {
        self.program.is_some() && self.program == other.program && self.labels != other.labels
    }

    /// A short text that distinguishes the source from the others: its labels that not all of them have, files without their
    /// folders. If these labels only name options or variables, the text is `name`. `None` if there are no such labels.
    pub fn distinction<'a>(&self, name: &str, others: impl Iterator<Item = &'a Self>) -> Option<String> {
        let others: Vec<&Self> = others.collect();
        let is_common = |label: &String| others.iter().all(|other| other.labels.contains(label));
        let own: Vec<&String> = self.labels.iter().filter(|label| !is_common(label)).collect();
        if own.is_empty() {
            return None;
        }
        let other_labels: Vec<&String> = others.iter().flat_map(|other| &other.labels).collect();
        let short = |label: &String| {
            let file = file_name(label);
            let is_shared = other_labels.iter().any(|other| *other != label && file_name(other) == file);
            if is_shared { label.clone() } else { file.to_owned() }
        };
        let shown = own.into_iter().filter(|label| is_descriptive(label)).take(MAX_SHOWN_LABELS).map(short);
        let text = shown.collect::<Vec<String>>().join(", ");
        Some(match text.chars().nth(MAX_SHOWN_CHARS) {
            _ if text.is_empty() => name.to_owned(),
            None => text,
            Some(_) => text.chars().take(MAX_SHOWN_CHARS - 1).chain(['…']).collect(),
        })
    }
}

/// Whether a label says what the source acts on, rather than only the name of an option, variable or secret.
fn is_descriptive(label: &str) -> bool {
    let is_name_char = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    let is_bare_option = label.starts_with('-') && !label.contains(' ');
    let is_hidden = label.starts_with("${") || label.contains("[redacted:");
    !is_hidden && !is_bare_option && !label.chars().all(is_name_char)
}

/// The file name of a label that is the path of a file. Other labels stay whole: callers choose by the path of a folder.
fn file_name(label: &str) -> &str {
    let name = label.rsplit('/').next().unwrap_or(label);
    let has_extension = name.rsplit_once('.').is_some_and(|(stem, _)| !stem.is_empty());
    if is_absolute_path(label) && has_extension { name } else { label }
}

/// Whether the text is an absolute path, or one in the home folder.
pub fn is_absolute_path(text: &str) -> bool {
    let is_home = text == "~" || text.starts_with("~/");
    (text.starts_with('/') || is_home) && !text.starts_with("//") && !text.contains(['\n', '\0'])
}

/// The parts of a path, with `.` and `..` resolved without looking at the file system.
fn path_parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scope(labels: &[&str]) -> SourceScope {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        SourceScope { program: Some("files".to_owned()), folders: Vec::new(), labels }
    }

    #[test]
    fn only_what_differs_is_shown() {
        let (data, docs) = (scope(&["/data", "--read-only"]), scope(&["~/docs", "--read-only"]));
        assert_eq!(data.distinction("data", [&docs].into_iter()).as_deref(), Some("/data"));
        assert_eq!(docs.distinction("docs", [&data].into_iter()).as_deref(), Some("~/docs"));
        assert_eq!(data.distinction("data", [&data].into_iter()), None);
        assert!(data.is_other_instance(&docs) && !data.is_other_instance(&data));
    }

    #[test]
    fn labels_that_only_name_options_or_secrets_are_not_shown() {
        let other = scope(&["/b/other.json", "--local-timezone UTC"]);
        let shown =
            |labels: &[&str]| scope(labels).distinction("my-notes", [&other].into_iter()).unwrap_or_default();
        assert_eq!(shown(&["${B_API_KEY}", "/tmp/a/notes.json"]), "notes.json");
        assert_eq!(shown(&["/a/other.json"]), "/a/other.json", "the other file has the same name");
        assert_eq!(shown(&["--local-timezone Europe/Berlin"]), "--local-timezone Europe/Berlin");
        for hidden in ["${secret:API_KEY}", "API_KEY=[redacted:assignment]", "API_KEY", "--verbose"] {
            assert_eq!(shown(&[hidden]), "my-notes");
        }
    }

    #[test]
    fn a_path_is_in_a_folder_by_whole_names() {
        let data = SourceScope { folders: vec!["/data/".to_owned(), "~/docs".to_owned()], ..scope(&[]) };
        for inside in ["/data", "/data/a", "/data/./a/../b", "//data/x", "~/docs/a.txt"] {
            assert_eq!(data.contains(inside), Some(true), "{inside}");
        }
        for outside in ["/database", "/", "/data/../etc", "~/other", "/docs/a", "/home/../data2"] {
            assert_eq!(data.contains(outside), Some(false), "{outside}");
        }
    }

    proptest! {
        #[test]
        fn a_path_that_leaves_the_folder_is_outside(up in 1_usize..6, down in "[a-z]{1,5}") {
            let data = SourceScope { folders: vec!["/data/x".to_owned()], ..scope(&[]) };
            let path = format!("/data/x{}/{down}", "/..".repeat(up));
            let is_back = up == 1 && down == "x";
            prop_assert_eq!(data.contains(&path), Some(is_back));
        }
    }
}
