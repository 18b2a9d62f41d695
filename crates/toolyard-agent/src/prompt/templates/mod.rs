//! The fixed texts of prompts, one table per language.
//!
//! The wording is tuned with small models and their results are measured: change it only together with an evaluation.

mod run;
mod system;

pub(crate) use self::{
    run::{PROBLEMS_NOTE, RunTemplates, SCHEMA_MODE_PROMPT, SCHEMA_MODE_TOOLS_HEADING},
    system::SystemTemplates,
};

/// Replaces each `{name}` of a template. Inserted values are not scanned for placeholders.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let known = values
            .iter()
            .find_map(|(name, value)| Some((*value, after.strip_prefix(name)?.strip_prefix('}')?)));
        match known {
            Some((value, behind)) => {
                out.push_str(value);
                rest = behind;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}
