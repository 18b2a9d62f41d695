//! Tools and sources for tests.

use crate::{SourceText, ToolText};

pub(crate) fn tool(name: &str, description: &str) -> ToolText {
    ToolText {
        key: name.into(),
        name: name.to_owned(),
        description: description.to_owned(),
        ..ToolText::default()
    }
}

pub(crate) fn source(id: &str) -> SourceText {
    SourceText { id: id.into(), description: String::new() }
}
