//! Translates variable references of other clients into ours.

use crate::config::{
    template::{Piece, Template},
    value_syntax::{is_variable_name, variable_name},
};

/// The reference syntax of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum VariableDialect {
    /// Our own syntax.
    Native,
    /// `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${userHome}`, `${workspaceFolder}`, `${input:id}` (Claude Code, Cursor,
    /// VS Code; Claude Desktop looks nothing up itself, but people copy between the two).
    Braced,
    /// Also `$VAR` (Gemini).
    BracedOrBare,
}

/// The context of a client's file.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileContext<'a> {
    /// The project folder, for `${workspaceFolder}` and relative paths.
    pub workspace: Option<&'a str>,
}

/// Translates the references of a text; adds notes on unsupported ones.
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
            braces(inner, context, &mut template, notes);
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

/// Translates the text between `${` and `}`.
fn braces(inner: &str, context: FileContext<'_>, template: &mut Template, notes: &mut Vec<String>) {
    let mut reference = |variable: &str, default: Option<&str>| {
        let default = default.map(str::to_owned);
        template.pieces.push(Piece::Reference { variable: variable.to_owned(), default });
    };
    let named = inner.strip_prefix("env:").unwrap_or(inner);
    let (variable, default) = match named.split_once(":-") {
        Some((variable, default)) => (variable, Some(default)),
        None => (named, None),
    };
    if let Some(id) = inner.strip_prefix("input:") {
        let variable = variable_name(&[id]);
        notes.push(format!("VS Code prompts for this value: set the environment variable `{variable}`"));
        reference(&variable, None);
        return;
    }
    match inner {
        "userHome" => reference("HOME", None),
        "workspaceFolder" | "workspaceRoot" => match context.workspace {
            Some(folder) => template.push_text(folder),
            None => {
                notes.push(
                    "the project folder is unknown: set the environment variable `WORKSPACE_FOLDER`".into(),
                );
                reference("WORKSPACE_FOLDER", None);
            }
        },
        "pathSeparator" | "/" => template.push_text("/"),
        _ if is_variable_name(variable) && !default.is_some_and(|default| default.contains("${")) => {
            reference(variable, default);
        }
        _ => {
            notes.push("an unsupported `${…}` was kept as plain text".to_owned());
            template.push_text("${");
            template.push_text(inner);
            template.push_text("}");
        }
    }
}

/// Splits off a leading variable name.
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

    fn translated(text: &str, dialect: VariableDialect) -> (String, Vec<String>) {
        let mut notes = Vec::new();
        let context = FileContext { workspace: Some("/home/ann/pro$ject") };
        (translate(text, dialect, context, &mut notes), notes)
    }

    #[test]
    fn every_syntax_is_translated() {
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
        for (text, ours) in cases {
            assert_eq!(translated(text, VariableDialect::Braced).0, ours, "{text}");
        }
        assert_eq!(translated("a/$TOKEN/${B}$", VariableDialect::BracedOrBare).0, "a/${TOKEN}/${B}$$");
        assert_eq!(translated("${TOKEN}", VariableDialect::Native).0, "${TOKEN}");
        assert_eq!(translated("${input:github-token} ${command:pick}", VariableDialect::Braced).1.len(), 2);
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
                let ours = translated(&text, dialect).0;
                prop_assert!(Template::parse(&ours).is_ok(), "{text} became {ours}");
            }
        }
    }
}
