//! Translates variable references of other clients into ours.

use std::fmt;

use crate::config::{
    caller_header::is_caller_reference,
    template::{CALLER_PREFIX, Piece, Template},
    value_syntax::{is_variable_name, to_variable_name},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum VariableDialect {
    /// Our own syntax, which needs no translation.
    Native,
    /// `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${userHome}`, `${workspaceFolder}`, `${workspaceRoot}`,
    /// `${pathSeparator}`, `${/}`, `${input:id}` (Claude Code, Cursor, VS Code; Claude Desktop does not expand variables, but
    /// people copy entries between these files).
    Braced,
    /// Also `$VAR` (Gemini).
    BracedOrBare,
}

/// Reads an `envFile`, given its path with references; none if it cannot be read.
pub type ReadEnvFile<'a> = dyn Fn(&Template) -> Option<String> + 'a;

/// Where the configuration file of another MCP client was found.
#[derive(Clone, Copy, Default)]
pub struct FileContext<'a> {
    /// The project folder, for `${workspaceFolder}` and relative paths.
    pub workspace: Option<&'a str>,
    /// Without it, such files are ignored with a note.
    pub read_env_file: Option<&'a ReadEnvFile<'a>>,
}

impl fmt::Debug for FileContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileContext").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

/// Translates the references of a text; adds notes on those that are unsupported or need a variable to be set.
pub(in crate::config) fn translate(
    text: &str,
    dialect: VariableDialect,
    context: FileContext<'_>,
    notes: &mut Vec<String>,
) -> String {
    if dialect == VariableDialect::Native || !text.contains('$') {
        return text.to_owned();
    }
    let mut template = Template::default();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        template.push_text(before);
        if let Some((inner, left)) = after.strip_prefix('{').and_then(|after| after.split_once('}')) {
            push_braced(inner, context, &mut template, notes);
            rest = left;
        } else if let Some((variable, left)) =
            bare_variable(after).filter(|_| dialect == VariableDialect::BracedOrBare)
        {
            template.pieces.push(Piece::Reference { variable: variable.to_owned(), default: None });
            rest = left;
        } else {
            template.push_text("$");
            rest = after;
        }
    }
    template.push_text(rest);
    template.to_string()
}

fn push_braced(inner: &str, context: FileContext<'_>, template: &mut Template, notes: &mut Vec<String>) {
    let mut push_reference = |variable: &str, default: Option<&str>| {
        let default = default.map(str::to_owned);
        template.pieces.push(Piece::Reference { variable: variable.to_owned(), default });
    };
    let without_prefix = inner.strip_prefix("env:").unwrap_or(inner);
    let (variable, default) = match without_prefix.split_once(":-") {
        Some((variable, default)) => (variable, Some(default)),
        None => (without_prefix, None),
    };
    if let Some(id) = inner.strip_prefix("input:") {
        let variable = to_variable_name(&[id]);
        notes.push(format!("VS Code prompts for this value: set the environment variable `{variable}`"));
        push_reference(&variable, None);
        return;
    }
    match inner {
        "userHome" => push_reference("HOME", None),
        "workspaceFolder" | "workspaceRoot" => match context.workspace {
            Some(folder) => template.push_text(folder),
            None => {
                notes.push(
                    "the project folder is unknown: set the environment variable `WORKSPACE_FOLDER`".into(),
                );
                push_reference("WORKSPACE_FOLDER", None);
            }
        },
        "pathSeparator" | "/" => template.push_text("/"),
        _ if is_reference(variable) && !default.is_some_and(|default| default.contains("${")) => {
            push_reference(variable, default);
        }
        _ => {
            notes.push("an unsupported `${…}` was kept as plain text".to_owned());
            template.push_text("${");
            template.push_text(inner);
            template.push_text("}");
        }
    }
}

/// Whether a name is that of a variable, or of a property of the caller.
fn is_reference(name: &str) -> bool {
    is_variable_name(name) || name.strip_prefix(CALLER_PREFIX).is_some_and(is_caller_reference)
}

fn bare_variable(text: &str) -> Option<(&str, &str)> {
    let end =
        text.bytes().position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_').unwrap_or(text.len());
    let (variable, rest) = text.split_at_checked(end)?;
    is_variable_name(variable).then_some((variable, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn translate_with_notes(text: &str, dialect: VariableDialect) -> (String, Vec<String>) {
        let mut notes = Vec::new();
        let context = FileContext { workspace: Some("/home/ann/pro$ject"), ..FileContext::default() };
        (translate(text, dialect, context, &mut notes), notes)
    }

    #[test]
    fn known_references_are_translated_and_others_escaped() {
        let cases = [
            ("Bearer ${TOKEN}", "Bearer ${TOKEN}"),
            ("${TOKEN:-none}", "${TOKEN:-none}"),
            ("${env:TOKEN}", "${TOKEN}"),
            ("${userHome}/x", "${HOME}/x"),
            ("${workspaceFolder}/x", "/home/ann/pro$$ject/x"),
            ("a${/}b", "a/b"),
            ("${input:github-token}", "${GITHUB_TOKEN}"),
            ("${command:pick}", "$${command:pick}"),
            ("${A:-${B}}", "$${A:-$${B}}"),
            ("$TOKEN", "$$TOKEN"),
            ("pa$$word$", "pa$$$$word$$"),
            ("${", "$${"),
        ];
        for (text, expected) in cases {
            assert_eq!(translate_with_notes(text, VariableDialect::Braced).0, expected, "{text}");
        }
        assert_eq!(
            translate_with_notes("a/$TOKEN/${B}$", VariableDialect::BracedOrBare).0,
            "a/${TOKEN}/${B}$$"
        );
        assert_eq!(translate_with_notes("${TOKEN}", VariableDialect::Native).0, "${TOKEN}");
        assert_eq!(
            translate_with_notes("${input:github-token} ${command:pick}", VariableDialect::Braced).1.len(),
            2
        );
        assert_eq!(
            translate("${workspaceFolder}", VariableDialect::Braced, FileContext::default(), &mut vec![]),
            "${WORKSPACE_FOLDER}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn translated_text_always_parses(text in "([$]|[{}:-]|env|input|[A-Z_]{1,3}|.){0,24}") {
            for dialect in [VariableDialect::Braced, VariableDialect::BracedOrBare] {
                let output = translate_with_notes(&text, dialect).0;
                prop_assert!(Template::parse(&output).is_ok(), "{text} became {output}");
            }
        }
    }
}
