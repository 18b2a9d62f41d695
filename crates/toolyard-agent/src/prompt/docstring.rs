//! Extracts parameter descriptions from a tool's description, where servers generated from Python functions leave them.
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

/// Headings of a parameter section, in lower case.
const HEADINGS: [&str; 6] = ["args", "arguments", "parameters", "params", "参数", "參數"];

/// Moves descriptions from the lines to the parameters that have none yet. Returns the remaining lines.
pub(super) fn extract_param_descriptions(lines: Vec<String>, params: &mut [Param]) -> Vec<String> {
    let Some(heading) = lines.iter().position(|line| is_heading(line)) else { return lines };
    let mut rest = lines;
    let section = rest.split_off(heading);
    let mut section = section.into_iter();
    let heading = section.next();
    let (items, left) = parse_items(section.collect(), params);
    if items.is_empty() || left.first().is_some_and(|line| parse_item(line, params).is_some()) {
        // The section is not fully understood: keep it as it is.
        rest.extend(heading);
        rest.extend(items.into_iter().flat_map(|item| item.lines));
        rest.extend(left);
        return rest;
    }
    for item in items {
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

/// A parameter description in a docstring.
struct ParamItem {
    /// Index of the parameter.
    param: usize,
    text: String,
    /// The lines it consists of.
    lines: Vec<String>,
}

/// Parses the items at the start of a section; returns them and the remaining lines.
fn parse_items(lines: Vec<String>, params: &[Param]) -> (Vec<ParamItem>, Vec<String>) {
    let mut items: Vec<ParamItem> = Vec::new();
    let mut lines = lines.into_iter().peekable();
    while let Some(line) = lines.peek() {
        let indent = indent(line);
        match parse_item(line, params) {
            Some((param, _)) if items.iter().any(|item| item.param == param) => break,
            Some((param, text)) => items.push(ParamItem { param, text: text.to_owned(), lines: Vec::new() }),
            // Indented deeper than the previous item: its continuation.
            None => match items.last_mut() {
                Some(last) if last.lines.first().is_some_and(|first| indent > self::indent(first)) => {
                    last.text.push(' ');
                    last.text.push_str(line.trim());
                }
                _ => break,
            },
        }
        if let (Some(last), Some(line)) = (items.last_mut(), lines.next()) {
            last.lines.push(line);
        }
    }
    (items, lines.collect())
}

/// `name: text`, `- name (type): text`, `:param name: text`, for a parameter without a description.
fn parse_item<'a>(line: &'a str, params: &[Param]) -> Option<(usize, &'a str)> {
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

    fn extract(text: &str, names: &[&str]) -> (Vec<String>, Vec<Option<String>>) {
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        let mut params = toolyard_core::params(&json!({ "properties": properties }));
        let lines = extract_param_descriptions(text.lines().map(str::to_owned).collect(), &mut params);
        (lines, params.into_iter().map(|param| param.description).collect())
    }

    #[test]
    fn parameter_descriptions_are_extracted() {
        let text = "Read.\nArgs:\n    path: Where\n      it is\n    `sheet` (str): Which\nReturns:\n    JSON";
        let (lines, descriptions) = extract(text, &["path", "sheet"]);
        assert_eq!(lines, ["Read.", "Returns:", "    JSON"]);
        assert_eq!(descriptions, [Some("Where it is".to_owned()), Some("Which".to_owned())]);
    }

    #[test]
    fn items_need_no_indentation() {
        let (lines, descriptions) = extract("Write.\nPARAMETERS:  \npath: Where", &["path"]);
        assert_eq!((lines, descriptions), (vec!["Write.".to_owned()], vec![Some("Where".to_owned())]));
    }

    #[test]
    fn lines_that_describe_no_parameter_stay() {
        let text = "Args:\n  note: this is not a parameter";
        let (lines, descriptions) = extract(text, &["path"]);
        assert_eq!((lines.join("\n"), descriptions), (text.to_owned(), vec![None]));
    }

    #[test]
    fn a_parameter_described_twice_is_left_alone() {
        let text = "Args:\n  path: one\n  path: two";
        assert_eq!(extract(text, &["path"]).0.join("\n"), text);
    }
}
