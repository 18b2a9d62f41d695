//! Which surface costs a client fewer tokens over a whole task, by what was measured (docs/surfaces.md).

/// Up to so many tools, all are offered one by one: every search is a turn of the conversation, and every turn carries all
/// that was said before. Measured, searching costs more below 31 tools at best and 40 for a client with short
/// instructions that sends every turn in full.
pub const FEW_TOOLS: usize = 40;
/// Up to so many tokens of definitions, all are offered one by one, however many there are: for a client with long
/// instructions and without a prompt cache, the least favourable that was measured, searching costs less from here on.
pub const FEW_TOKENS: usize = 8_500;

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

impl Weight {
    /// About how many tokens (o200k) that is: of real definitions, nine bytes make two.
    pub fn tokens(self) -> usize {
        self.bytes * 2 / 9
    }
}

/// Whether a client of this name is better off with three tools that find the others.
pub fn automatic(client: Option<&str>, weight: Weight) -> bool {
    let many = weight.tools > FEW_TOOLS && weight.tokens() > FEW_TOKENS;
    many && !client.is_some_and(searches_by_itself)
}

fn searches_by_itself(client: &str) -> bool {
    let begins = |text: &str, with: &str| {
        text.get(..with.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(with))
    };
    let name = if begins(client, "github-") { client.get("github-".len()..) } else { None };
    SEARCH_BY_THEMSELVES.iter().any(|known| begins(name.unwrap_or(client), known))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: Weight = Weight { tools: 500, bytes: 500_000 };

    #[test]
    fn few_tools_are_offered_one_by_one() {
        assert!(!automatic(None, Weight { tools: FEW_TOOLS, ..MANY }));
        assert!(!automatic(None, Weight { bytes: FEW_TOKENS * 9 / 2, ..MANY }));
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
