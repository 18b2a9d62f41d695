//! `toolyard connect`: the files of other clients before and after, and back again.

#![expect(clippy::unwrap_used, reason = "a test helper fails its test")]

#[path = "../servers/place.rs"]
#[expect(dead_code, reason = "only a part of it is needed here")]
mod place;

use std::os::unix::fs::{PermissionsExt as _, symlink};

use place::Place;

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

/// A home with five clients whose servers were taken over.
fn clients() -> Place {
    let place = Place::new();
    for (_, file, text) in FILES {
        place.write(file, text);
    }
    let taken = place.run(&["import", "--yes"]);
    assert!(taken.contains("Wrote 6 servers"), "{taken}");
    place
}

/// Everything a person sees, with the secrets of the clients' files set where the hub is started.
fn run(place: &Place, words: &[&str]) -> String {
    let mut command = place.command(words);
    command.env("GITHUB_TOKEN", "canary-in-a-header-1234567");
    command.env("TIME_API_KEY", "canary-in-a-variable-1234567");
    place.seen(&command.output().unwrap()).replace(env!("CARGO_BIN_EXE_toolyard"), "/bin/toolyard")
}

fn text(place: &Place, file: &str) -> String {
    std::fs::read_to_string(place.path(file))
        .unwrap()
        .replace(env!("CARGO_BIN_EXE_toolyard"), "/bin/toolyard")
}

