//! Small tools and servers for the tests of the search.

use super::{ServerText, ToolText};

pub(super) fn tool(name: &str, description: &str) -> ToolText {
    ToolText {
        key: name.into(),
        name: name.to_owned(),
        description: description.to_owned(),
        ..ToolText::default()
    }
}

pub(super) fn server(id: &str) -> ServerText {
    ServerText { id: id.into(), description: String::new() }
}
