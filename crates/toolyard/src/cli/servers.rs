//! Arguments of `toolyard servers`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ServersCommand {
    /// List servers and their status, without starting any
    List,
    /// Show a server's endpoint, tools and problems
    Show {
        /// Name of the server
        name: String,
    },
    /// Add a server to your settings, for example: toolyard servers add time -- uvx mcp-server-time
    Add(AddServerArgs),
    /// Remove a server from your settings, with its cached tools
    Remove {
        /// Name of the server
        name: String,
    },
    /// Change settings of a server, for example: toolyard servers edit time --set call_timeout=30s
    Edit(EditServerArgs),
    /// Use a server that is disabled
    Enable {
        /// Name of the server
        name: String,
    },
    /// Keep a server in your settings without using it
    Disable {
        /// Name of the server
        name: String,
    },
    /// Vouch for the effects that a server states for its tools
    Trust {
        /// Name of the server
        name: String,
        /// Skip the confirmation prompt
        #[arg(short, long)]
        yes: bool,
    },
    /// Stop vouching for a server
    Untrust {
        /// Name of the server
        name: String,
    },
    /// Stop a server in all running Toolyard processes
    Stop {
        /// Name of the server
        name: String,
    },
    /// Start servers, read their tools and stop them again; all servers by default
    #[command(after_help = "Exit codes: 0 all servers answered · 1 some failed · 3 all failed")]
    Test {
        /// Names of the servers
        names: Vec<String>,
    },
    /// Show new and changed tool definitions and approve them
    Approve {
        /// Name of the server
        name: String,
        /// Names of the tools; all that await approval by default
        tools: Vec<String>,
        /// Also give these tools their bare names, which belong to tools of other servers
        #[arg(long, requires = "tools")]
        take_names: bool,
        /// Skip the confirmation prompt
        #[arg(short, long)]
        yes: bool,
    },
    /// Show a server's stderr output
    Logs {
        /// Name of the server
        name: String,
        /// Number of lines
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        lines: usize,
    },
    /// Sign in to a server in the browser (OAuth)
    Login {
        /// Name of the server
        name: String,
        /// Scopes to request, separated by spaces; by default, those that the server asks for
        #[arg(long, value_name = "SCOPES", value_delimiter = ' ')]
        scope: Vec<String>,
    },
    /// Delete the stored OAuth tokens of a server
    Logout {
        /// Name of the server
        name: String,
        /// Delete the tokens of this caller, by its name or id in `servers sign-ins`, instead of the operator's
        #[arg(long, value_name = "CALLER")]
        caller: Option<String>,
    },
    /// List the callers that signed in to servers with tokens per caller
    SignIns {
        /// Name of the server; by default all
        name: Option<String>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolyard servers add time -- uvx mcp-server-time
  toolyard servers add excel --env EXCEL_FILES_PATH=/data -- excel-mcp-server stdio
  toolyard servers add github --url https://api.example.com/mcp --header 'Authorization=Bearer ${GITHUB_TOKEN}'")]
pub(crate) struct AddServerArgs {
    /// Name of the server
    pub(crate) name: String,
    /// URL of an HTTP server
    #[arg(long, conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// HTTP header; values may reference environment variables: ${TOKEN}
    #[arg(long = "header", value_name = "NAME=VALUE", requires = "url")]
    pub(crate) headers: Vec<String>,
    /// Environment variable of the server; values may reference environment variables: ${TOKEN}
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Working directory of the server
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<String>,
    /// Trust the server's tool hints, and treat its tools as equivalent to those of other trusted sources
    #[arg(long)]
    pub(crate) trusted: bool,
    /// Require approval of all tools, even on the first connection
    #[arg(long)]
    pub(crate) hold_all_tools: bool,
    /// Command of a stdio server, after --
    #[arg(last = true, required_unless_present = "url")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("changes").required(true).multiple(true),
    after_help = "Examples:
  toolyard servers edit time --set call_timeout=30s
  toolyard servers edit files --set 'args=[\"-y\", \"@modelcontextprotocol/server-filesystem\", \"/data\"]'
  toolyard servers edit github --set 'env.GITHUB_TOKEN=${secret:GITHUB_TOKEN}' --secret GITHUB_TOKEN < token.txt
  toolyard servers edit excel --unset without_tools"
)]
pub(crate) struct EditServerArgs {
    /// Name of the server
    pub(crate) name: String,
    /// Setting and its new value, as TOML or plain text; `env.NAME` and `headers.NAME` set single values
    #[arg(long, value_name = "KEY=VALUE", group = "changes")]
    pub(crate) set: Vec<String>,
    /// Setting to remove
    #[arg(long, value_name = "KEY", group = "changes")]
    pub(crate) unset: Vec<String>,
    /// Store the value of ${NAME} as a secret: from the environment variable NAME, else from standard input
    #[arg(long, value_name = "NAME", group = "changes")]
    pub(crate) secret: Option<String>,
}
