//! Tools that the permissions of Claude Code deny: `mcp__SERVER__TOOL` in `~/.claude/settings.json`. Once Toolyard is between
//! Claude Code and a server, these rules match no longer, so that they become part of the client's profile.

use serde_json::Value;
use toolyard_mcp_client::config::ToolFilter;

/// The settings file below the home folder.
pub(super) const SETTINGS_FILE: &str = ".claude/settings.json";

/// The denied tools of MCP servers; a server without a tool is denied as a whole.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DeniedTools(Vec<(String, Option<String>)>);

impl DeniedTools {
    /// Reads the rules of a settings file. A file that is not JSON has none: Claude Code ignores it, too.
    pub(super) fn parse(settings: &str) -> Self {
        let settings: Value = serde_json::from_str(settings).unwrap_or_default();
        let rules = settings.pointer("/permissions/deny").and_then(Value::as_array);
        let rules = rules.into_iter().flatten().filter_map(|rule| rule.as_str()?.strip_prefix("mcp__"));
        let denied = rules.map(|rule| match rule.split_once("__") {
            Some((server, tool)) if !matches!(tool, "" | "*") => (server.to_owned(), Some(tool.to_owned())),
            Some((server, _)) => (server.to_owned(), None),
            None => (rule.to_owned(), None),
        });
        Self(denied.collect())
    }

    /// The filter without what is denied of a server, by its name in Claude Code.
    pub(super) fn restrict(&self, server: &str, filter: &ToolFilter) -> ToolFilter {
        let mut filter = filter.clone();
        let name = rule_name(server);
        for (_, tool) in self.0.iter().filter(|(denied, _)| *denied == name) {
            match tool {
                Some(tool) => filter.without.push(tool.clone()),
                None => filter.only = Some(Vec::new()),
            }
        }
        filter
    }
}

/// The name of a server in rules, where other characters than letters, digits, `-` and `_` are replaced.
fn rule_name(server: &str) -> String {
    let is_kept = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    server.chars().map(|letter| if is_kept(letter) { letter } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_restrict_the_servers_they_name() {
        let denied = DeniedTools::parse(
            r#"{"permissions": {"allow": ["mcp__git"], "deny": ["Bash(rm:*)", "mcp__git__git_commit", "mcp__my_mail", "mcp__web__*", 7]}}"#,
        );
        let allows = |server: &str, tool: &str| denied.restrict(server, &ToolFilter::default()).allows(tool);
        assert!(allows("git", "git_log") && !allows("git", "git_commit") && allows("other", "git_commit"));
        assert!(!allows("my mail", "read") && !allows("web", "fetch"));
        assert_eq!(DeniedTools::parse("{ not json"), DeniedTools::default());
        assert_eq!(DeniedTools::parse(r#"{"permissions": {"deny": "mcp__git"}}"#), DeniedTools::default());
    }
}
