//! Chooses the surface that costs a client fewer tokens over a whole task, as measured (docs/surfaces.md).

/// Up to this many tools, the full surface is cheaper: every search is a turn, and every turn repeats the conversation.
/// Measured break-even: 31 tools at best, 40 for a client with short instructions that sends every turn in full.
const MAX_FULL_SURFACE_TOOLS: usize = 40;
/// Up to this many tokens of definitions, the full surface is cheaper, however many tools there are. Measured break-even
/// for the least favourable client: long instructions and no prompt cache.
const MAX_FULL_SURFACE_TOKENS: usize = 8_500;

/// Prefixes of the names of clients that search or compact long tool lists themselves. A second search behind theirs
/// costs turns and hides tools from theirs.
const SEARCHING_CLIENTS: [&str; 4] = ["claude-code", "copilot", "cursor", "visual studio code"];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ToolListSize {
    pub(super) tools: usize,
    /// Total size of their definitions.
    pub(super) bytes: usize,
}

impl ToolListSize {
    /// Estimated o200k tokens: nine bytes of real definitions are about two tokens.
    fn tokens(self) -> usize {
        self.bytes * 2 / 9
    }
}

pub(super) fn prefers_search(client: Option<&str>, size: ToolListSize) -> bool {
    let is_large = size.tools > MAX_FULL_SURFACE_TOOLS && size.tokens() > MAX_FULL_SURFACE_TOKENS;
    is_large && !client.is_some_and(is_searching_client)
}

fn is_searching_client(client: &str) -> bool {
    let starts_with = |text: &str, prefix: &str| {
        text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let name = if starts_with(client, "github-") { client.get("github-".len()..) } else { None };
    SEARCHING_CLIENTS.iter().any(|known| starts_with(name.unwrap_or(client), known))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: ToolListSize = ToolListSize { tools: 500, bytes: 500_000 };

    #[test]
    fn a_small_tool_list_gets_the_full_surface() {
        assert!(!prefers_search(None, ToolListSize { tools: MAX_FULL_SURFACE_TOOLS, ..MANY }));
        assert!(!prefers_search(None, ToolListSize { bytes: MAX_FULL_SURFACE_TOKENS * 9 / 2, ..MANY }));
        assert!(prefers_search(None, MANY) && prefers_search(Some("my-agent"), MANY));
    }

    #[test]
    fn a_client_that_searches_itself_gets_the_full_surface() {
        for client in
            ["claude-code", "Claude-Code 2", "cursor-vscode", "Visual Studio Code", "github-copilot-cli"]
        {
            assert!(!prefers_search(Some(client), MANY), "{client}");
        }
    }
}
