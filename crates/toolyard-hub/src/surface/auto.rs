//! Which surface costs a client fewer tokens over a whole task, by what was measured (docs/surfaces.md).

/// Up to so many tools, all are offered one by one: searching costs turns of the conversation, and every turn carries
/// all that was said before.
pub const FEW_TOOLS: usize = 40;
/// Up to so many tokens of definitions, all are offered one by one, however many there are.
pub const FEW_TOKENS: usize = 8_000;
/// How many bytes of tool definitions make a token (o200k), measured on real lists.
pub const BYTES_PER_TOKEN: usize = 4;

/// Clients that search or compact long lists by themselves, by the beginning of the name they give. A second search
/// behind theirs costs turns and hides what theirs would have found.
const SEARCH_BY_THEMSELVES: [&str; 4] = ["claude-code", "copilot", "cursor", "visual studio code"];

/// How much there is to offer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// How many tools.
    pub tools: usize,
    /// How many bytes their definitions have together.
    pub bytes: usize,
}

/// Whether a client of this name is better off with three tools that find the others.
pub fn automatic(client: Option<&str>, weight: Weight) -> bool {
    let many = weight.tools > FEW_TOOLS && weight.bytes / BYTES_PER_TOKEN > FEW_TOKENS;
    many && !client.is_some_and(searches_by_itself)
}

fn searches_by_itself(client: &str) -> bool {
    let client = client.to_lowercase();
    SEARCH_BY_THEMSELVES
        .iter()
        .any(|known| client.strip_prefix("github-").unwrap_or(&client).starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: Weight = Weight { tools: 500, bytes: 500_000 };

    #[test]
    fn few_tools_are_offered_one_by_one() {
        assert!(!automatic(None, Weight { tools: FEW_TOOLS, ..MANY }));
        assert!(!automatic(None, Weight { bytes: FEW_TOKENS * BYTES_PER_TOKEN, ..MANY }));
        assert!(automatic(None, MANY) && automatic(Some("my-agent"), MANY));
    }

    #[test]
    fn a_client_that_searches_by_itself_is_not_searched_for() {
        for client in
            ["claude-code", "Claude-Code 2", "cursor-vscode", "Visual Studio Code", "github-copilot-cli"]
        {
            assert!(!automatic(Some(client), MANY), "{client}");
        }
    }
}
