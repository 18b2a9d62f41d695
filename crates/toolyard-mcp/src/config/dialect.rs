//! References as other clients write them, rewritten in the one form that is used here.

use super::{
    expand::{Piece, Template},
    name::{is_variable, variable_name},
};

/// How a client writes references to variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// As we do: whoever read the file saw to it.
    Ours,
    /// `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${userHome}`, `${workspaceFolder}`, `${input:id}` (Claude Code, Cursor,
    /// VS Code; Claude Desktop looks nothing up itself, but people copy between the two).
    Braces,
    /// All of these and `$VAR` (Gemini).
    Dollar,
}

/// Where a client's file stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place<'a> {
    /// The project's folder, which `${workspaceFolder}` stands for.
    pub workspace: Option<&'a str>,
}

/// A text rewritten, and what there is to say about it.
pub(super) fn translate(text: &str, dialect: Dialect, place: Place<'_>, notes: &mut Vec<String>) -> String {
    if dialect == Dialect::Ours || !text.contains('$') {
        return text.to_owned();
    }
    let mut template = Template::default();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        template.push_text(before);
        if let Some((inner, left)) = after.strip_prefix('{').and_then(|after| after.split_once('}')) {
            braces(inner, place, &mut template, notes);
            rest = left;
        } else if let Some((variable, left)) = bare_variable(after).filter(|_| dialect == Dialect::Dollar) {
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

/// What stands between `${` and `}`.
fn braces(inner: &str, place: Place<'_>, template: &mut Template, notes: &mut Vec<String>) {
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
        notes.push(format!("VS Code asks for a value here: set the environment variable `{variable}`"));
        reference(&variable, None);
        return;
    }
    match inner {
        "userHome" => reference("HOME", None),
        "workspaceFolder" | "workspaceRoot" => match place.workspace {
            Some(folder) => template.push_text(folder),
            None => {
                notes.push(
                    "the project's folder is not known: set the environment variable `WORKSPACE_FOLDER`"
                        .into(),
                );
                reference("WORKSPACE_FOLDER", None);
            }
        },
        "pathSeparator" | "/" => template.push_text("/"),
        _ if is_variable(variable) && !default.is_some_and(|default| default.contains("${")) => {
            reference(variable, default);
        }
        _ => {
            notes.push("a `${…}` that is not understood was kept as plain text".to_owned());
            template.push_text("${");
            template.push_text(inner);
            template.push_text("}");
        }
    }
}

/// The variable a text begins with.
fn bare_variable(text: &str) -> Option<(&str, &str)> {
    let end =
        text.bytes().position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_').unwrap_or(text.len());
    let (variable, rest) = text.split_at_checked(end)?;
    is_variable(variable).then_some((variable, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn translated(text: &str, dialect: Dialect) -> (String, Vec<String>) {
        let mut notes = Vec::new();
        let place = Place { workspace: Some("/home/ann/pro$ject") };
        (translate(text, dialect, place, &mut notes), notes)
    }

    #[test]
    fn every_form_becomes_ours() {
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
            assert_eq!(translated(text, Dialect::Braces).0, ours, "{text}");
        }
        assert_eq!(translated("a/$TOKEN/${B}$", Dialect::Dollar).0, "a/${TOKEN}/${B}$$");
        assert_eq!(translated("${TOKEN}", Dialect::Ours).0, "${TOKEN}");
        assert_eq!(translated("${input:github-token} ${command:pick}", Dialect::Braces).1.len(), 2);
        assert_eq!(
            translate("${workspaceFolder}", Dialect::Braces, Place::default(), &mut vec![]),
            "${WORKSPACE_FOLDER}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn whatever_is_written_can_be_read_here(text in "([$]|[{}:-]|env|input|[A-Z_]{1,3}|.){0,24}") {
            for dialect in [Dialect::Braces, Dialect::Dollar] {
                let ours = translated(&text, dialect).0;
                prop_assert!(Template::parse(&ours).is_ok(), "{text} became {ours}");
            }
        }
    }
}
