//! Finds descriptions of parameters in a tool's description, where servers made from Python functions leave them.
//!
//! ```text
//! Read data from a worksheet.
//!
//! Args:
//!     filepath: Path to the file
//!     sheet_name (str): Name of the worksheet,
//!         as it is written on its tab
//! ```

use toolyard_core::Param;

/// How a section of parameters is headed, in lower case.
const HEADINGS: [&str; 6] = ["args", "arguments", "parameters", "params", "参数", "參數"];

/// Moves what the lines of a description say about parameters that have no description of their own to them. Returns
/// the lines that are left.
pub(super) fn take_apart(lines: Vec<String>, params: &mut [Param]) -> Vec<String> {
    let Some(heading) = lines.iter().position(|line| is_heading(line)) else { return lines };
    let mut rest = lines;
    let section = rest.split_off(heading);
    let mut section = section.into_iter();
    let heading = section.next();
    let (taken, left) = items(section.collect(), params);
    if taken.is_empty() || left.first().is_some_and(|line| item(line, params).is_some()) {
        // Something here is not understood: nothing is moved, so that nothing is torn apart.
        rest.extend(heading);
        rest.extend(taken.into_iter().flat_map(|item| item.lines));
        rest.extend(left);
        return rest;
    }
    for item in taken {
        if let Some(param) = params.get_mut(item.param) {
            param.description = Some(item.text);
        }
    }
    rest.extend(left);
    rest
}

fn is_heading(line: &str) -> bool {
    let line = line.trim().trim_matches('*');
    line.strip_suffix([':', '：']).is_some_and(|word| HEADINGS.contains(&word.trim().to_lowercase().as_str()))
}

/// What is said about one parameter.
struct Item {
    param: usize,
    text: String,
    lines: Vec<String>,
}

/// The items at the beginning of a section, and what follows them.
fn items(lines: Vec<String>, params: &[Param]) -> (Vec<Item>, Vec<String>) {
    let mut taken: Vec<Item> = Vec::new();
    let mut lines = lines.into_iter().peekable();
    while let Some(line) = lines.peek() {
        let indent = indent(line);
        match item(line, params) {
            Some((param, _)) if taken.iter().any(|item| item.param == param) => break,
            Some((param, text)) => taken.push(Item { param, text: text.to_owned(), lines: Vec::new() }),
            // Deeper than the item before it: the rest of its sentence.
            None => match taken.last_mut() {
                Some(last) if last.lines.first().is_some_and(|first| indent > self::indent(first)) => {
                    last.text.push(' ');
                    last.text.push_str(line.trim());
                }
                _ => break,
            },
        }
        if let (Some(last), Some(line)) = (taken.last_mut(), lines.next()) {
            last.lines.push(line);
        }
    }
    (taken, lines.collect())
}

/// `name: text`, `- name (type): text`, `:param name: text`, of a parameter that has no description yet.
fn item<'a>(line: &'a str, params: &[Param]) -> Option<(usize, &'a str)> {
    let line = line.trim().trim_start_matches(['-', '*', '•']).trim_start();
    let line = line.strip_prefix(":param ").unwrap_or(line);
    let (subject, text) = line.split_once([':', '：'])?;
    let name = subject.split_once('(').map_or(subject, |(name, _)| name);
    let name = name.trim().trim_matches(['`', '*']);
    let param = params.iter().position(|param| param.name == name && param.description.is_none())?;
    let text = text.trim_start_matches('*').trim();
    (!text.is_empty()).then_some((param, text))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn apart(text: &str, names: &[&str]) -> (Vec<String>, Vec<Option<String>>) {
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        let mut params = toolyard_core::params(&json!({ "properties": properties }));
        let lines = take_apart(text.lines().map(str::to_owned).collect(), &mut params);
        (lines, params.into_iter().map(|param| param.description).collect())
    }

    #[test]
    fn a_docstring_is_taken_apart() {
        let text = "Read.\nArgs:\n    path: Where\n      it is\n    `sheet` (str): Which\nReturns:\n    JSON";
        let (lines, descriptions) = apart(text, &["path", "sheet"]);
        assert_eq!(lines, ["Read.", "Returns:", "    JSON"]);
        assert_eq!(descriptions, [Some("Where it is".to_owned()), Some("Which".to_owned())]);
    }

    #[test]
    fn items_may_stand_as_far_left_as_their_heading() {
        let (lines, descriptions) = apart("Write.\nPARAMETERS:  \npath: Where", &["path"]);
        assert_eq!((lines, descriptions), (vec!["Write.".to_owned()], vec![Some("Where".to_owned())]));
    }

    #[test]
    fn other_colons_stay() {
        let text = "Args:\n  note: this is not a parameter";
        let (lines, descriptions) = apart(text, &["path"]);
        assert_eq!((lines.join("\n"), descriptions), (text.to_owned(), vec![None]));
    }

    #[test]
    fn a_parameter_that_is_described_twice_is_left_alone() {
        let text = "Args:\n  path: one\n  path: two";
        assert_eq!(apart(text, &["path"]).0.join("\n"), text);
    }
}