#[test]
fn claude_code() {
    let place = clients();
    insta::assert_snapshot!(run(&place, &["connect", "claude", "--dry-run"]), @r#"
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
    +       "args": ["serve", "--stdio"]
    --- stderr
    HOME/.claude.json would change:
    Claude Code would start `toolyard serve --stdio` in place of 2 servers (Excel, github)
    "#);
    assert_eq!(text(&place, ".claude.json"), CLAUDE);
    insta::assert_snapshot!(run(&place, &["connect", "claude", "--yes"]), @r"
    --- stderr
    Claude Code now starts `toolyard serve --stdio` in place of 2 servers (Excel, github). Undo: toolyard connect claude --undo
    ");
    insta::assert_snapshot!(text(&place, ".claude.json"), @r#"
    {
      "numStartups": 12,
      "mcpServers": {
        "toolyard": {
          "command": "/bin/toolyard",
          "args": ["serve", "--stdio"]
        }
      },
      "projects": {}
    }
    "#);
}

#[test]
fn cursor() {
    let place = clients();
    insta::assert_snapshot!(run(&place, &["connect", "cursor", "--yes"]), @r"
    --- stderr
    Cursor now starts `toolyard serve --stdio` in place of 1 server (time). Undo: toolyard connect cursor --undo
    ");
    insta::assert_snapshot!(text(&place, ".cursor/mcp.json"), @r#"
    {
      // my servers
      "mcpServers": {
        "toolyard": {
          "command": "/bin/toolyard",
          "args": ["serve", "--stdio"]
        }
      },
    }
    "#);
}

#[test]
fn vs_code() {
    let place = clients();
    insta::assert_snapshot!(run(&place, &["connect", "vscode", "--http", "--yes"]), @r"
    --- stderr
    VS Code now asks http://127.0.0.1:7300/mcp in place of 1 server (docs). Undo: toolyard connect vscode --undo
    ");
    insta::assert_snapshot!(text(&place, ".config/Code/User/mcp.json"), @r#"
    {
    	"servers": {
    		"toolyard": {
    			"type": "http",
    			"url": "http://127.0.0.1:7300/mcp",
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
fn codex() {
    let place = clients();
    insta::assert_snapshot!(run(&place, &["connect", "codex", "--profile", "office", "--yes"]), @r"
    --- stderr
    Codex now starts `toolyard serve --stdio` in place of 1 server (files). Undo: toolyard connect codex --undo
    ");
    insta::assert_snapshot!(text(&place, ".codex/config.toml"), @r#"
    model = "gpt"  # fast

    [mcp_servers.toolyard]
    command = "/bin/toolyard"
    args = ["serve", "--stdio", "--profile", "office"]

    [tui]
    notifications = true
    "#);
}

#[test]
fn gemini() {
    let place = clients();
    insta::assert_snapshot!(run(&place, &["connect", "gemini", "--http", "http://127.0.0.1:8000/mcp", "--profile", "office", "--yes"]), @r"
    --- stderr
    Gemini CLI now asks http://127.0.0.1:8000/mcp/office in place of 1 server (search). Undo: toolyard connect gemini --undo
      hint: set the variable TOOLYARD_TOKEN to what `toolyard serve --http` shows
    ");
    insta::assert_snapshot!(text(&place, ".gemini/settings.json"), @r#"
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
fn undone_everything_is_as_it_was_byte_for_byte() {
    let place = clients();
    for (client, file, before) in FILES {
        for way in [&["--http"][..], &[]] {
            let words = [&["connect", client, "--yes"], way].concat();
            let said = run(&place, &words);
            assert!(said.contains("now"), "{said}");
            assert!(!said.contains("canary"), "{said}");
        }
        let said = run(&place, &["connect", client, "--undo", "--yes"]);
        assert!(said.contains("is as it was"), "{said}");
        assert_eq!(text(&place, file), before, "{client}");
        let again = run(&place, &["connect", client, "--undo", "--yes"]);
        assert!(again.contains("was not connected"), "{again}");
    }
}

#[test]
fn what_others_wrote_since_stays_when_it_is_undone() {
    let place = clients();
    run(&place, &["connect", "claude", "--yes"]);
    let since = std::fs::read_to_string(place.path(".claude.json")).unwrap();
    let since = since
        .replace("\"numStartups\": 12", "\"numStartups\": 13")
        .replace("\"mcpServers\": {", "\"mcpServers\": {\n    \"new\": { \"command\": \"new\" },");
    place.write(".claude.json", &since);
    run(&place, &["connect", "claude", "--undo", "--yes"]);
    insta::assert_snapshot!(text(&place, ".claude.json"), @r#"
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
fn what_would_not_work_any_more_stays() {
    let place = clients();
    insta::assert_snapshot!(place.run(&["connect", "claude", "--yes"]).replace(env!("CARGO_BIN_EXE_toolyard"), ""), @r"
    --- stderr
    Claude Code now starts `toolyard serve --stdio` in place of 1 server (Excel). Undo: toolyard connect claude --undo
      stays there, because GITHUB_TOKEN is not set here: github
      hint: set what is missing where toolyard is started, then connect again
    ");
    assert!(text(&place, ".claude.json").contains("canary-in-a-header-1234567"));
    let mut command = place.command(&["connect", "claude", "--yes"]);
    let other = place.seen(&command.env("GITHUB_TOKEN", "of-another-account-1234567").output().unwrap());
    assert!(other.contains("stays there, because it is not in your settings: github"), "{other}");
    let said = run(&place, &["connect", "claude", "--yes"]);
    assert!(said.contains("in place of 1 server (github)"), "{said}");
    run(&place, &["connect", "claude", "--undo", "--yes"]);
    assert_eq!(text(&place, ".claude.json"), CLAUDE);
}

#[test]
fn what_is_not_ours_stays() {
    let place = Place::new();
    place.write(".cursor/mcp.json", CURSOR);
    insta::assert_snapshot!(run(&place, &["connect", "cursor", "--yes"]), @r"
    --- stderr
    Cursor now starts `toolyard serve --stdio`. Undo: toolyard connect cursor --undo
      stays there, because it is not in your settings: time
      hint: take over what is missing with `toolyard import`, then connect again
    ");
    assert!(text(&place, ".cursor/mcp.json").contains("mcp-server-time"));
    place.write(".cursor/mcp.json", r#"{"mcpServers": {"toolyard": {"command": "another"}}}"#);
    insta::assert_snapshot!(run(&place, &["connect", "cursor", "--yes"]), @r"
    --- stderr
    error: HOME/.cursor/mcp.json was not touched: a server is called `toolyard` there, and it is another one
    --- exit 2
    ");
}

#[test]
fn a_broken_file_is_never_touched() {
    let place = Place::new();
    for (client, file, _) in FILES {
        place.write(file, "{ \"mcpServers\": ");
        let said = run(&place, &["connect", client, "--yes"]);
        assert!(said.contains("was not touched") && said.ends_with("--- exit 2"), "{said}");
        assert_eq!(text(&place, file), "{ \"mcpServers\": ");
    }
}

#[test]
fn nothing_happens_without_a_word() {
    let place = clients();
    let said = run(&place, &["connect", "gemini"]);
    assert!(said.contains("nobody can be asked here") && said.ends_with("--- exit 4"), "{said}");
    assert_eq!(text(&place, ".gemini/settings.json"), GEMINI);
    assert!(!said.contains("canary"), "{said}");
}

#[test]
fn links_and_rights_stay_and_what_was_taken_out_is_private() {
    let place = clients();
    std::fs::rename(place.path(".claude.json"), place.path("dotfiles.json")).unwrap();
    symlink(place.path("dotfiles.json"), place.path(".claude.json")).unwrap();
    std::fs::set_permissions(place.path("dotfiles.json"), std::fs::Permissions::from_mode(0o640)).unwrap();
    run(&place, &["connect", "claude", "--yes"]);
    assert!(place.path(".claude.json").is_symlink());
    let mode = |file: &str| place.path(file).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("dotfiles.json"), 0o640);
    assert_eq!(mode("data/toolyard/connect/claude-code.json"), 0o600);
    run(&place, &["connect", "claude", "--undo", "--yes"]);
    assert_eq!(text(&place, "dotfiles.json"), CLAUDE);
    assert!(place.path(".claude.json").is_symlink());
}

#[test]
fn a_file_that_was_not_there_goes_again() {
    let place = Place::new();
    run(&place, &["connect", "vscode", "--yes"]);
    assert!(place.path(".config/Code/User/mcp.json").is_file());
    run(&place, &["connect", "vscode", "--undo", "--yes"]);
    assert!(!place.path(".config/Code/User/mcp.json").exists());
}

#[test]
fn the_same_facts_as_json() {
    let place = clients();
    let said = run(&place, &["connect", "claude", "--json", "--yes"]);
    assert!(!said.contains("canary"), "{said}");
    let facts: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(facts["moved"], serde_json::json!(["Excel", "github"]));
    assert_eq!(facts["written"], serde_json::json!(true));
}

#[test]
fn a_connected_client_does_not_bring_the_hub_to_itself() {
    let place = clients();
    for (client, ..) in FILES {
        run(&place, &["connect", client, "--http", "--yes"]);
    }
    let before = std::fs::read_to_string(place.path("config/toolyard/toolyard.toml")).unwrap();
    let said = place.run(&["import", "--yes"]);
    assert!(said.contains("it is Toolyard itself"), "{said}");
    assert_eq!(std::fs::read_to_string(place.path("config/toolyard/toolyard.toml")).unwrap(), before);
}
