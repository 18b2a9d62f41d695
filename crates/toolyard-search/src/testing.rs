//! Tools and servers for tests.

use crate::{ServerText, ToolText};

pub(crate) fn tool(name: &str, description: &str) -> ToolText {
    ToolText {
        key: name.into(),
        name: name.to_owned(),
        description: description.to_owned(),
        ..ToolText::default()
    }
}

pub(crate) fn server(id: &str) -> ServerText {
    ServerText { id: id.into(), description: String::new() }
}
