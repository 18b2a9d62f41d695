//! What trusted servers say about the use of their tools, for the clients that see these tools.

use toolyard_core::SourceId;
use toolyard_mcp_client::McpManager;

/// The rest of longer instructions is left out.
const MAX_INSTRUCTIONS_CHARS: usize = 8_000;

/// The instructions of all trusted servers that have visible tools, each with the name of its server; `None` if there are none.
///
/// They become part of a client's system prompt, so those of other servers are not passed on. Nothing is started: the
/// instructions are those of the last connection.
pub(super) fn server_instructions(
    servers: &McpManager,
    has_visible_tools: impl Fn(&SourceId) -> bool,
) -> Option<String> {
    let servers = servers.servers();
    let trusted = servers.iter().filter(|server| server.config().trusted);
    let passed_on = trusted.filter_map(|server| {
        let (id, content) = (&server.config().id, server.content());
        let instructions = content.instructions.clone().filter(|_| has_visible_tools(id))?;
        Some((id, instructions))
    });
    join_instructions(passed_on)
}

fn join_instructions<'a>(instructions: impl Iterator<Item = (&'a SourceId, String)>) -> Option<String> {
    let mut joined = String::new();
    for (server, instructions) in instructions {
        let separator = if joined.is_empty() { "" } else { "\n\n" };
        joined.extend([
            separator,
            "Instructions of server `",
            server.as_str(),
            "`:\n",
            instructions.as_str(),
        ]);
        if let Some((end, _)) = joined.char_indices().nth(MAX_INSTRUCTIONS_CHARS) {
            joined.truncate(end);
            joined.push('…');
            break;
        }
    }
    (!joined.is_empty()).then_some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(instructions: &[(&str, &str)]) -> Option<String> {
        let instructions: Vec<(SourceId, String)> =
            instructions.iter().map(|(server, text)| (SourceId::from(*server), (*text).to_owned())).collect();
        join_instructions(instructions.iter().map(|(server, text)| (server, text.clone())))
    }

    #[test]
    fn instructions_have_the_names_of_their_servers() {
        assert_eq!(join(&[]), None);
        let joined = join(&[("excel", "Save first."), ("files", "Read,\nthen write.")]);
        let expected = "Instructions of server `excel`:\nSave first.\n\nInstructions of server `files`:\nRead,\nthen write.";
        assert_eq!(joined.as_deref(), Some(expected));
    }

    #[test]
    fn many_instructions_are_truncated() {
        let long = "ü".repeat(2_000);
        let joined = join(&[("a", &long), ("b", &long), ("c", &long), ("d", &long), ("e", &long)]).unwrap();
        assert_eq!(joined.chars().count(), MAX_INSTRUCTIONS_CHARS + 1);
        assert!(joined.ends_with("ü…") && joined.contains("`d`") && !joined.contains("`e`"));
    }
}
