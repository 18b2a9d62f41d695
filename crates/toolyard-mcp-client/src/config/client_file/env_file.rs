//! Environment files (`envFile` of VS Code and Cursor): `NAME=value` lines.

use super::variable_dialect::FileContext;
use crate::config::{ServerSettings, template::Template, value_syntax::is_environment_name};

/// Adds the variables of an environment file; those that the entry itself sets take precedence. Problems are noted.
pub(super) fn add_env_file(
    settings: &mut ServerSettings,
    path: &str,
    context: FileContext<'_>,
    notes: &mut Vec<String>,
) {
    let Some(read) = context.read_env_file else {
        notes.push("`envFile` was ignored: set its variables in `env`".to_owned());
        return;
    };
    if settings.url.is_some() {
        notes.push("`envFile` was ignored: not applicable to a URL".to_owned());
        return;
    }
    let path =
        match (path.starts_with(['/', '\\', '~', '$']) || path.get(1..2) == Some(":"), context.workspace) {
            (false, Some(folder)) => {
                let rest = path.trim_start_matches("./");
                format!("{}/{rest}", Template::escape(folder.trim_end_matches('/')))
            }
            _ => path.to_owned(),
        };
    let text = Template::parse(&path).ok().and_then(|path| read(&path));
    let Some(text) = text else {
        notes.push("`envFile` could not be read: its variables are missing".to_owned());
        return;
    };
    let variables = parse_env_file(&text);
    let names: Vec<String> = variables.iter().map(|(name, _)| format!("`{name}`")).collect();
    for (name, value) in variables {
        settings.env.entry(name).or_insert_with(|| Template::escape(&value));
    }
    let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    notes.push(format!("read from `envFile`: {names}; later changes of that file have no effect"));
}

/// The variables of an environment file, the last value of each name. Values may be quoted: within double quotes, `\n`, `\r`,
/// `\t`, `\"` and `\\` are escapes. ` #` begins a comment. Lines that are no assignment are skipped.
pub(super) fn parse_env_file(text: &str) -> Vec<(String, String)> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else { continue };
        let name = name.trim();
        if line.starts_with('#') || !is_environment_name(name) || name.contains(char::is_whitespace) {
            continue;
        }
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_owned(), unquote(value.trim())));
    }
    variables
}

fn unquote(value: &str) -> String {
    let quoted =
        |quote: char| value.strip_prefix(quote).and_then(|rest| Some((rest, find_end(rest, quote)?)));
    if let Some((rest, end)) = quoted('\'') {
        return rest.get(..end).unwrap_or_default().to_owned();
    }
    let Some((rest, end)) = quoted('"') else {
        let comment = value.find(" #").or_else(|| value.find("\t#"));
        return comment.and_then(|start| value.get(..start)).unwrap_or(value).trim_end().to_owned();
    };
    let mut text = String::new();
    let mut letters = rest.get(..end).unwrap_or_default().chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('t') => text.push('\t'),
                Some(escaped @ ('"' | '\\' | '$')) => text.push(escaped),
                other => text.extend(['\\'].into_iter().chain(other)),
            },
            (letter, false) => text.push(letter),
        }
    }
    text
}

/// The position of the closing quote; a backslash protects a double quote.
fn find_end(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(index, letter)| {
        let is_end = letter == quote && !is_escaped;
        is_escaped = quote == '"' && letter == '\\' && !is_escaped;
        is_end.then_some(index)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_parsed_as_editors_do() {
        let text = "\u{feff}# a comment\nTOKEN=abc\nexport REGION = eu # west\nNAME=\"two words\" # x\nLITERAL='a\\n$b'\n\
                    LINES=\"a\\nb\\\"c\\\\\"\nEMPTY=\nHASH=a#b\n=x\nno assignment\nBAD NAME=1\nTOKEN=def\nOPEN=\"half\n";
        let expected = [
            ("REGION", "eu"),
            ("NAME", "two words"),
            ("LITERAL", "a\\n$b"),
            ("LINES", "a\nb\"c\\"),
            ("EMPTY", ""),
            ("HASH", "a#b"),
            ("TOKEN", "def"),
            ("OPEN", "\"half"),
        ];
        let expected: Vec<_> =
            expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(parse_env_file(text), expected);
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "([A-Z]{1,2}|=|[\"'\\\\#\n\r \u{feff}]|export |.){0,40}") {
            for (name, value) in parse_env_file(&text) {
                prop_assert!(is_environment_name(&name) && !value.contains('\0') | text.contains('\0'));
            }
        }

        #[test]
        fn quoted_values_round_trip(value in "[^\0\n\r]{0,20}") {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            prop_assert_eq!(parse_env_file(&format!("A=\"{escaped}\"")), [("A".to_owned(), value)]);
        }
    }
}
