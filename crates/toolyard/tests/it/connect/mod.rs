//! `toolyard connect`: changes to clients' files, and undo.

mod moved_secrets;
mod profiles;

use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::test_home::TestHome;

const CLAUDE: &str = r#"{
  "numStartups": 12,
  "mcpServers": {
    "Excel": {
      "command": "uvx",
      "args": ["excel-mcp-server", "stdio"]
    },
    "github": {
      "type": "http",
      "url": "https://api.example.com/mcp",
      "headers": { "Authorization": "Bearer canary-in-a-header-1234567" }
    }
  },
  "projects": {}
}
"#;

const CURSOR: &str = r#"{
  // my servers
  "mcpServers": {
    "time": { "command": "uvx", "args": ["mcp-server-time"], "env": { "TIME_API_KEY": "canary-in-a-variable-1234567" } }, // clock
  },
}
"#;

const VS_CODE: &str = r#"{
	"servers": {
		"docs": {
			"type": "http",
			"url": "https://docs.example.com/mcp"
		}
	},
	"inputs": []
}
"#;

const CODEX: &str = r#"model = "gpt"  # fast

[mcp_servers.files]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "/data"]

[tui]
notifications = true
"#;

const GEMINI: &str = r#"{"theme":"Default","mcpServers":{"search":{"httpUrl":"https://search.example.com/mcp","trust":true}}}"#;

const FILES: [(&str, &str, &str); 5] = [
    ("claude", ".claude.json", CLAUDE),
    ("cursor", ".cursor/mcp.json", CURSOR),
    ("vscode", ".config/Code/User/mcp.json", VS_CODE),
    ("codex", ".codex/config.toml", CODEX),
    ("gemini", ".gemini/settings.json", GEMINI),
];

const SETTINGS: &str = "config/toolyard/toolyard.toml";

/// A home with five clients whose servers were imported.
fn home_with_clients() -> TestHome {
    let home = TestHome::new();
    for (_, file, text) in FILES {
        home.write(file, text);
    }
    let output = home.run(&["import", "--yes"]);
    assert!(output.contains("Wrote 6 servers"), "{output}");
    home
}

/// The same home, with a profile.
fn home_with_profile() -> TestHome {
    let home = home_with_clients();
    let text = std::fs::read_to_string(home.path(SETTINGS)).unwrap();
    home.write(SETTINGS, &format!("{text}\n[serve.profiles.office]\nservers = [\"excel\"]\n"));
    home
}

/// The output of a command, without any variable of a shell.
fn run(home: &TestHome, args: &[&str]) -> String {
    home.run(args).replace(env!("CARGO_BIN_EXE_toolyard"), "/bin/toolyard")
}

fn read_file(home: &TestHome, file: &str) -> String {
    std::fs::read_to_string(home.path(file)).unwrap().replace(env!("CARGO_BIN_EXE_toolyard"), "/bin/toolyard")
}

