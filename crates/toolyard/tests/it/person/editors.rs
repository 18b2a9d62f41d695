//! The files of six editors: 26 entries of 19 servers. `@` stands for the person's home folder.

/// An editor: its name on the command line, its file, and the text of that file.
pub(crate) struct Editor {
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    pub(crate) text: &'static str,
    /// The lists of its servers in `tool_lists.json`.
    pub(crate) lists: &'static [&'static str],
    /// The only tools of a list that it may use.
    pub(crate) only: Option<(&'static str, &'static [&'static str])>,
    /// Tools that it may not use.
    pub(crate) without: &'static [&'static str],
}

pub(crate) const EDITORS: [Editor; 6] = [
    Editor {
        name: "claude",
        file: ".claude.json",
        // Tabs, and settings of other kinds around the servers.
        text: "{\n\t\"numStartups\": 12,\n\t\"mcpServers\": {\n\
            \t\t\"filesystem\": {\"command\": \"python3\", \"args\": [\"@/replay/replay_server.py\", \"filesystem\", \"@/data\"]},\n\
            \t\t\"git\": {\"command\": \"python3\", \"args\": [\"@/replay/replay_server.py\", \"git\"]},\n\
            \t\t\"github\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"python3\",\n\t\t\t\"args\": [\"@/replay/replay_server.py\", \"github\"],\n\
            \t\t\t\"env\": {\"GITHUB_TOKEN\": \"ghp_canary0123456789abcdefghijklmnopqrst\"}\n\t\t},\n\
            \t\t\"fetch\": {\"command\": \"python3\", \"args\": [\"@/replay/replay_server.py\", \"fetch\"]},\n\
            \t\t\"excel\": {\"command\": \"python3\", \"args\": [\"@/replay/replay_server.py\", \"excel\"]},\n\
            \t\t\"thinking\": {\"command\": \"python3\", \"args\": [\"@/replay/replay_server.py\", \"thinking\"]}\n\
            \t},\n\t\"projects\": {\"@/work\": {\"allowedTools\": []}}\n}\n",
        lists: &["filesystem", "git", "github", "fetch", "excel", "thinking"],
        only: None,
        without: &[],
    },
    Editor {
        name: "claude-desktop",
        file: ".config/Claude/claude_desktop_config.json",
        // One line, without a line feed at the end.
        text: r#"{"globalShortcut":"","mcpServers":{"filesystem":{"command":"python3","args":["@/replay/replay_server.py","filesystem","@/data"]},"memory":{"command":"python3","args":["@/replay/replay_server.py","memory"]},"calendar":{"command":"python3","args":["@/replay/replay_server.py","calendar"]}}}"#,
        lists: &["filesystem", "memory", "calendar"],
        only: None,
        without: &[],
    },
    Editor {
        name: "cursor",
        file: ".cursor/mcp.json",
        text: r#"{
  // my servers
  "mcpServers": {
    "git": { "command": "python3", "args": ["@/replay/replay_server.py", "git"] },
    "time": { "command": "python3", "args": ["@/replay/replay_server.py", "time"] }, // clock
    "sqlite": { "command": "python3", "args": ["@/replay/replay_server.py", "sqlite"] },
    "excel": { "command": "python3", "args": ["@/replay/replay_server.py", "excel"], "disabled": true },
    "mail": { "command": "python3", "args": ["@/replay/replay_server.py", "mail"], "disabledTools": ["send_mail"] },
    /* tasks */
    "todo": { "command": "python3", "args": ["@/replay/replay_server.py", "todo"], "autoApprove": ["list_todos"] },
  },
}
"#,
        lists: &["git", "time", "sqlite", "mail", "todo"],
        only: None,
        without: &["send_mail"],
    },
    Editor {
        name: "vscode",
        file: ".config/Code/User/mcp.json",
        // Lines end with CR LF.
        text: "{\r\n    \"servers\": {\r\n\
            \x20       \"files\": {\"type\": \"stdio\", \"command\": \"python3\", \"args\": [\"${userHome}/replay/replay_server.py\", \"filesystem\", \"@/docs\"]},\r\n\
            \x20       \"notes\": {\"command\": \"python3\", \"args\": [\"@/replay/replay_server.py\", \"notes\"], \"envFile\": \"${userHome}/notes/.env\"},\r\n\
            \x20       \"weather\": {\"command\": \"python3\", \"args\": [\"@/replay/replay_server.py\", \"weather\"]},\r\n\
            \x20       \"slack\": {\"command\": \"python3\", \"args\": [\"@/replay/replay_server.py\", \"slack\"]}\r\n\
            \x20   },\r\n    \"inputs\": []\r\n}\r\n",
        lists: &["filesystem", "notes", "weather", "slack"],
        only: None,
        without: &[],
    },
    Editor {
        name: "codex",
        file: ".codex/config.toml",
        text: r#"model = "gpt"  # fast

[mcp_servers.old_files]
command = "python3"
args = ["@/replay/replay_server.py", "filesystem", "@/data"]
enabled_tools = ["read_text_file", "list_directory"]   # reading only

[mcp_servers.Sheets]
command = "python3"
args = ["@/replay/replay_server.py", "excel"]

[mcp_servers.slowpoke]
command = "python3"
args = ["@/replay/replay_server.py", "hang"]
startup_timeout_sec = 2

[tui]
notifications = true
"#,
        lists: &["filesystem", "excel"],
        only: Some(("filesystem", &["read_text_file", "list_directory"])),
        without: &[],
    },
    Editor {
        name: "gemini",
        file: ".gemini/settings.json",
        text: r#"{
    "theme": "Default",
    "mcpServers": {
        "time": {"command": "python3", "args": ["@/replay/replay_server.py", "time"]},
        "memory": {"command": "python3", "args": ["@/replay/replay_server.py", "memory"], "excludeTools": ["delete_entities"], "trust": true},
        "ghost": {"command": "@/nowhere/ghost-server"},
        "echo": {"command": "python3", "args": ["@/replay/replay_server.py", "echo"]}
    }
}
"#,
        lists: &["time", "memory", "echo"],
        only: None,
        without: &["delete_entities"],
    },
];

impl Editor {
    /// The tools that it may use.
    pub(crate) fn tools(&self, tool_lists: &serde_json::Value) -> Vec<String> {
        let allowed = |list: &str, tool: &str| {
            let only = self.only.filter(|(restricted, _)| *restricted == list).map(|(_, tools)| tools);
            only.is_none_or(|only| only.contains(&tool)) && !self.without.contains(&tool)
        };
        let mut names: Vec<String> = Vec::new();
        for list in self.lists {
            let tools = tool_lists[list].as_object().unwrap().keys();
            names.extend(tools.filter(|tool| allowed(list, tool)).cloned());
        }
        names
    }
}
