//! Errors for names of tools that do not exist or are ambiguous. They name only tools that the caller may call.

use toolyard_core::{ErrorKind, ToolError};
use toolyard_hub::suggest::{NameSummary, did_you_mean, join_names};

use super::{exposed_tools::ExposedTool, permitted_tools::VisibleTools};

/// Tools that the error for an ambiguous name lists.
const MAX_NAMED_TOOLS: usize = 8;

/// The error for a name that several exposed tools have, with the names by which they are called; `None` if none has it.
pub(super) fn ambiguous_name(name: &str, visible: &VisibleTools) -> Option<ToolError> {
    let describe = |tool: &ExposedTool| match &tool.distinction {
        Some(distinction) => format!("`{}` ({distinction})", tool.name),
        None => format!("`{}`", tool.name),
    };
    let names: Vec<String> = visible.with_own_name(name).map(describe).collect();
    let more = match names.len().saturating_sub(MAX_NAMED_TOOLS) {
        _ if names.is_empty() => return None,
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = match names.len() {
        1 => "this name alone is ambiguous; no tool was called".to_owned(),
        several => format!("{several} servers have a tool of this name; none was called"),
    };
    let names: Vec<String> = names.into_iter().take(MAX_NAMED_TOOLS).collect();
    let error = ToolError::new(ErrorKind::Refused, message).on_tool(name);
    Some(error.with_hint(format!("call one of {}{more}", names.join(", "))))
}

/// The error for an unknown name, with similar names as a hint.
pub(super) fn unknown_tool(name: &str, visible: &VisibleTools) -> ToolError {
    if let Some(error) = ambiguous_name(name, visible) {
        return error;
    }
    let error = ToolError::new(ErrorKind::UnknownTool, format!("tool `{name}` does not exist"));
    let similar = did_you_mean(visible.iter().map(|tool| (&*tool.name, NameSummary::of(&tool.name))), name);
    if similar.is_empty() {
        error
    } else {
        error.with_hint(format!("did you mean {}?", join_names(&similar)))
    }
}