#[test]
fn claude_code_starts_toolyard_in_place_of_its_servers() {
    let home = home_with_clients();
    insta::assert_snapshot!(run(&home, &["connect", "claude", "--dry-run"]), @r#"
    -     "Excel": {
    -       "command": …
    -       "args": …
    -     },
    -     "github": {
    -       "type": …
    -       "url": …
    -       "headers": …
    +     "toolyard": {
    +       "command": "/bin/toolyard",
    +       "args": ["serve", "--stdio", "--profile", "claude-code"]
    + 
    + [serve.profiles.claude-code]
    + servers = ["excel", "github"]
    --- stderr
    Changes to HOME/.claude.json:
    Changes to HOME/config/toolyard/toolyard.toml:
    Claude Code would start `toolyard serve --stdio` in place of 2 servers (Excel, github)
      Claude Code may use the profile `claude-code`; for all tools: --all
      other names in Toolyard: Excel → excel
    "#);
    assert_eq!(read_file(&home, ".claude.json"), CLAUDE);
    insta::assert_snapshot!(run(&home, &["connect", "claude", "--yes"]), @r"
    --- stderr
    Claude Code now starts `toolyard serve --stdio` in place of 2 servers (Excel, github). Undo: toolyard connect claude --undo
      Claude Code may use the profile `claude-code`; for all tools: --all
      other names in Toolyard: Excel → excel
    ");
    insta::assert_snapshot!(read_file(&home, ".claude.json"), @r#"
    {
      "numStartups": 12,
      "mcpServers": {
        "toolyard": {
          "command": "/bin/toolyard",
          "args": ["serve", "--stdio", "--profile", "claude-code"]
        }
      },
      "projects": {}
    }
    "#);
}

#[test]
fn comments_in_cursors_file_are_kept() {
    let home = home_with_clients();
    insta::assert_snapshot!(run(&home, &["connect", "cursor", "--yes"]), @r"
    --- stderr
    Cursor now starts `toolyard serve --stdio` in place of 1 server (time). Undo: toolyard connect cursor --undo
      Cursor may use the profile `cursor`; for all tools: --all
    ");
    insta::assert_snapshot!(read_file(&home, ".cursor/mcp.json"), @r#"
    {
      // my servers
      "mcpServers": {
        "toolyard": {
          "command": "/bin/toolyard",
          "args": ["serve", "--stdio", "--profile", "cursor"]
        }
      },
    }
    "#);
}

#[test]
fn vs_code_prompts_for_the_token() {
    let home = home_with_clients();
    insta::assert_snapshot!(run(&home, &["connect", "vscode", "--http", "--yes"]), @r"
    --- stderr
    VS Code now connects to http://127.0.0.1:7300/mcp/vscode in place of 1 server (docs). Undo: toolyard connect vscode --undo
      VS Code may use the profile `vscode`; for all tools: --all
    ");
    insta::assert_snapshot!(read_file(&home, ".config/Code/User/mcp.json"), @r#"
    {
    	"servers": {
    		"toolyard": {
    			"type": "http",
    			"url": "http://127.0.0.1:7300/mcp/vscode",
    			"headers": {
    				"Authorization": "Bearer ${input:toolyard-token}"
    			}
    		}
    	},
    	"inputs": [
    		{
    			"type": "promptString",
    			"id": "toolyard-token",
    			"description": "Token of toolyard serve",
    			"password": true
    		}
    	]
    }
    "#);
}

#[test]
fn codex_starts_toolyard_with_a_profile() {
    let home = home_with_clients();
    insta::assert_snapshot!(run(&home, &["connect", "codex", "--profile", "office", "--dry-run"]), @r"
    --- stderr
    error: there is no profile `office`
      hint: define it in toolyard.toml: [serve.profiles.office]
    --- exit 2
    ");
    let home = home_with_profile();
    insta::assert_snapshot!(run(&home, &["connect", "codex", "--profile", "office", "--yes"]), @r"
    --- stderr
    Codex now starts `toolyard serve --stdio` in place of 1 server (files). Undo: toolyard connect codex --undo
      Codex may use the profile `office`; for all tools: --all
    ");
    insta::assert_snapshot!(read_file(&home, ".codex/config.toml"), @r#"
    model = "gpt"  # fast

    [mcp_servers.toolyard]
    command = "/bin/toolyard"
    args = ["serve", "--stdio", "--profile", "office"]

    [tui]
    notifications = true
    "#);
}

#[test]
fn gemini_connects_over_http_to_a_profile() {
    let home = home_with_profile();
    insta::assert_snapshot!(run(&home, &["connect", "gemini", "--http", "http://127.0.0.1:8000/mcp", "--profile", "office", "--yes"]), @r"
    --- stderr
    Gemini CLI now connects to http://127.0.0.1:8000/mcp/office in place of 1 server (search). Undo: toolyard connect gemini --undo
      Gemini CLI may use the profile `office`; for all tools: --all
      hint: set TOOLYARD_TOKEN in the client's environment; `toolyard serve --http` prints the command
    ");
    insta::assert_snapshot!(read_file(&home, ".gemini/settings.json"), @r#"
    {"theme":"Default","mcpServers":{
        "toolyard": {
          "httpUrl": "http://127.0.0.1:8000/mcp/office",
          "headers": {
            "Authorization": "Bearer $TOOLYARD_TOKEN"
          }
        }
      }}
    "#);
}

#[test]
fn undo_restores_every_byte() {
    let home = home_with_clients();
    for (client, file, before) in FILES {
        for transport in [&["--http"][..], &[]] {
            let args = [&["connect", client, "--yes"], transport].concat();
            let output = run(&home, &args);
            assert!(output.contains("now"), "{output}");
            assert!(!output.contains("canary"), "{output}");
        }
        let output = run(&home, &["connect", client, "--undo", "--yes"]);
        assert!(output.contains("Disconnected"), "{output}");
        assert_eq!(read_file(&home, file), before, "{client}");
        let again = run(&home, &["connect", client, "--undo", "--yes"]);
        assert!(again.contains("is not connected to Toolyard"), "{again}");
    }
}

#[test]
fn undo_preserves_later_edits() {
    let home = home_with_clients();
    run(&home, &["connect", "claude", "--yes"]);
    let edited = std::fs::read_to_string(home.path(".claude.json")).unwrap();
    let edited = edited
        .replace("\"numStartups\": 12", "\"numStartups\": 13")
        .replace("\"mcpServers\": {", "\"mcpServers\": {\n    \"new\": { \"command\": \"new\" },");
    home.write(".claude.json", &edited);
    run(&home, &["connect", "claude", "--undo", "--yes"]);
    insta::assert_snapshot!(read_file(&home, ".claude.json"), @r#"
    {
      "numStartups": 13,
      "mcpServers": {
        "new": { "command": "new" },
        "Excel": {
          "command": "uvx",
          "args": ["excel-mcp-server", "stdio"]
        },
        "github": {
          "type": "http",
          "url": "https://api.example.com/mcp",
          "headers": {
            "Authorization": "Bearer canary-in-a-header-1234567"
          }
        }
      },
      "projects": {}
    }
    "#);
}

#[test]
fn servers_with_missing_variables_stay() {
    let home = TestHome::new();
    let server = |key: &str| {
        let folder = "${env:HOME}/notes";
        format!(
            r#"{{ "command": "{key}", "env": {{ "API_KEY": "${{env:{key}}}", "NOTES_FOLDER": "{folder}" }} }}"#
        )
    };
    let text =
        format!(r#"{{ "mcpServers": {{ "one": {}, "two": {} }} }}"#, server("ONE_KEY"), server("TWO_KEY"));
    home.write(".cursor/mcp.json", &text);
    home.run(&["import", "--yes"]);
    let connect = |variables: &[(&str, &str)]| {
        let mut command = home.command(&["connect", "cursor", "--yes"]);
        command.envs(variables.iter().copied());
        home.output_text(&command.output().unwrap()).replace(env!("CARGO_BIN_EXE_toolyard"), "")
    };
    insta::assert_snapshot!(connect(&[]), @r"
    --- stderr
    error: Toolyard can replace no server of Cursor: ONE_KEY, TWO_KEY is not set
      hint: set it first · or offer Cursor all tools: toolyard connect cursor --all
    --- exit 2
    ");
    insta::assert_snapshot!(connect(&[("ONE_KEY", "1")]), @r"
    --- stderr
    Cursor now starts `toolyard serve --stdio` in place of 1 server (one). Undo: toolyard connect cursor --undo
      Cursor may use the profile `cursor`; for all tools: --all
      two was left in place: TWO_KEY is not set
      hint: set the variables where Toolyard is started, then connect again
      needed in the environment of Cursor: ONE_KEY
      hint: keep it in Toolyard instead: toolyard servers edit SERVER --secret NAME
    ");
    assert!(read_file(&home, ".cursor/mcp.json").contains("TWO_KEY"));
    assert!(connect(&[("TWO_KEY", "2")]).contains("in place of 1 server (two)"));
    run(&home, &["connect", "cursor", "--undo", "--yes"]);
    assert_eq!(read_file(&home, ".cursor/mcp.json"), text);
}

#[test]
fn a_server_with_another_account_stays() {
    let home = home_with_clients();
    let other = CLAUDE.replace("canary-in-a-header-1234567", "canary-of-another-account-1234567");
    home.write(".claude.json", &other);
    let output = run(&home, &["connect", "claude", "--yes"]);
    assert!(output.contains("left in place, not in your settings: github"), "{output}");
    assert!(read_file(&home, ".claude.json").contains("canary-of-another-account-1234567"));
}

#[test]
fn claude_desktop_takes_no_url() {
    let home = home_with_clients();
    insta::assert_snapshot!(run(&home, &["connect", "claude-desktop", "--http", "--yes"]), @r"
    --- stderr
    error: Claude Desktop takes no URLs from its file: it skips such entries, or does not start
      hint: omit --http: Claude Desktop then starts `toolyard serve --stdio` itself
    --- exit 2
    ");
    assert!(!home.path(".config/Claude/claude_desktop_config.json").exists());
}

#[test]
fn servers_toolyard_does_not_have_stay() {
    let home = TestHome::new();
    home.write(".cursor/mcp.json", CURSOR);
    insta::assert_snapshot!(run(&home, &["connect", "cursor", "--yes"]), @r"
    --- stderr
    error: Toolyard can replace no server of Cursor
      hint: import them first: toolyard import · or offer Cursor all tools: toolyard connect cursor --all
    --- exit 2
    ");
    insta::assert_snapshot!(run(&home, &["connect", "cursor", "--all", "--yes"]), @r"
    --- stderr
    Cursor now starts `toolyard serve --stdio`. Undo: toolyard connect cursor --undo
      Cursor may use all tools of all servers
      left in place, not in your settings: time
      hint: import them with `toolyard import`, then connect again
    ");
    assert!(read_file(&home, ".cursor/mcp.json").contains("mcp-server-time"));
    home.write(".cursor/mcp.json", r#"{"mcpServers": {"toolyard": {"command": "another"}}}"#);
    insta::assert_snapshot!(run(&home, &["connect", "cursor", "--yes"]), @r"
    --- stderr
    error: cannot change HOME/.cursor/mcp.json: it has a different server named `toolyard`
    --- exit 2
    ");
}

#[test]
fn an_invalid_file_is_not_changed() {
    let home = TestHome::new();
    for (client, file, _) in FILES {
        home.write(file, "{ \"mcpServers\": ");
        let output = run(&home, &["connect", client, "--yes"]);
        assert!(output.contains("cannot change") && output.ends_with("--- exit 2"), "{output}");
        assert_eq!(read_file(&home, file), "{ \"mcpServers\": ");
    }
}

#[test]
fn nothing_is_changed_without_confirmation() {
    let home = home_with_clients();
    let output = run(&home, &["connect", "gemini"]);
    assert!(output.contains("confirmation needs a terminal") && output.ends_with("--- exit 4"), "{output}");
    assert_eq!(read_file(&home, ".gemini/settings.json"), GEMINI);
    assert!(!output.contains("canary"), "{output}");
}

#[test]
fn links_and_permissions_are_preserved_and_the_undo_record_is_private() {
    let home = home_with_clients();
    std::fs::rename(home.path(".claude.json"), home.path("dotfiles.json")).unwrap();
    symlink(home.path("dotfiles.json"), home.path(".claude.json")).unwrap();
    std::fs::set_permissions(home.path("dotfiles.json"), std::fs::Permissions::from_mode(0o640)).unwrap();
    run(&home, &["connect", "claude", "--yes"]);
    assert!(home.path(".claude.json").is_symlink());
    let mode = |file: &str| home.path(file).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("dotfiles.json"), 0o640);
    assert_eq!(mode("data/toolyard/connect/claude-code.json"), 0o600);
    run(&home, &["connect", "claude", "--undo", "--yes"]);
    assert_eq!(read_file(&home, "dotfiles.json"), CLAUDE);
    assert!(home.path(".claude.json").is_symlink());
}

#[test]
fn undo_removes_a_created_file() {
    let home = TestHome::new();
    run(&home, &["connect", "vscode", "--yes"]);
    assert!(home.path(".config/Code/User/mcp.json").is_file());
    run(&home, &["connect", "vscode", "--undo", "--yes"]);
    assert!(!home.path(".config/Code/User/mcp.json").exists());
}

#[test]
fn undo_restores_a_file_that_was_written_after_an_earlier_connection() {
    let home = TestHome::new();
    run(&home, &["connect", "cursor", "--yes"]);
    home.write(".cursor/mcp.json", CURSOR);
    home.run(&["import", "--yes"]);
    let connected = run(&home, &["connect", "cursor", "--yes"]);
    assert!(connected.contains("in place of 1 server (time)"), "{connected}");
    run(&home, &["connect", "cursor", "--undo", "--yes"]);
    assert_eq!(read_file(&home, ".cursor/mcp.json"), CURSOR);
}

#[test]
fn json_output_lists_the_replaced_servers() {
    let home = home_with_clients();
    let output = run(&home, &["connect", "claude", "--json", "--yes"]);
    assert!(!output.contains("canary"), "{output}");
    let json: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(json["moved"], serde_json::json!(["Excel", "github"]));
    assert_eq!(json["written"], serde_json::json!(true));
}

#[test]
fn import_skips_toolyards_own_entry() {
    let home = home_with_clients();
    for (client, ..) in FILES {
        run(&home, &["connect", client, "--http", "--yes"]);
    }
    let before = std::fs::read_to_string(home.path(SETTINGS)).unwrap();
    let output = home.run(&["import", "--yes"]);
    assert!(output.contains("is Toolyard itself"), "{output}");
    assert_eq!(std::fs::read_to_string(home.path(SETTINGS)).unwrap(), before);
}
