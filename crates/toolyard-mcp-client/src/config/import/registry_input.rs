//! Inputs of registry servers: values that the file gives, and references to those that only the user knows.

use crate::config::{
    Template, client_file::document::Node, redacted::safe_preview, value_syntax::to_variable_name,
};

/// Resolves the inputs of a server, with references for values that only the user knows.
pub(super) struct InputResolver<'a> {
    pub(super) server: &'a str,
    pub(super) notes: Vec<String>,
}

/// What the name of the variable for an input starts with.
#[derive(Clone, Copy)]
pub(super) enum VariablePrefix {
    ServerName,
    None,
}

impl InputResolver<'_> {
    /// The value of an input: its value, its default, or a reference if it is required. A secret is always a reference.
    pub(super) fn input(&mut self, input: &Node, name: &str, prefix: VariablePrefix) -> Option<String> {
        let flag = |names: &[&str]| input.get_any(names).is_some_and(Node::is_true);
        let is_secret = flag(&["isSecret", "is_secret"]);
        let given_value = input
            .get("value")
            .and_then(Node::scalar_text)
            .filter(|_| !is_secret || input.get("variables").is_some());
        if let Some(value) = given_value {
            return Some(self.fill_placeholders(&value, input));
        }
        let default = input.get("default").and_then(Node::scalar_text).filter(|_| !is_secret);
        if let Some(default) = default {
            return Some(Template::escape(&default));
        }
        let variable = match prefix {
            VariablePrefix::ServerName => to_variable_name(&[self.server, name]),
            VariablePrefix::None => to_variable_name(&[name]),
        };
        let description =
            input.get("description").and_then(Node::text).map(|text| format!(" ({})", safe_preview(text)));
        let description = description.unwrap_or_default();
        if is_secret || flag(&["isRequired", "is_required"]) {
            self.notes.push(format!("set the environment variable `{variable}`{description}"));
            Some(format!("${{{variable}}}"))
        } else {
            self.notes.push(format!("`{}` is optional{description}", safe_preview(name)));
            None
        }
    }

    /// Replaces `{name}` with the described inputs. Inserted values are not expanded again: a default could otherwise
    /// reference a variable of the user.
    pub(super) fn fill_placeholders(&mut self, text: &str, owner: &Node) -> String {
        let variables = owner.get("variables");
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(&Template::escape(before));
            let placeholder = after.split_once('}').filter(|(name, _)| !name.is_empty());
            let described = placeholder.and_then(|(name, left)| Some((name, variables?.get(name)?, left)));
            if let Some((name, input, left)) = described {
                let value = self.input(input, name, VariablePrefix::ServerName);
                let reference = || format!("${{{}}}", to_variable_name(&[self.server, name]));
                filled.push_str(&value.unwrap_or_else(reference));
                rest = left;
            } else {
                filled.push('{');
                rest = after;
            }
        }
        filled.push_str(&Template::escape(rest));
        filled
    }

    pub(super) fn into_notes(mut self, transports: usize) -> Vec<String> {
        if transports > 1 {
            self.notes.push(format!(
                "the registry offers {transports} transports; this is the first supported one"
            ));
        }
        self.notes
    }
}
